//! What is kept of an object in a store: all that a reconcile reads, and nothing that only fills memory.
//! A pod as the API server has it takes some 10 kB, of which a status reads a tenth.

use std::collections::BTreeMap;

use kube_core::DynamicObject;
use serde_json::{Map, Value, json};

use crate::resource::{
    CERTIFICATE, HORIZONTAL_POD_AUTOSCALER, NETWORK_POLICY, POD, POD_DISRUPTION_BUDGET, ResourceType, SERVICE,
    SERVICE_MONITOR,
};

/// What `kubectl apply` keeps for itself: the object once more, as text.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Kinds whose status nobody reads. Some change with every pod; their objects then look the same as before.
const WITHOUT_STATUS: [ResourceType; 6] =
    [CERTIFICATE, HORIZONTAL_POD_AUTOSCALER, NETWORK_POLICY, POD_DISRUPTION_BUDGET, SERVICE, SERVICE_MONITOR];

/// Removes what no reconcile reads of an object of this kind; of pods, these annotations are read.
pub fn trim(resource: ResourceType, object: &mut DynamicObject, pod_annotations: &[&str]) {
    trim_metadata(object);
    if resource == POD {
        trim_pod(object, pod_annotations);
    } else if WITHOUT_STATUS.contains(&resource)
        && let Some(fields) = object.data.as_object_mut()
    {
        fields.remove("status");
    }
}

