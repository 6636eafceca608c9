//! What people declare: `spec` of a `Memcached`, one file a section.

mod autoscaling;
mod availability;
mod monitoring;
mod security;
mod server;
mod service;
mod workload;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, EnvVar, LocalObjectReference, ResourceRequirements, Toleration, Volume, VolumeMount,
};
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::memcached::MemcachedStatus;

pub use autoscaling::Autoscaling;
pub use availability::{AntiAffinityPreset, GracefulShutdown, HighAvailability, PodDisruptionBudget};
pub use monitoring::{Monitoring, STOCK_EXPORTER, ServiceMonitor};
pub use security::{IssuerRef, NetworkPolicy, Sasl, SaslMode, SecretRef, Security, Tls, TlsMode};
pub use server::{Extstore, Server, VolumeClaim};
pub use service::{ClientService, Service, ServiceType, TrafficPolicy};
pub use workload::{Rollout, WarmRestart, Workload, WorkloadType};

/// What objects may be called: a DNS subdomain.
const OBJECT_NAME: &str = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$";
/// The same, or nothing.
const OPTIONAL_NAME: &str = r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*)?$";

/// A set of memcached servers behind a headless Service; clients shard over them.
#[derive(CustomResource, Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "memcached.c5c3.io",
    version = "v1beta1",
    kind = "Memcached",
    plural = "memcacheds",
    shortname = "mc",
    category = "all",
    namespaced,
    status = "MemcachedStatus",
    doc = "A set of memcached servers behind a headless Service; clients shard over them.",
    derive = "Default",
    derive = "PartialEq",
    crates(kube_core = "::kube_core")
)]
#[allow(clippy::duplicated_attributes, reason = "two columns of one type")]
#[kube(scale(
    spec_replicas_path = ".spec.replicas",
    status_replicas_path = ".status.replicas",
    label_selector_path = ".status.selector"
))]
#[kube(printcolumn(name = "Replicas", type_ = "integer", json_path = ".status.replicas"))]
#[kube(printcolumn(name = "Ready", type_ = "integer", json_path = ".status.readyReplicas"))]
#[kube(printcolumn(name = "Status", type_ = "string", json_path = ".status.phase"))]
#[kube(printcolumn(name = "Version", type_ = "string", json_path = ".status.version"))]
#[kube(printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"))]
#[serde(rename_all = "camelCase")]
pub struct MemcachedSpec {
    /// How many servers. Default 1. Not together with `autoscaling.enabled`, which decides it then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 64))]
    pub replicas: Option<i32>,
    /// The image of memcached. Default `memcached:1.6`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\S*$"), length(max = 1024))]
    pub image: Option<String>,
    /// Shorthand for the image `memcached:<version>`, for example `1.6.45`. Not together with `image`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^[A-Za-z0-9_][A-Za-z0-9_.-]*$"), length(max = 128))]
    pub version: Option<String>,
    /// CPU and memory of the container `memcached`. The memory limit must leave room for
    /// `memcached.maxMemoryMB` and at least 32Mi more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ResourceRequirements>,
    /// How the server runs: memory, connections, threads, item size.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memcached: Option<Server>,
    /// A second, larger tier of the cache on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub extstore: Option<Extstore>,
    /// Spreading, disruption budget and graceful shutdown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high_availability: Option<HighAvailability>,
    /// Prometheus metrics of the servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub monitoring: Option<Monitoring>,
    /// Security contexts, authentication, TLS, network policy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub security: Option<Security>,
    /// Lets a HorizontalPodAutoscaler decide the number of servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub autoscaling: Option<Autoscaling>,
    /// The Services in front of the servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service: Option<Service>,
    /// What runs the pods, and how fast they are replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<Workload>,
    /// Keeps the cache's content across restarts of the server (StatefulSet only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warm_restart: Option<WarmRestart>,
    /// Leaves the children alone while true: nothing is created, changed or deleted. The status goes on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub paused: Option<bool>,
    /// Nodes the pods may run on, by label.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub node_selector: BTreeMap<String, String>,
    /// Taints the pods tolerate.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub tolerations: Vec<Toleration>,
    /// Scheduling preferences; the anti-affinity of `highAvailability` is added to them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub affinity: Option<Affinity>,
    /// The priority of the pods.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = OPTIONAL_NAME), length(max = 253))]
    pub priority_class_name: Option<String>,
    /// The service account of the pods. No token is mounted in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = OPTIONAL_NAME), length(max = 253))]
    pub service_account_name: Option<String>,
    /// Secrets to pull images with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub image_pull_secrets: Vec<LocalObjectReference>,
    /// When images are pulled: Always, IfNotPresent or Never. Default: Always for the tag `latest` or no tag,
    /// IfNotPresent otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["Always", "IfNotPresent", "Never"]))]
    pub image_pull_policy: Option<String>,
    /// More labels for the pods. Those that the operator sets win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_labels: BTreeMap<String, String>,
    /// More annotations for the pods. Those that the operator sets win.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub pod_annotations: BTreeMap<String, String>,
    /// More environment variables for the container `memcached`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub env: Vec<EnvVar>,
    /// More volumes for the pods.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub extra_volumes: Vec<Volume>,
    /// Where the container `memcached` sees those volumes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["mountPath"]))]
    pub extra_volume_mounts: Vec<VolumeMount>,
}
