//! What an operator decides where a declaration is silent. Another version may decide otherwise: that alone
//! restarts nothing (see [`crate::memcached::revision`]).

use memcached_api::memcached::spec::{STOCK_EXPORTER, WorkloadType};

/// The image when nothing is declared.
pub const DEFAULT_IMAGE: &str = "memcached:1.6";

/// The defaults that shape pods.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodDefaults {
    /// What runs the pods of a new cache.
    pub workload: WorkloadType,
    /// memcached's image.
    pub image: String,
    /// The exporter's image.
    pub exporter_image: String,
    /// The image with our own agent, which is the exporter of caches with passwords.
    pub agent_image: String,
    /// The operator's own namespace, from which it asks agents.
    pub operator_namespace: String,
    /// Seconds before and between readiness probes.
    pub readiness_seconds: i32,
    /// Seconds before and between liveness probes.
    pub liveness_seconds: i32,
}

impl Default for PodDefaults {
    fn default() -> Self {
        Self {
            workload: WorkloadType::default(),
            image: DEFAULT_IMAGE.into(),
            exporter_image: STOCK_EXPORTER.into(),
            agent_image: concat!("memcached-operator:", env!("CARGO_PKG_VERSION")).into(),
            operator_namespace: "memcached-operator-system".into(),
            readiness_seconds: 5,
            liveness_seconds: 10,
        }
    }
}
