//! What runs beside memcached in its pod. It knows nothing of Kubernetes: files, sockets and signals are all it has.

pub mod args;
mod chain;
pub mod exporter;
mod http;
pub mod install;
pub mod log;
pub mod supervisor;
pub mod trial;

pub use chain::Chain;
