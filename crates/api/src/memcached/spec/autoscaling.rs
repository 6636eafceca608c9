//! Lets a HorizontalPodAutoscaler decide the number of servers.

use k8s_openapi::api::autoscaling::v2::{HorizontalPodAutoscalerBehavior, MetricSpec};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lets a HorizontalPodAutoscaler decide the number of servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Autoscaling {
    /// Creates the HorizontalPodAutoscaler. `replicas` must not be given then.
    pub enabled: bool,
    /// Never fewer servers than this. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub min_replicas: Option<i32>,
    /// Never more servers than this. Required when enabled.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub max_replicas: Option<i32>,
    /// What decides. Default: 80 % of the requested CPU.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub metrics: Vec<MetricSpec>,
    /// How fast. Default: scaling down waits for 300 seconds of agreement.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behavior: Option<HorizontalPodAutoscalerBehavior>,
}
