//! The CustomResourceDefinitions of the group, one for each kind.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;

use crate::memcached;

/// Fields of Kubernetes' own types, with these types: their descriptions are in Kubernetes' documentation, and would
/// make up nine tenths of ours.
pub const EMBEDDED: [(&str, &str); 17] = [
    ("affinity", "Affinity"),
    ("allowedSources", "[]NetworkPolicyPeer"),
    ("behavior", "HorizontalPodAutoscalerBehavior"),
    ("containerSecurityContext", "SecurityContext"),
    ("env", "[]EnvVar"),
    ("exporterResources", "ResourceRequirements"),
    ("extraVolumeMounts", "[]VolumeMount"),
    ("extraVolumes", "[]Volume"),
    ("imagePullSecrets", "[]LocalObjectReference"),
    ("metrics", "[]MetricSpec"),
    ("metricsSources", "[]NetworkPolicyPeer"),
    ("podSecurityContext", "PodSecurityContext"),
    ("resources", "ResourceRequirements"),
    ("tolerations", "[]Toleration"),
    ("topologySpreadConstraints", "[]TopologySpreadConstraint"),
    ("minAvailable", "IntOrString"),
    ("maxUnavailable", "IntOrString"),
];

/// Every definition: what is installed, packaged and documented. A new kind is added here.
///
/// # Errors
///
/// If what was derived is no CustomResourceDefinition any more after the clean-up: a bug that a test finds.
pub fn all() -> serde_json::Result<Vec<CustomResourceDefinition>> {
    Ok(vec![memcached::crd::definition()?])
}
