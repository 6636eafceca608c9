//! What is admitted: examples of every rule and random declarations, against real API servers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod campaign;
mod cel;
mod defaulting;
#[path = "../../../core/tests/contract/edge.rs"]
mod edge;
mod example;
#[path = "../../../core/tests/contract/fixture.rs"]
mod fixture;
#[path = "../../../core/tests/contract/generator.rs"]
mod generator;
mod guarded;
#[path = "../memcached/harness/mod.rs"]
mod harness;
mod reconciler;
mod registration;
mod webhook;
