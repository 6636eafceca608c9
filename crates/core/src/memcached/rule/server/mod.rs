//! What memcached would not start with, or be killed for: memory, connections, item sizes, the disk tier, arguments.

mod argument;
mod extstore;
mod item_size;

use memcached_api::memcached::rule;
use memcached_api::memcached::spec::MemcachedSpec;

use operator_model::quantity;
use operator_model::violation::Violation;

/// What the process needs beside the items, at the very least, in mebibytes.
const OVERHEAD: i64 = 32;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let server = spec.memcached.clone().unwrap_or_default();
    let mut violations = Vec::new();
    let limits = spec.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    if let Some(limit) = limits.and_then(|limits| limits.get("memory")) {
        let items = i64::from(server.max_memory_mb);
        let need = u64::try_from((items + OVERHEAD) << 20).unwrap_or(0);
        if quantity::bytes(limit).is_none_or(|limit| limit < need) {
            violations.push(Violation::of(&rule::MEMORY_LIMIT, &[items, items + OVERHEAD]));
        }
    }
    let (threads, connections) = (i64::from(server.threads), i64::from(server.max_connections));
    let least = 5 * threads + 32;
    if connections < least {
        violations.push(Violation::of(&rule::CONNECTIONS, &[connections, threads, least]));
    }
    violations.extend(item_size::check(spec));
    violations.extend(extstore::check(spec));
    violations.extend(argument::check(spec));
    violations
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ResourceRequirements;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use memcached_api::memcached::spec::Server;

    use super::*;

    fn with_limit(limit: &str) -> MemcachedSpec {
        let limits = [("memory".to_owned(), Quantity(limit.into()))].into();
        let resources = ResourceRequirements { limits: Some(limits), ..ResourceRequirements::default() };
        MemcachedSpec { resources: Some(resources), ..MemcachedSpec::default() }
    }

    #[test]
    fn the_limit_leaves_room_for_more_than_items() {
        assert_eq!(check(&with_limit("96Mi")), []);
        let refused = check(&with_limit("95Mi"));
        assert_eq!(refused[0].field, "spec.resources.limits.memory");
        assert!(refused[0].message.contains("at least 96Mi"), "{}", refused[0]);
    }

    #[test]
    fn every_thread_wants_connections() {
        let spec = |max_connections| MemcachedSpec {
            memcached: Some(Server { max_connections, ..Server::default() }),
            ..MemcachedSpec::default()
        };
        assert_eq!(check(&spec(52)), []);
        assert_eq!(check(&spec(51))[0].field, "spec.memcached.maxConnections");
    }
}
