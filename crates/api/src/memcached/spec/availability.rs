//! Spreading, disruption budget and graceful shutdown.

use k8s_openapi::api::core::v1::TopologySpreadConstraint;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Spreading, disruption budget and graceful shutdown.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct HighAvailability {
    /// Keeps servers of this cache off each other's nodes: `soft` where possible, `hard` always. Without it pods that
    /// are built anew get `soft`; running ones are not restarted for that.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anti_affinity_preset: Option<AntiAffinityPreset>,
    /// Spreads the pods over zones or other domains. A missing labelSelector selects this cache's pods.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub topology_spread_constraints: Vec<TopologySpreadConstraint>,
    /// Limits how many servers a voluntary disruption (a node drain) may take at once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_disruption_budget: Option<PodDisruptionBudget>,
    /// Gives clients time to go elsewhere before a server ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub graceful_shutdown: Option<GracefulShutdown>,
}

/// How strongly servers avoid each other's nodes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs, reason = "a described variant would turn the enum into a list of alternatives")]
pub enum AntiAffinityPreset {
    #[default]
    Soft,
    Hard,
}

/// What a text may be where a number is meant.
const PERCENTAGE: &str = "^(100|[0-9]{1,2})%$";

/// Limits voluntary disruptions. One of `minAvailable` and `maxUnavailable`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct PodDisruptionBudget {
    /// Creates the PodDisruptionBudget.
    pub enabled: bool,
    /// How many servers must stay: a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = PERCENTAGE))]
    pub min_available: Option<IntOrString>,
    /// How many servers may be gone: a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = PERCENTAGE))]
    pub max_unavailable: Option<IntOrString>,
}

/// A pause between the end of a pod's endpoints and the end of its server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct GracefulShutdown {
    /// Waits before the server is told to end.
    pub enabled: bool,
    /// How long to wait, in seconds.
    #[schemars(range(min = 1, max = 300))]
    pub pre_stop_delay_seconds: i64,
    /// How long the pod may take to end in all; more than the wait.
    #[schemars(range(min = 1, max = 600))]
    pub termination_grace_period_seconds: i64,
}

impl Default for GracefulShutdown {
    fn default() -> Self {
        Self { enabled: false, pre_stop_delay_seconds: 10, termination_grace_period_seconds: 30 }
    }
}
