//! The runtime of a Kubernetes operator, whatever it operates.
//!
//! Leadership, retries, telemetry and the servers beside the work: nothing in here knows a product.

#![deny(missing_docs)]

pub mod admin;
pub mod backoff;
pub mod certificate;
pub mod children;
pub mod client;
pub mod controller;
pub mod event;
pub mod http;
pub mod lease;
pub mod metrics;
pub mod packed;
pub mod reference;
pub mod shutdown;
pub mod status;
pub mod task;
pub mod telemetry;
pub mod watch;
pub mod watched;
pub mod webhook;

/// How long a request may take. A write must be over before another process could lead: this is the lease's duration
/// less its renew deadline.
pub const REQUEST_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(5);
