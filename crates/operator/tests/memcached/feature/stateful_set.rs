//! StatefulSet mode: the shape of the children. What happens to running pods is tried on a node.

use serde_json::{Value, json};

use super::{child, shows};

fn stateful(mut spec: Value) -> Value {
    spec["workload"]["type"] = json!("StatefulSet");
    spec
}

#[tokio::test]
async fn a_stateful_set_leaves_its_pods_to_us_and_keeps_their_names() {
    let kind = "StatefulSet";
    let always = |pointer: &str, value: Value| child(kind, pointer, value.clone(), value);
    let container = "/spec/template/spec/containers/0";
    let seen = [
        always("/spec/updateStrategy/type", json!("OnDelete")),
        always("/spec/podManagementPolicy", json!("Parallel")),
        child("Deployment", "", Value::Null, Value::Null),
        child("Service", "/spec/publishNotReadyAddresses", json!(true), json!(true)),
        child(kind, &format!("{container}/livenessProbe/httpGet/path"), json!("/healthz"), json!("/healthz")),
        child(kind, &format!("{container}/readinessProbe/httpGet/port"), json!("agent"), json!("agent")),
        child(kind, "/spec/template/spec/initContainers/0/command/1", json!("install"), json!("install")),
    ];
    shows("stateful", stateful(json!({"replicas": 0})), stateful(json!({"replicas": 0, "paused": false})), &seen).await;
}

#[tokio::test]
async fn warm_restart_is_a_volume_that_can_be_left_out() {
    let memory = "/spec/template/spec/volumes/2/emptyDir";
    let seen = [
        child("StatefulSet", memory, Value::Null, json!({"medium": "Memory", "sizeLimit": "136Mi"})),
        child(
            "StatefulSet",
            "/spec/template/spec/volumes/1/name",
            json!("memcached-podinfo"),
            json!("memcached-podinfo"),
        ),
    ];
    let server = json!({"maxMemoryMB": 128});
    let off = stateful(json!({"memcached": server, "warmRestart": {"enabled": false}}));
    shows("warm", off, stateful(json!({"memcached": server})), &seen).await;
}

#[tokio::test]
async fn an_autoscaler_scales_the_stateful_set() {
    let spec = json!({
        "resources": {"requests": {"cpu": "10m"}}, "autoscaling": {"enabled": true, "maxReplicas": 3},
    });
    let seen = [
        child("HorizontalPodAutoscaler", "/spec/scaleTargetRef/kind", json!("StatefulSet"), Value::Null),
        child("StatefulSet", "/spec/replicas", json!(1), json!(0)),
    ];
    shows("stateful-scale", stateful(spec), stateful(json!({"replicas": 0})), &seen).await;
}

#[tokio::test]
async fn the_operator_may_ask_agents_through_a_network_policy() {
    let port = "/spec/ingress/1/ports/0/port";
    let from = "/spec/ingress/1/from/0/namespaceSelector/matchLabels/kubernetes.io~1metadata.name";
    let seen = [
        child("NetworkPolicy", port, json!(9151), Value::Null),
        child("NetworkPolicy", from, json!("memcached-operator-system"), Value::Null),
    ];
    let on = stateful(json!({"security": {"networkPolicy": {"enabled": true}}}));
    shows("stateful-policy", on, stateful(json!({})), &seen).await;
}
