//! The exporter as a program: scraped over HTTP, with the real memcached behind it, or what pretends to be one.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod catalogue;
mod failure;
mod harness;
mod mode;
mod program;
