//! Measures operators of `Memcached` objects: time, requests, memory, CPU, connections.
//! Ours, another one, and what bare requests would take, each on a fresh control plane.

pub mod arena;
pub mod bare;
pub mod cli;
pub mod error;
pub mod machine;
pub mod meter;
pub mod number;
pub mod object;
pub mod outcome;
pub mod plan;
pub mod process;
pub mod procfs;
pub mod report;
pub mod request;
pub mod scenario;
pub mod session;
pub mod tracker;
pub mod traffic;

pub use error::{Error, Result};
