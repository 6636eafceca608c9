//! Disk tiers that memcached would not start with.

use memcached_api::spec::MemcachedSpec;

use super::Violation;
use crate::quantity;

/// One page of the disk tier: less is none, and ends the server ("`ext_path` has zero size").
const PAGE: u64 = 64 << 20;

pub fn check(spec: &MemcachedSpec) -> Option<Violation> {
    let size = &spec.extstore.as_ref()?.size;
    quantity::bytes(size)
        .is_none_or(|bytes| bytes < PAGE)
        .then(|| Violation::new("spec.extstore.size", format!("{:?} is too small a disk: give at least 64Mi", size.0)))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
    use memcached_api::spec::{Extstore, Server};

    use super::*;

    fn with_disk(size: &str) -> MemcachedSpec {
        let extstore = Extstore { size: Quantity(size.into()), volume_claim: None };
        MemcachedSpec { extstore: Some(extstore), ..MemcachedSpec::default() }
    }

    #[test]
    fn a_disk_holds_at_least_a_page() {
        assert_eq!(check(&with_disk("64Mi")), None);
        for size in ["63Mi", "0", "", "much"] {
            assert_eq!(check(&with_disk(size)).unwrap().field, "spec.extstore.size", "{size}");
        }
    }

    #[test]
    fn items_fit_into_the_write_buffer() {
        let with_items = |size: &str| MemcachedSpec {
            memcached: Some(Server { max_item_size: size.into(), ..Server::default() }),
            ..with_disk("1Gi")
        };
        assert_eq!(super::super::item::check(&with_items("4m")), None);
        assert_eq!(super::super::item::check(&with_items("5m")).unwrap().field, "spec.memcached.maxItemSize");
    }
}
