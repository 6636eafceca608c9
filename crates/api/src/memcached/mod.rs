//! The kind `Memcached`: spec, status, conditions and reasons, rules, its definition and its webhooks.

pub mod admission;
pub mod condition;
pub mod crd;
pub mod reason;
pub mod rule;
pub mod spec;
mod status;

pub use spec::{Memcached, MemcachedSpec};
pub use status::MemcachedStatus;
