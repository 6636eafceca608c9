//! Disk tiers that memcached would not start with.

use memcached_api::memcached::rule;
use memcached_api::memcached::spec::{Extstore, MemcachedSpec};

use operator_model::name::{NAME_RULE, is_object_name};
use operator_model::quantity;
use operator_model::violation::Violation;

/// One page of the disk tier: less is none, and ends the server ("`ext_path` has zero size").
const PAGE: u64 = 64 << 20;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(Extstore { size, volume_claim }) = &spec.extstore else {
        return violations;
    };
    if quantity::bytes(size).is_none_or(|bytes| bytes < PAGE) {
        violations.push(Violation::of(&rule::DISK, &[]));
    }
    let class = volume_claim.as_ref().and_then(|claim| claim.storage_class_name.as_deref());
    if let Some(class) = class.filter(|class| !is_object_name(class)) {
        violations.push(Violation::new("spec.extstore.volumeClaim.storageClassName", format!("{class:?} {NAME_RULE}")));
    }
    violations
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use memcached_api::memcached::spec::Server;

    use super::*;

    fn with_disk(size: &str) -> MemcachedSpec {
        let extstore = Extstore { size: Quantity(size.into()), volume_claim: None };
        MemcachedSpec { extstore: Some(extstore), ..MemcachedSpec::default() }
    }

    #[test]
    fn a_disk_holds_at_least_a_page() {
        assert_eq!(check(&with_disk("64Mi")), []);
        for size in ["63Mi", "0", "", "much"] {
            assert_eq!(check(&with_disk(size))[0].field, "spec.extstore.size", "{size}");
        }
    }

    #[test]
    fn items_fit_into_the_write_buffer() {
        let with_items = |size: &str| MemcachedSpec {
            memcached: Some(Server { max_item_size: size.into(), ..Server::default() }),
            ..with_disk("1Gi")
        };
        assert_eq!(super::super::item_size::check(&with_items("4m")), None);
        assert_eq!(super::super::item_size::check(&with_items("5m")).unwrap().field, "spec.memcached.maxItemSize");
    }
}
