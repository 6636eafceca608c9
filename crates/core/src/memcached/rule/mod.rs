//! The rules of the contract: what cannot work is refused, with the field and the remedy.
//!
//! What the API server can check by itself is worded in [`memcached_api::memcached::rule`]; here the same is said again for
//! those who get past it, and more: a declaration without violations is one that Kubernetes has no reason to refuse
//! the children of.

mod autoscaling;
mod availability;
mod monitoring;
mod network_policy;
mod pod;
mod security;
mod server;
mod service;
mod version;
mod workload;

use memcached_api::Memcached;
use memcached_api::memcached::spec::{MemcachedSpec, WorkloadType};

pub(crate) use availability::fewest;
pub(crate) use operator_model::int_or_percent::percentage;
pub use operator_model::violation::Violation;
pub(crate) use version::can_keep_memory;
pub(crate) use workload::other_workload;

/// What a change breaks.
pub fn check_update(old: &Memcached, new: &Memcached) -> Option<Violation> {
    workload::check_update(old, new).or_else(|| service::check_update(&old.spec, &new.spec))
}

/// Every rule that the declaration of a cache breaks whose pods this workload runs.
pub fn check(name: &str, spec: &MemcachedSpec, workload: WorkloadType) -> Vec<Violation> {
    let mut violations = workload::check(name, spec, workload);
    violations.extend(version::check(spec, workload));
    violations.extend(server::check(spec));
    violations.extend(autoscaling::check(spec, workload));
    violations.extend(availability::check(spec));
    violations.extend(monitoring::check(spec));
    violations.extend(security::check(spec));
    violations.extend(network_policy::check(spec));
    violations.extend(service::check(spec));
    violations.extend(pod::check(spec));
    violations
}
