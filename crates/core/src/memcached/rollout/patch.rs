//! What is written to a pod that is changed in place. One patch each, so that a crash leaves either all of it or nothing.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use memcached_api::label;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::REVISION;
use super::difference::{Effect, SERVER, compare, server_arguments};

/// A change that was made and is not confirmed: what has to be known about it later.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeNote {
    /// The revision that the pod is changed to.
    pub to: String,
    /// When.
    pub since: String,
    /// How often memcached's container had been started again before.
    #[serde(default)]
    pub restarts: i32,
    /// The image that memcached had before, if it gets another one; as the pod has it, which a cluster may have rewritten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// The restart that was ordered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restart: Option<String>,
}

/// A change that was undone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RefusalNote {
    /// The revision that the pod was changed to.
    pub revision: String,
    /// Why it was changed back.
    pub reason: String,
}

/// What a pod is changed from and to, by name of the revision.
pub struct Target<'a> {
    pub from: &'a PodTemplateSpec,
    pub revision: &'a str,
    pub to: &'a PodTemplateSpec,
    /// memcached's image, where it is known under another name than the template's: a cluster may rewrite images as pods
    /// are created, and does not as they are changed.
    pub image: Option<&'a str>,
}

/// Changes a pod in place.
pub fn change(pod: &Pod, target: &Target<'_>, refusal: Option<&RefusalNote>, now: Timestamp) -> Value {
    let Target { from, revision, to, image } = target;
    let difference = compare(from, to);
    let mut labels = changes(&labels_of(from), labels_of(to));
    let mut annotations = changes(&annotations_of(from), annotations_of(to));
    annotations.insert(label::ARGS.into(), json!(arguments(pod, to)));
    let restart = (difference.is_restart && !difference.has_other_server()).then(|| format!("{revision}@{now}"));
    annotations.extend(restart.iter().map(|restart| (label::RESTART.to_owned(), json!(restart))));
    let unconfirmed = super::change_note(pod);
    if unconfirmed.is_none() && matches!(difference.effect, Effect::None | Effect::Live) {
        // Nothing restarts, so there is nothing to wait for.
        labels.insert(REVISION.into(), json!(revision));
    } else {
        let previous = difference.has_other_server().then(|| super::server_image(pod)).flatten();
        let previous = previous.or_else(|| unconfirmed.and_then(|note| note.previous));
        let restarts = super::restart_count(pod);
        let note = ChangeNote { to: (*revision).to_owned(), since: now.to_string(), restarts, previous, restart };
        annotations.insert(label::CHANGE.into(), json!(text(&note)));
    }
    annotations.insert(label::REFUSED.into(), json!(refusal.map(text)));
    let named = |(name, declared): (&String, &String)| {
        let image = image.filter(|_| name == SERVER).unwrap_or(declared);
        json!({"name": name, "image": image})
    };
    let containers: Vec<Value> = difference.images.iter().map(named).collect();
    let mut patch = json!({"metadata": metadata(pod, &labels, &annotations)});
    if let (false, Some(fields)) = (containers.is_empty(), patch.as_object_mut()) {
        fields.insert("spec".into(), json!({"containers": containers}));
    }
    patch
}

/// Writes down that a change is in force: the StatefulSet controller counts the pod as updated from then on.
pub fn confirm(pod: &Pod, revision: &str, now: Timestamp) -> Value {
    let labels = [(REVISION.to_owned(), json!(revision))].into_iter().collect();
    let annotations = [
        (label::CHANGE.to_owned(), Value::Null),
        (label::REFUSED.to_owned(), Value::Null),
        (label::CHANGED_AT.to_owned(), json!(now.to_string())),
    ];
    json!({"metadata": metadata(pod, &labels, &annotations.into_iter().collect())})
}

/// Annotations alone: the kubelet then looks at the pod's volumes at once.
pub fn annotate(pod: &Pod, key: &str, value: &str) -> Value {
    json!({"metadata": {"uid": pod.metadata.uid, "annotations": {key: value}}})
}

/// Another pod of that name, or another version of it, is a conflict.
fn metadata(pod: &Pod, labels: &Map<String, Value>, annotations: &Map<String, Value>) -> Value {
    json!({
        "uid": pod.metadata.uid,
        "resourceVersion": pod.metadata.resource_version,
        "labels": labels,
        "annotations": annotations,
    })
}

/// memcached's arguments for the agent; none where the container has them already.
fn arguments(pod: &Pod, to: &PodTemplateSpec) -> Option<String> {
    let own = server_arguments(&PodTemplateSpec { metadata: None, spec: pod.spec.clone() });
    let desired = server_arguments(to);
    (own != desired).then(|| json!(desired).to_string())
}

fn text(note: &impl Serialize) -> String {
    serde_json::to_string(note).unwrap_or_default()
}

type Texts = BTreeMap<String, String>;

fn labels_of(template: &PodTemplateSpec) -> Texts {
    template.metadata.as_ref().and_then(|metadata| metadata.labels.clone()).unwrap_or_default()
}

fn annotations_of(template: &PodTemplateSpec) -> Texts {
    template.metadata.as_ref().and_then(|metadata| metadata.annotations.clone()).unwrap_or_default()
}

/// What has another value now; null where it is gone.
fn changes(from: &Texts, to: Texts) -> Map<String, Value> {
    let gone = from.keys().filter(|key| !to.contains_key(*key)).map(|key| (key.clone(), Value::Null));
    let gone: Vec<(String, Value)> = gone.collect();
    let set = to.into_iter().filter(|(key, value)| from.get(key) != Some(value));
    gone.into_iter().chain(set.map(|(key, value)| (key, Value::String(value)))).collect()
}

#[cfg(test)]
#[path = "patch_tests.rs"]
mod tests;
