//! A cache on a real node: what its status says while a real kubelet rolls, fails and recovers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use e2e::memcached::Connection;
use e2e::pod::address;
use e2e::stage::{Stage, message, verdict};
use k8s_openapi::api::core::v1::Pod;
use serde_json::{Value, json};
use testbed::Node;

async fn set(node: &Node, name: &str) -> Stage {
    Stage::set(node, name, env!("CARGO_TARGET_TMPDIR"), &[]).await.unwrap()
}

#[tokio::test]
async fn a_bad_image_is_told_while_the_old_servers_serve_on_and_taking_it_back_keeps_them_warm() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "bad-image").await;
    stage.declare("sessions", &json!({"replicas": 2})).unwrap();
    stage.ready("sessions").await.unwrap();
    let before: Vec<Pod> = stage.servers("sessions").await.unwrap();
    let first = address(&before[0], 11211).unwrap();
    Connection::open(&node, first).await.unwrap().set("kept", "warm").await.unwrap();

    stage.declare("sessions", &json!({"replicas": 2, "image": "memcached:no-such-tag"})).unwrap();
    let is_stuck = |cache: &Value| verdict(cache, "Progressing").0 == "False" && verdict(cache, "Degraded").0 == "True";
    let cache = stage.until("sessions", "stuck", is_stuck).await.unwrap();
    let told = message(&cache, "Degraded");
    assert!(told.contains("no-such-tag"), "{told}");
    assert_eq!(verdict(&cache, "Degraded").1, "Degraded");
    assert_eq!(verdict(&cache, "Available"), ("True".into(), "Available".into()));
    assert_eq!(verdict(&cache, "Ready"), ("False".into(), "MemcachedNotReady".into()));
    assert_eq!(cache["status"]["serverList"].as_array().map(Vec::len), Some(1));
    let kept = Connection::open(&node, first).await.unwrap().get("kept").await.unwrap();
    assert_eq!(kept.as_deref(), Some("warm"), "the old servers serve on");

    stage.declare("sessions", &json!({"replicas": 2})).unwrap();
    stage.ready("sessions").await.unwrap();
    let kept = Connection::open(&node, first).await.unwrap().get("kept").await.unwrap();
    assert_eq!(kept.as_deref(), Some("warm"), "taking it back costs nothing");
}

#[tokio::test]
async fn what_a_server_says_before_it_ends_is_in_the_status() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "last-words").await;
    // Nobody but memcached knows that this is no option of it.
    stage.declare("sessions", &json!({"memcached": {"extraArgs": ["-o", "no_such_option"]}})).unwrap();
    let is_told = |cache: &Value| message(cache, "Degraded").contains("no_such_option");
    let cache = stage.until("sessions", "told", is_told).await.unwrap();
    let told = message(&cache, "Degraded");
    assert!(told.contains("last message") && told.contains("kubectl logs"), "{told}");
    assert_eq!(verdict(&cache, "Progressing").0, "False");
}

#[tokio::test]
async fn a_missing_secret_is_told_until_it_is_there() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "no-secret").await;
    let sasl = json!({"enabled": true, "credentialsSecretRef": {"name": "creds"}});
    stage.declare("sessions", &json!({"replicas": 1, "security": {"sasl": sasl}})).unwrap();
    let missing = ("True".to_owned(), "SecretNotFound".to_owned());
    let cache = stage.until("sessions", "told", |cache| verdict(cache, "Degraded") == missing).await.unwrap();
    assert!(message(&cache, "Degraded").contains("\"creds\""));
    assert_eq!(verdict(&cache, "Available").0, "False");
    stage.namespace.kubectl(&["create", "secret", "generic", "creds", "--from-literal=password-file=u:p"]).unwrap();
    let cache = stage.ready("sessions").await.unwrap();
    assert_eq!(verdict(&cache, "Degraded"), ("False".into(), "NotDegraded".into()));
}

#[tokio::test]
async fn zero_and_back() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "zero").await;
    stage.declare("sessions", &json!({"replicas": 1})).unwrap();
    stage.ready("sessions").await.unwrap();
    stage.declare("sessions", &json!({"replicas": 0})).unwrap();
    let is_empty = |cache: &Value| cache["status"]["replicas"] == 0 && verdict(cache, "Available").0 == "False";
    let cache = stage.until("sessions", "empty", is_empty).await.unwrap();
    assert_eq!(verdict(&cache, "Ready").1, "MemcachedNotReady");
    assert_eq!(verdict(&cache, "Degraded").1, "NotDegraded");
    stage.declare("sessions", &json!({"replicas": 1})).unwrap();
    stage.ready("sessions").await.unwrap();
}
