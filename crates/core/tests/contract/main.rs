//! The contract, checked from outside the crate: manifests in, whole objects out.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod change;
mod default;
mod diff;
mod edge;
#[path = "../../../operator/tests/admission/example/mod.rs"]
mod example;
mod feature_availability;
mod feature_knob;
mod feature_security;
mod feature_server;
mod fixture;
mod generator;
mod property;
mod property_quantity;
mod property_spec;
mod rule;
mod snapshot;
