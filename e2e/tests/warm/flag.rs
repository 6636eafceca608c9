//! Other flags: in place where memcached can take its memory up again, announced where it cannot.

use e2e::pod::container;
use serde_json::{Value, json};
use testbed::Node;

use crate::client::{fill, kept};
use crate::{identities, ready_with, set, stateful};

const KEYS: usize = 10_000;

fn events(stage: &e2e::stage::Stage, reason: &str) -> String {
    let field = format!("reason={reason}");
    let columns = "custom-columns=NOTE:.message";
    let words = ["get", "events", "--field-selector", &field, "--no-headers", "--output", columns];
    stage.namespace.kubectl(&words).unwrap()
}

#[tokio::test]
async fn flags_change_in_place_and_only_what_lays_memory_out_starts_empty() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "flags").await;
    let with = |server: Value| stateful(&json!({"memcached": server}));
    stage.declare("sessions", &with(json!({"threads": 2}))).unwrap();
    let before = ready_with(&stage, "1.6.38").await;
    fill(&before[0], KEYS).await;
    // Warm: threads, connections, another option.
    let warm = json!({"threads": 3, "maxConnections": 2048, "extraArgs": ["-R", "50"]});
    stage.declare("sessions", &with(warm)).unwrap();
    let after = ready_with(&stage, "1.6.38").await;
    assert_eq!(identities(&after), identities(&before));
    assert_eq!(container(&after[0], "memcached").unwrap().restart_count, 0, "only memcached itself restarts");
    assert_eq!(kept(&after[0], KEYS).await, KEYS);
    // Cold in place: the size of items.
    stage.declare("sessions", &with(json!({"maxItemSize": "2m"}))).unwrap();
    let after = ready_with(&stage, "1.6.38").await;
    assert_eq!(identities(&after), identities(&before));
    assert_eq!(kept(&after[0], KEYS).await, 0);
    let told = events(&stage, "PodChangedInPlace");
    assert!(told.contains("in place and warm") && told.contains("in place and cold"), "{told}");
    // Another pod: more memory. That is told before.
    stage.declare("sessions", &with(json!({"maxMemoryMB": 96}))).unwrap();
    let after = ready_with(&stage, "1.6.38").await;
    assert_ne!(identities(&after), identities(&before));
    let told = events(&stage, "PodWillBeReplaced");
    assert!(told.contains("sizeLimit"), "{told}");
}

#[tokio::test]
async fn a_restart_that_kubectl_asks_for_is_warm() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "restart").await;
    stage.declare("sessions", &stateful(&json!({"replicas": 2}))).unwrap();
    let before = ready_with(&stage, "1.6.38").await;
    for pod in &before {
        fill(pod, KEYS).await;
    }
    stage.namespace.kubectl(&["rollout", "restart", "statefulset", "sessions"]).unwrap();
    let is_updated = |cache: &Value| {
        let text = stage.namespace.kubectl(&["get", "statefulset", "sessions", "--output", "json"]).unwrap();
        let stateful_set: Value = serde_json::from_str(&text).unwrap();
        let status = &stateful_set["status"];
        let is_seen = status["observedGeneration"] == stateful_set["metadata"]["generation"];
        is_seen && status["updatedReplicas"] == 2 && cache["status"]["readyReplicas"] == 2
    };
    stage.until("sessions", "restarted", is_updated).await.unwrap();
    let after = ready_with(&stage, "1.6.38").await;
    assert_eq!(identities(&after), identities(&before));
    for pod in &after {
        assert_eq!(kept(pod, KEYS).await, KEYS);
    }
    let told = events(&stage, "PodChangedInPlace");
    assert_eq!(told.lines().count(), 2, "{told}");
}
