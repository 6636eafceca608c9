//! The kind `Memcached`: its rules, its children, the pod template in force, its status.

pub mod build;
pub mod change;
pub mod defaulting;
pub mod observed;
pub mod pod_defaults;
pub mod revision;
pub mod rollout;
pub mod rollout_fields;
pub mod rule;
pub mod secret;
pub mod status;
pub mod validate;
pub mod warning;

#[cfg(test)]
pub(crate) mod fixture;

pub use observed::Observed;
pub use pod_defaults::PodDefaults;
pub use validate::{Validated, validate, validate_observed, validate_with};
