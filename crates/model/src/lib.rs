//! What every operator knows of Kubernetes, whatever it operates: pure functions over Kubernetes' own types.
//!
//! No client, no runtime and no product in here: the crate depends on nothing to do IO with.

#![deny(missing_docs)]

pub mod autoscaling;
pub mod condition;
pub mod crd;
pub mod diff;
pub mod difference;
pub mod digest;
pub mod duration;
pub mod image;
pub mod int_or_percent;
pub mod managed;
pub mod metadata;
pub mod name;
pub mod network_policy;
pub mod owner;
pub mod pod;
pub mod problem;
pub mod quantity;
pub mod range;
pub mod reason;
pub mod resource;
pub mod rollout;
pub mod rule;
pub mod selector;
pub mod template;
pub mod trim;
pub mod violation;
