//! Memory limits that memcached would be killed in, and connection limits it would not start with.

use memcached_api::spec::MemcachedSpec;

use super::Violation;
use crate::quantity;

/// What the process needs beside the items, at the very least.
const OVERHEAD: u64 = 32 << 20;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let server = spec.memcached.clone().unwrap_or_default();
    let mut violations = Vec::new();
    let limits = spec.resources.as_ref().and_then(|resources| resources.limits.as_ref());
    if let Some(limit) = limits.and_then(|limits| limits.get("memory")) {
        let items = u64::try_from(server.max_memory_mb).unwrap_or(0) << 20;
        let need = items + OVERHEAD;
        if quantity::bytes(limit).is_none_or(|limit| limit < need) {
            violations.push(Violation::new(
                "spec.resources.limits.memory",
                format!(
                    "{} is less than memcached.maxMemoryMB {} needs: at least {}Mi, or lower maxMemoryMB",
                    limit.0,
                    server.max_memory_mb,
                    need >> 20
                ),
            ));
        }
    }
    // memcached keeps file descriptors for each thread and exits if the rest is too few (facts: -c 30 with -t 4).
    let connections = server.threads.saturating_mul(5).saturating_add(32);
    if server.max_connections < connections {
        violations.push(Violation::new(
            "spec.memcached.maxConnections",
            format!(
                "{} is too few for {} threads: memcached would not start; at least {connections}",
                server.max_connections, server.threads
            ),
        ));
    }
    violations
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ResourceRequirements;
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use memcached_api::spec::Server;

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
