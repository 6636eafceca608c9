//! Objects of others are neither changed nor deleted, whatever they are called.

use serde_json::{Value, json};

use crate::drift::everything;
use crate::harness::{Arena, condition, without_noise};

fn unowned(kind: &str) -> Value {
    let spec = match kind {
        "Service" => json!({"ports": [{"port": 80}]}),
        "PodDisruptionBudget" => json!({"maxUnavailable": 1, "selector": {"matchLabels": {"a": "b"}}}),
        "NetworkPolicy" => json!({"podSelector": {}}),
        "HorizontalPodAutoscaler" => json!({
            "maxReplicas": 2, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "x"},
        }),
        _ => json!({
            "replicas": 1, "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "x", "image": "x"}]},
            },
        }),
    };
    let version = match kind {
        "Service" => "v1",
        "PodDisruptionBudget" => "policy/v1",
        "NetworkPolicy" => "networking.k8s.io/v1",
        "HorizontalPodAutoscaler" => "autoscaling/v2",
        _ => "apps/v1",
    };
    json!({"apiVersion": version, "kind": kind, "metadata": {"name": "sessions"}, "spec": spec})
}

/// What its maker wrote; its own controllers may go on writing its status.
fn declared(object: Value) -> Value {
    let object = without_noise(object);
    json!([
        object["metadata"]["uid"],
        object["metadata"]["labels"],
        object["metadata"]["ownerReferences"],
        object["spec"]
    ])
}

async fn is_left_alone_and_reported(kind: &str, wanting: Value) {
    let arena = Arena::shared().await;
    let place = arena.namespace("unowned").await;
    place.create(&unowned(kind));
    let before = declared(place.get(kind, "sessions").unwrap());
    place.declare("sessions", wanting).await;
    let cache =
        place.eventually("memcached", "sessions", "told", |c| condition(c, "Degraded")["reason"] == "NameTaken").await;
    let message = condition(&cache, "Degraded")["message"].as_str().unwrap().to_owned();
    assert!(
        message.contains(&format!("{kind} \"sessions\" exists")) && message.contains("delete or rename"),
        "{message}"
    );
    assert_eq!(declared(place.get(kind, "sessions").unwrap()), before);
    if kind != "Service" {
        place.eventually("service", "sessions", "made all the same", |s| s["spec"]["clusterIP"] == "None").await;
    }
    let events = place.namespace.kubectl(&["get", "events", "--output", "json"]).unwrap();
    assert!(events.contains("\"reason\": \"NameTaken\""), "{events}");

    place.declare("sessions", json!({"replicas": 0})).await;
    place.settled("sessions").await;
    assert_eq!(declared(place.get(kind, "sessions").unwrap()), before, "not wanting it does not delete it");
    place.namespace.kubectl(&["delete", kind, "sessions"]).unwrap();
}

#[tokio::test]
async fn an_unowned_deployment() {
    is_left_alone_and_reported("Deployment", everything()).await;
}

#[tokio::test]
async fn an_unowned_service() {
    is_left_alone_and_reported("Service", everything()).await;
}

#[tokio::test]
async fn an_unowned_budget() {
    is_left_alone_and_reported("PodDisruptionBudget", everything()).await;
}

#[tokio::test]
async fn an_unowned_network_policy() {
    is_left_alone_and_reported("NetworkPolicy", everything()).await;
}

#[tokio::test]
async fn an_unowned_autoscaler() {
    let wanting = json!({
        "resources": {"requests": {"cpu": "10m"}},
        "autoscaling": {"enabled": true, "maxReplicas": 3},
    });
    is_left_alone_and_reported("HorizontalPodAutoscaler", wanting).await;
}

#[tokio::test]
async fn removing_the_unowned_object_heals() {
    let arena = Arena::shared().await;
    let place = arena.namespace("heals").await;
    place.create(&unowned("NetworkPolicy"));
    place.declare("sessions", everything()).await;
    place.eventually("memcached", "sessions", "told", |c| condition(c, "Degraded")["reason"] == "NameTaken").await;
    place.namespace.kubectl(&["delete", "networkpolicy", "sessions"]).unwrap();
    place.eventually("memcached", "sessions", "healed", |c| condition(c, "Degraded")["reason"] == "NotDegraded").await;
    assert!(place.get("networkpolicy", "sessions").unwrap()["metadata"]["ownerReferences"].is_array());
}
