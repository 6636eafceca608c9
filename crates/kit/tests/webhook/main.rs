//! Webhooks called by a real API server: what clients see of reviews, and certificates that nobody notices changing.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod harness;
mod load;
mod malformed;
mod mounted;
mod register;
mod repair;
mod replica;
mod review;
mod rotation;
