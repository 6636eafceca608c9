//! The runtime of a Kubernetes operator, whatever it operates.
//!
//! Leadership, retries, telemetry and the servers beside the work: nothing in here knows a product.

#![deny(missing_docs)]

pub mod admin;
pub mod apply;
pub mod backoff;
pub mod certificate;
pub mod lease;
pub mod metrics;
pub mod reference;
pub mod shutdown;
pub mod telemetry;
pub mod watch;
pub mod webhook;
