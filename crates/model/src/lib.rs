//! What every operator knows of Kubernetes, whatever it operates: pure functions over Kubernetes' own types.
//!
//! No client, no runtime and no product in here: the crate depends on nothing to do IO with.

#![deny(missing_docs)]

pub mod crd;
pub mod diff;
pub mod difference;
pub mod image;
pub mod managed;
pub mod name;
pub mod owner;
pub mod problem;
pub mod quantity;
pub mod range;
pub mod reason;
pub mod resource;
pub mod rule;
pub mod violation;
