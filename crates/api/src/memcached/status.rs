//! The kind `Memcached` and its status.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memcached::spec::WorkloadType;

/// What the operator has seen of the cache.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct MemcachedStatus {
    /// Available, Progressing, Degraded and Ready, each with a reason and a message for people.
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["type"]))]
    pub conditions: Vec<Condition>,
    /// How many servers answer.
    pub ready_replicas: i32,
    /// How many servers there are.
    pub replicas: i32,
    /// The label selector of the servers, for the scale subresource and autoscalers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<String>,
    /// The generation of the declaration that this status speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Where clients connect: one entry for a Deployment, one stable name a server for a StatefulSet.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub server_list: Vec<String>,
    /// The names of the pods.
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub nodes: Vec<String>,
    /// The version of memcached that is declared: the image's tag.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// What runs the pods.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workload_type: Option<WorkloadType>,
    /// One or two words on how the cache is, for `kubectl get`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// Set when this version of the operator would build the pods differently. Pods are never restarted
    /// for that alone; the text says how to take the new defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_defaults: Option<String>,
}
