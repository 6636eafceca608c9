//! A real Kubernetes on one machine, without Docker or a registry.
//!
//! Two shapes: a [`ControlPlane`] (etcd, API server, controller manager on loopback, no root) that
//! dies with its guard, and a [`Node`] (all of that plus kubelet and containers, in namespaces of its
//! own) that a whole test run shares. Both hand out a [`Cluster`] to work with.

pub mod artifact;
pub mod audit;
pub mod cert_manager;
pub mod cli;
pub mod cluster;
pub mod error;
pub mod fleet;
pub mod home;
pub mod install;
pub mod namespace;
pub mod oci;
pub mod pki;
pub mod program;
pub mod progress;
pub mod server;
pub mod store;
pub mod wait;

pub use cluster::Cluster;
pub use cluster::control_plane::ControlPlane;
pub use cluster::node::Node;
pub use error::{Error, Result};
pub use pki::User;
pub use program::spawn;
pub use server::Server;