/// Removes what no reconcile reads of any object. Its managed fields stay: see [`crate::managed`].
pub fn trim_metadata(object: &mut DynamicObject) {
    // A list does not say it, an event does: that is no difference.
    object.types = None;
    object.metadata.self_link = None;
    if let Some(annotations) = &mut object.metadata.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

/// A pod is read for what keeps it from being ready; of one that is, nothing more is.
fn trim_pod(pod: &mut DynamicObject, annotations: &[&str]) {
    keep(&mut pod.metadata.annotations, annotations);
    keep(&mut pod.metadata.labels, &[REVISION]);
    pod.metadata.generate_name = None;
    pod.metadata.generation = None;
    pod.metadata.managed_fields = None;
    pod.metadata.owner_references = None;
    let status = pod.data.get("status").map(|status| {
        let conditions = status.get("conditions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
        if conditions.iter().any(|condition| is(condition, READY) && condition.get("status") == Some(&"True".into())) {
            return json!({"conditions": [{"type": READY, "status": "True"}]});
        }
        let mut kept = Map::new();
        let read = conditions.iter().filter(|condition| is(condition, READY) || is(condition, SCHEDULED));
        kept.insert("conditions".into(), read.map(|condition| picked(condition, CONDITION)).collect());
        for list in ["initContainerStatuses", "containerStatuses"] {
            if let Some(items) = status.get(list).and_then(Value::as_array) {
                kept.insert(list.into(), items.iter().map(|item| picked(item, CONTAINER_STATUS)).collect());
            }
        }
        Value::Object(kept)
    });
    pod.data = Value::Object(status.map(|status| ("status".to_owned(), status)).into_iter().collect());
}

/// The label by which a StatefulSet's controller tells of which template a pod is.
const REVISION: &str = "controller-revision-hash";

/// What is longer was written by somebody else.
const LONGEST_TEXT: usize = 1024;

fn keep(texts: &mut Option<BTreeMap<String, String>>, keys: &[&str]) {
    if let Some(all) = texts {
        all.retain(|key, value| keys.contains(&key.as_str()) && value.len() <= LONGEST_TEXT);
    }
    *texts = texts.take().filter(|kept| !kept.is_empty());
}

/// The conditions of a pod that are read.
const READY: &str = "Ready";
const SCHEDULED: &str = "PodScheduled";

fn is(condition: &Value, type_: &str) -> bool {
    condition.get("type").is_some_and(|is| is == type_)
}

const CONDITION: &[&str] = &["type", "status", "reason", "message", "lastTransitionTime"];
/// `imageID` is required by the type that reads it, and long: it is left empty.
const CONTAINER_STATUS: &[&str] = &["name", "image", "ready", "restartCount", "state", "lastState"];

fn picked(item: &Value, fields: &[&str]) -> Value {
    let mut kept = Map::new();
    copy(item, &mut kept, fields);
    if kept.contains_key("restartCount") {
        kept.insert("imageID".into(), "".into());
    }
    Value::Object(kept)
}

fn copy(from: &Value, into: &mut Map<String, Value>, fields: &[&str]) {
    for field in fields {
        match from.get(field) {
            None | Some(Value::Null) => {}
            Some(Value::Object(empty)) if empty.is_empty() => {}
            Some(value) => {
                into.insert((*field).to_owned(), value.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::Pod;
    use serde_json::json;

    use super::*;

    fn object(value: Value) -> DynamicObject {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn a_trimmed_pod_still_tells_why_it_is_not_ready() {
        let mut pod = object(json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {
                "name": "a-1", "namespace": "shop", "uid": "7", "creationTimestamp": "2026-01-01T00:00:00Z",
                "labels": {"a": "b"}, "annotations": {"c": "d"}, "managedFields": [{"manager": "kubelet"}],
            },
            "spec": {"containers": [{"name": "memcached", "image": "memcached:1.6"}]},
            "status": {
                "phase": "Running", "podIP": "10.0.0.1",
                "conditions": [{
                    "type": "Ready", "status": "False", "reason": "ContainersNotReady", "lastProbeTime": null,
                    "lastTransitionTime": "2026-01-01T00:00:01Z",
                }],
                "containerStatuses": [{
                    "name": "memcached", "image": "memcached:1.6", "imageID": "sha256:0123", "ready": false,
                    "restartCount": 3, "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}},
                    "lastState": {"terminated": {"exitCode": 1, "message": "failed to listen"}},
                    "resources": {}, "volumeMounts": [],
                }],
            },
        }));
        trim(POD, &mut pod, &["note"]);
        assert_eq!(pod.data.as_object().unwrap().len(), 1, "no spec: {}", pod.data);
        assert!(pod.metadata.labels.is_none() && pod.metadata.managed_fields.is_none());
        let pod: Pod = serde_json::from_value(serde_json::to_value(&pod).unwrap()).unwrap();
        assert_eq!(pod.metadata.name.as_deref(), Some("a-1"));
        let status = pod.status.unwrap();
        let container = &status.container_statuses.unwrap()[0];
        let waiting = container.state.as_ref().unwrap().waiting.as_ref().unwrap();
        assert_eq!(waiting.reason.as_deref(), Some("CrashLoopBackOff"));
        let last = container.last_state.as_ref().unwrap().terminated.as_ref().unwrap();
        assert_eq!((last.message.as_deref(), container.restart_count), (Some("failed to listen"), 3));
        assert_eq!(status.conditions.unwrap()[0].reason.as_deref(), Some("ContainersNotReady"));
    }

    #[test]
    fn what_a_rollout_reads_of_a_pod_is_kept() {
        let mut pod = object(json!({
            "metadata": {
                "name": "a-0", "labels": {REVISION: "a-1", "team": "b"}, "annotations": {"note": "x", "other": "y"},
            },
        }));
        trim(POD, &mut pod, &["note"]);
        assert_eq!(pod.metadata.labels, Some([(REVISION.to_owned(), "a-1".to_owned())].into()));
        assert_eq!(pod.metadata.annotations, Some([("note".to_owned(), "x".to_owned())].into()));
    }

    #[test]
    fn a_pod_that_is_ready_looks_the_same_whatever_else_is_told_of_it() {
        let pod = |started: &str, address: &str| {
            let mut pod = object(json!({
                "apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a-1", "ownerReferences": []},
                "status": {
                    "phase": "Running", "podIP": address,
                    "conditions": [
                        {"type": "Initialized", "status": "True"},
                        {"type": "Ready", "status": "True", "lastTransitionTime": started},
                    ],
                    "containerStatuses": [{
                        "name": "memcached", "image": "x", "ready": true, "restartCount": 1,
                        "state": {"running": {"startedAt": started}},
                    }],
                },
            }));
            trim(POD, &mut pod, &[]);
            pod
        };
        assert_eq!(pod("2026-01-01T00:00:00Z", "10.0.0.1"), pod("2026-01-02T00:00:00Z", "10.0.0.2"));
        assert_eq!(pod("", "").data, json!({"status": {"conditions": [{"type": "Ready", "status": "True"}]}}));
    }

    #[test]
    fn a_budget_looks_the_same_whatever_its_status() {
        let budget = |allowed: i32| {
            let mut budget = object(json!({
                "apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "a"},
                "spec": {"minAvailable": 1}, "status": {"disruptionsAllowed": allowed},
            }));
            trim(POD_DISRUPTION_BUDGET, &mut budget, &[]);
            budget
        };
        assert_eq!(budget(1), budget(2));
        assert_eq!(budget(1).data, json!({"spec": {"minAvailable": 1}}));
    }

    #[test]
    fn what_kubectl_keeps_for_itself_is_left_out() {
        let annotations = json!({LAST_APPLIED: "{}", "team": "a"});
        let metadata = json!({"name": "a", "annotations": annotations});
        let mut service = object(json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata}));
        trim(SERVICE, &mut service, &[]);
        assert_eq!(service.metadata.annotations.unwrap().into_keys().collect::<Vec<_>>(), ["team"]);
    }
}
