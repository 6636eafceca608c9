//! The kinds of the API group `memcached.c5c3.io`, with every string that goes over the wire; a folder a kind.
//!
//! No client and no runtime here: whoever only wants to read or write a `Memcached` needs no more.

#![deny(missing_docs)]

pub mod admission;
pub mod crd;
pub mod label;
pub mod memcached;

pub use memcached::{Memcached, MemcachedSpec, MemcachedStatus};
