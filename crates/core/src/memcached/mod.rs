//! The kind `Memcached`: its rules, its children, the pod template in force, its status.

pub mod build;
pub mod default;
pub mod observed;
pub mod pod_fields;
pub mod revision;
pub mod rule;
pub mod secret;
pub mod settings;
pub mod status;
pub mod validate;
pub mod warning;

#[cfg(test)]
pub(crate) mod fixture;

pub use observed::Observed;
pub use settings::Settings;
pub use validate::{Validated, validate, validate_observed, validate_with};
