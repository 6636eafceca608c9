//! The kind `Memcached`: spec, status, rules, reasons.

pub mod reason;
pub mod rule;
pub mod spec;
mod status;

pub use spec::{Memcached, MemcachedSpec};
pub use status::MemcachedStatus;
