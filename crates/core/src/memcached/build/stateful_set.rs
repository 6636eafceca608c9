//! The StatefulSet that runs the servers. Its controller makes pods and gives them names; when one is changed or replaced
//! is the operator's to say, so that it keeps its memory: `OnDelete`.

use k8s_openapi::api::apps::v1::{StatefulSet, StatefulSetSpec, StatefulSetUpdateStrategy};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use memcached_api::label;

use super::metadata::{metadata, selector};
use crate::memcached::validate::Validated;

/// The StatefulSet of a cache whose pods are built from `template`; `replicas` is none where somebody else decides it.
pub fn build_stateful_set(cache: &Validated, template: PodTemplateSpec, replicas: Option<i32>) -> StatefulSet {
    let mut meta = metadata(cache, &cache.name);
    let running = template.metadata.as_ref().and_then(|pods| pods.labels.as_ref()?.get_key_value(label::VERSION));
    meta.labels.get_or_insert_default().extend(running.map(|(key, value)| (key.clone(), value.clone())));
    StatefulSet {
        metadata: meta,
        spec: Some(StatefulSetSpec {
            replicas,
            selector: selector(&cache.name),
            // Pods have their names below the headless Service.
            service_name: Some(cache.name.clone()),
            // In order, one that does not start would keep another that was deleted from coming back.
            pod_management_policy: Some("Parallel".into()),
            update_strategy: Some(StatefulSetUpdateStrategy { type_: Some("OnDelete".into()), rolling_update: None }),
            template,
            ..StatefulSetSpec::default()
        }),
        status: None,
    }
}
