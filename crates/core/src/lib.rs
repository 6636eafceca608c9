//! What the kinds of `memcached.c5c3.io` turn into: pure functions from what is observed to objects and status.
//!
//! observe → **validate → build** → apply → **status** → publish; the steps in bold live here, a folder a kind.
//! Nothing in this crate can do IO, because it depends on nothing to do it with.

pub mod memcached;
