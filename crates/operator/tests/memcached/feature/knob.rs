//! The pod knobs: each is passed on as it is.

use serde_json::{Value, json};

use super::{deployment, pod, server, shows};

/// A knob that reaches the pods under its own name.
async fn passed_on(name: &str, value: Value, off: Value) {
    let seen = [pod(&format!("/{name}"), value.clone(), off)];
    shows("knob", json!({name: value}), json!({}), &seen).await;
}

#[tokio::test]
async fn node_selector() {
    passed_on("nodeSelector", json!({"disk": "fast"}), json!(null)).await;
}

#[tokio::test]
async fn tolerations() {
    passed_on("tolerations", json!([{"key": "cache", "operator": "Exists"}]), json!(null)).await;
}

#[tokio::test]
async fn priority_class() {
    passed_on("priorityClassName", json!("system-cluster-critical"), json!(null)).await;
}

#[tokio::test]
async fn service_account() {
    passed_on("serviceAccountName", json!("cache"), json!(null)).await;
}

#[tokio::test]
async fn image_pull_secrets() {
    passed_on("imagePullSecrets", json!([{"name": "pull"}]), json!(null)).await;
}

#[tokio::test]
async fn affinity() {
    let term = json!({"matchExpressions": [{"key": "disk", "operator": "In", "values": ["fast"]}]});
    let affinity = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]},
    }});
    passed_on("affinity", affinity, json!(null)).await;
}

#[tokio::test]
async fn image_pull_policy() {
    let seen = [server("/imagePullPolicy", json!("Always"), json!("IfNotPresent"))];
    shows("pull", json!({"imagePullPolicy": "Always"}), json!({}), &seen).await;
    // Of its own accord the API server would keep the policy that it chose for the image before.
    shows("pull", json!({"image": "memcached:latest"}), json!({"image": "memcached:1.6"}), &seen).await;
}

#[tokio::test]
async fn pod_labels() {
    let seen = [
        deployment("/spec/template/metadata/labels/team", json!("shop"), json!(null)),
        deployment("/spec/selector/matchLabels/team", json!(null), json!(null)),
    ];
    shows("labels", json!({"podLabels": {"team": "shop"}}), json!({}), &seen).await;
}

#[tokio::test]
async fn pod_annotations() {
    let seen = [deployment("/spec/template/metadata/annotations/note", json!("x"), json!(null))];
    shows("annotations", json!({"podAnnotations": {"note": "x"}}), json!({}), &seen).await;
}

#[tokio::test]
async fn env() {
    let seen = [server("/env", json!([{"name": "A", "value": "b"}]), json!(null))];
    shows("env", json!({"env": [{"name": "A", "value": "b"}]}), json!({}), &seen).await;
}

#[tokio::test]
async fn extra_volumes() {
    let seen = [
        pod("/volumes/0/name", json!("scratch"), json!(null)),
        server("/volumeMounts", json!([{"name": "scratch", "mountPath": "/scratch"}]), json!(null)),
    ];
    let on = json!({
        "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    });
    shows("volumes", on, json!({}), &seen).await;
}
