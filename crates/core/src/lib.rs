//! What a `Memcached` turns into: pure functions from declaration and observation to objects and status.
//!
//! observe → **validate → build** → apply → **status** → publish; the steps in bold live here. Nothing in this
//! crate can do IO, because it depends on nothing to do it with.

pub mod build;
pub mod default;
pub mod difference;
pub mod image;
pub mod quantity;
mod range;
pub mod revision;
pub mod rule;
pub mod secret;
pub mod settings;
pub mod shape;
pub mod status;
pub mod validate;
pub mod warning;

#[cfg(test)]
pub(crate) mod fixture;

pub use settings::Settings;
pub use validate::{Validated, validate, validate_with};
