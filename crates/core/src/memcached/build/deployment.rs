//! The Deployment that runs the servers.

use k8s_openapi::api::apps::v1::{Deployment, DeploymentSpec, DeploymentStrategy, RollingUpdateDeployment};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::label;
use memcached_api::memcached::spec::Rollout;

use super::anti_affinity::keeps_apart;
use super::metadata::{metadata, selector};
use crate::memcached::validate::Validated;

pub fn build_deployment(cache: &Validated, template: PodTemplateSpec, replicas: Option<i32>) -> Deployment {
    let mut meta = metadata(cache, &cache.name);
    // The version that runs, not the one that pods built anew would have: an upgrade of the operator changes nothing.
    let running = template.metadata.as_ref().and_then(|pods| pods.labels.as_ref()?.get_key_value(label::VERSION));
    meta.labels.get_or_insert_default().extend(running.map(|(key, value)| (key.clone(), value.clone())));
    let rollout = cache.spec.workload.as_ref().and_then(|workload| workload.rollout.clone()).unwrap_or_default();
    Deployment {
        metadata: meta,
        spec: Some(DeploymentSpec {
            replicas,
            selector: selector(&cache.name),
            strategy: Some(strategy(cache)),
            min_ready_seconds: rollout.min_ready_seconds,
            progress_deadline_seconds: rollout.progress_deadline_seconds.or_else(|| longer_deadline(&rollout)),
            template,
            ..DeploymentSpec::default()
        }),
        status: None,
    }
}

/// The deadline must be longer than a pod waits; where the API server's own is not, the wait and that again.
fn longer_deadline(rollout: &Rollout) -> Option<i32> {
    const DEFAULT: i32 = 600;
    rollout.min_ready_seconds.filter(|wait| *wait >= DEFAULT).map(|wait| wait.saturating_add(DEFAULT))
}

/// One pod at a time, the new one first; where two cannot share a node, the new one would wait forever for a
/// free node, so there the old one goes first.
fn strategy(cache: &Validated) -> DeploymentStrategy {
    let (surge, unavailable) = if keeps_apart(cache) { (0, 1) } else { (1, 0) };
    DeploymentStrategy {
        type_: Some("RollingUpdate".into()),
        rolling_update: Some(RollingUpdateDeployment {
            max_surge: Some(IntOrString::Int(surge)),
            max_unavailable: Some(IntOrString::Int(unavailable)),
        }),
    }
}
