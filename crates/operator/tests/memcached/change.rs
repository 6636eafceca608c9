//! Rows of the documentation's table "What each change does", on an API server: which changes replace pods.
//!
//! Every row is tried without a cluster by the tests of `memcached-core`.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::harness::{Arena, Place, is};

/// The uids of a cache's pods that are not terminating.
fn pods(place: &Place<'_>) -> BTreeSet<String> {
    let selector = "--selector=app.kubernetes.io/instance=sessions";
    let text = place.namespace.kubectl(&["get", "pods", selector, "--output", "json"]).unwrap();
    let list: Value = serde_json::from_str(&text).unwrap();
    let all = list["items"].as_array().cloned().unwrap_or_default();
    let staying = all.iter().filter(|pod| pod["metadata"]["deletionTimestamp"].is_null());
    staying.filter_map(|pod| pod["metadata"]["uid"].as_str().map(str::to_owned)).collect()
}

fn template(place: &Place<'_>) -> Value {
    place.get("deployment", "sessions").unwrap()["spec"]["template"].clone()
}

/// A cache whose rollout is complete.
async fn rolled_out(place: &Place<'_>) -> Value {
    let is_done = |cache: &Value| {
        cache["status"]["observedGeneration"] == cache["metadata"]["generation"]
            && is(cache, "Ready", "True")
            && is(cache, "Progressing", "False")
    };
    place.eventually("memcached", "sessions", "rolled out", is_done).await
}

fn with(section: Value) -> Value {
    json!({"replicas": 2, "highAvailability": section})
}

#[tokio::test]
async fn a_disruption_budget_restarts_nothing_and_a_preset_does() {
    let arena = Arena::shared().await;
    let place = arena.namespace("change").await;
    place.declare("sessions", json!({"replicas": 2})).await;
    rolled_out(&place).await;
    let (before, running) = (template(&place), pods(&place));
    let budget = json!({"enabled": true, "minAvailable": 1});
    for spec in [
        with(json!({"podDisruptionBudget": budget})),
        with(json!({"gracefulShutdown": {"enabled": false}})),
        json!({"replicas": 2, "security": {"networkPolicy": {"enabled": true}}}),
        json!({"replicas": 2, "service": {"type": "ClusterIP"}}),
        json!({"replicas": 2, "workload": {"rollout": {"minReadySeconds": 1}}}),
        json!({"replicas": 2, "image": "memcached:1.6", "imagePullPolicy": "IfNotPresent"}),
    ] {
        place.declare("sessions", spec.clone()).await;
        let cache = rolled_out(&place).await;
        assert_eq!(template(&place), before, "{spec}");
        assert_eq!(pods(&place), running, "{spec}");
        let pending = cache["status"]["pendingDefaults"].as_str().unwrap_or_default();
        assert_eq!(pending.contains("affinity"), spec.get("highAvailability").is_some(), "{spec}: {pending}");
    }
    place.declare("sessions", with(json!({"antiAffinityPreset": "soft"}))).await;
    let is_apart = |d: &Value| d["spec"]["template"]["spec"]["affinity"]["podAntiAffinity"].is_object();
    place.eventually("deployment", "sessions", "apart", is_apart).await;
    rolled_out(&place).await;
    assert!(pods(&place).is_disjoint(&running), "who says it gets it");
}
