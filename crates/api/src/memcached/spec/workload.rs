//! What runs the pods.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What runs the pods, and how fast they are replaced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Workload {
    /// `Deployment` replaces a pod, and what it holds, for every change. `StatefulSet` changes pods in place: a new
    /// version, a flag, a certificate or a password leaves what they hold. Absent: what there is, and for a new cache what
    /// the operator's `--default-workload` says, as a rule a Deployment. Cannot be changed later.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<WorkloadType>,
    /// How fast pods are replaced.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rollout: Option<Rollout>,
}

/// The kind of workload.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "a described variant would turn the enum into a list of alternatives")]
pub enum WorkloadType {
    #[default]
    Deployment,
    StatefulSet,
}

/// How fast pods are replaced.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Rollout {
    /// How long a new server must be ready before the next one is replaced, in seconds: time for clients to
    /// fill it. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3600))]
    pub min_ready_seconds: Option<i32>,
    /// How long a rollout may stand still before it is called stuck, in seconds. Default 600.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 86400))]
    pub progress_deadline_seconds: Option<i32>,
    /// How many servers of a StatefulSet may be unavailable at once while they are changed. Default 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub max_unavailable: Option<i32>,
    /// How long to wait after each server of a StatefulSet that was changed before the next one is, in seconds. Default 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 3600))]
    pub pause_seconds: Option<i32>,
}

/// Keeps the cache's content across restarts of the server (StatefulSet only).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct WarmRestart {
    /// Keeps items in a memory volume that outlives the server's process. Default true for a StatefulSet, unless it has
    /// an `extstore` or scales by memory.
    pub enabled: bool,
}
