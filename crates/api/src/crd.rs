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

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn every_field_of_ours_is_described() {
        let mut missing = Vec::new();
        for definition in all().unwrap() {
            let kind = definition.spec.names.kind.clone();
            let definition = serde_json::to_value(definition).unwrap();
            for version in definition["spec"]["versions"].as_array().unwrap() {
                undescribed(&kind, &version["schema"]["openAPIV3Schema"]["properties"]["spec"], &mut missing);
            }
        }
        assert_eq!(missing, [""; 0]);
    }

    fn undescribed(path: &str, schema: &Value, missing: &mut Vec<String>) {
        let Some(properties) = schema["properties"].as_object() else { return };
        for (name, field) in properties {
            let path = format!("{path}.{name}");
            if field["description"].as_str().is_none_or(str::is_empty) {
                missing.push(path.clone());
            }
            if EMBEDDED.iter().all(|(embedded, _)| embedded != name) {
                undescribed(&path, field, missing);
            }
        }
    }

    #[test]
    fn definitions_are_small_enough_for_last_applied_annotations() {
        for definition in all().unwrap() {
            let size = serde_json::to_vec(&definition).unwrap().len();
            assert!(size < 256 * 1024, "{:?}: {size} bytes", definition.metadata.name);
        }
    }
}
