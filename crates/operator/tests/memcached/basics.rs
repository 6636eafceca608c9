//! A declaration becomes children and a status.

use crate::harness::{Arena, condition, is, server};
use serde_json::json;

#[tokio::test]
async fn a_declaration_becomes_a_ready_cache() {
    let arena = Arena::shared().await;
    let place = arena.namespace("basic").await;
    place.declare("sessions", json!({"replicas": 2})).await;
    let cache = place.ready("sessions").await;
    let types: Vec<_> = cache["status"]["conditions"].as_array().unwrap().iter().map(|c| c["type"].clone()).collect();
    assert_eq!(types, ["Available", "Progressing", "Degraded", "Ready"]);
    assert_eq!(cache["status"]["serverList"], json!([format!("sessions.{}:11211", place.name())]));
    assert_eq!(cache["status"]["version"], "1.6");
    assert_eq!(cache["status"]["nodes"].as_array().unwrap().len(), 2);
    let deployment = place.get("deployment", "sessions").unwrap();
    assert_eq!(deployment["metadata"]["ownerReferences"][0]["apiVersion"], "memcached.c5c3.io/v1beta1");
    assert_eq!(server(&deployment)["args"], json!(["-m", "64", "-c", "1024", "-t", "4", "-I", "1m"]));
    let service = place.get("service", "sessions").unwrap();
    assert_eq!(service["spec"]["clusterIP"], "None");
}

#[tokio::test]
async fn a_cache_costs_one_write_a_child() {
    let arena = Arena::shared().await;
    let place = arena.namespace("cost").await;
    let mark = arena.cluster.audit().mark().unwrap();
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    let writes = arena.writes_since(mark, place.name());
    let (status, children): (Vec<_>, Vec<_>) = writes.iter().partition(|write| write.contains("memcacheds/status"));
    let kinds: Vec<_> = children.iter().filter_map(|write| write.split(' ').nth(1)).collect();
    assert_eq!(kinds, ["controllerrevisions", "services", "deployments"]);
    // Two on an idle machine; on a slow one the numbers on the way are news too.
    println!("{} writes of the status", status.len());
}

#[tokio::test]
async fn both_versions_are_one_kind() {
    let arena = Arena::shared().await;
    let place = arena.namespace("versions").await;
    place.create(&json!({
        "apiVersion": "memcached.c5c3.io/v1alpha1", "kind": "Memcached",
        "metadata": {"name": "old"}, "spec": {"replicas": 1},
    }));
    place.ready("old").await;
    let as_new = place.get("memcacheds.v1beta1.memcached.c5c3.io", "old").unwrap();
    assert_eq!(as_new["apiVersion"], "memcached.c5c3.io/v1beta1");
    assert!(is(&as_new, "Ready", "True"));
}

#[tokio::test]
async fn a_change_is_taken_up() {
    let arena = Arena::shared().await;
    let place = arena.namespace("change").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    place.declare("sessions", json!({"replicas": 3, "memcached": {"threads": 8, "verbosity": 1}})).await;
    let deployment = place
        .eventually("deployment", "sessions", "three servers with eight threads", |d| {
            d["spec"]["replicas"] == 3 && server(d)["args"].as_array().is_some_and(|a| a.contains(&json!("-v")))
        })
        .await;
    assert_eq!(server(&deployment)["args"], json!(["-m", "64", "-c", "1024", "-t", "8", "-I", "1m", "-v"]));
    place.ready("sessions").await;
}

#[tokio::test]
async fn a_declaration_that_cannot_work_is_refused_in_words_and_touches_nothing() {
    let arena = Arena::shared().await;
    let place = arena.namespace("invalid").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    let before = place.get("deployment", "sessions").unwrap();
    // The API server refuses most of them by itself, but it does not read arguments that closely.
    let server = json!({"maxItemSize": "17k", "extraArgs": ["-o", "slab_chunk_max=16"]});
    place.declare("sessions", json!({"replicas": 1, "memcached": server})).await;
    let cache =
        place.eventually("memcached", "sessions", "refused", |c| condition(c, "Degraded")["reason"] == "Invalid").await;
    let message = condition(&cache, "Degraded")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("spec.memcached.maxItemSize") && message.contains("multiple of 16k"), "{message}");
    let after = place.get("deployment", "sessions").unwrap();
    assert_eq!(before["metadata"]["resourceVersion"], after["metadata"]["resourceVersion"]);
}

#[tokio::test]
async fn scaling_to_zero_and_back() {
    let arena = Arena::shared().await;
    let place = arena.namespace("zero").await;
    place.declare("sessions", json!({"replicas": 2})).await;
    place.ready("sessions").await;
    place.declare("sessions", json!({"replicas": 0})).await;
    let cache = place
        .eventually("memcached", "sessions", "scaled to zero", |c| {
            c["status"]["phase"] == "Scaled to zero" && c["status"]["replicas"] == 0
        })
        .await;
    assert!(is(&cache, "Ready", "False") && is(&cache, "Degraded", "False") && is(&cache, "Available", "False"));
    assert_eq!(cache["status"]["serverList"], json!([]));
    place.declare("sessions", json!({"replicas": 2})).await;
    place.ready("sessions").await;
}
