//! Another version: the same pods, the same addresses, the same keys.

use e2e::pod::container;
use e2e::stage::{message, verdict};
use serde_json::{Value, json};
use testbed::Node;

use crate::client::{fill, kept};
use crate::outage::{Observer, overlap};
use crate::{identities, ready_with, set, stateful};

const KEYS: usize = 200_000;

fn three(version: &str) -> Value {
    stateful(&json!({"replicas": 3, "version": version, "memcached": {"maxMemoryMB": 128}}))
}

#[tokio::test]
async fn an_upgrade_and_the_way_back_keep_every_key_of_every_pod() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "upgrade").await;
    stage.declare("sessions", &three("1.6.38")).unwrap();
    let pods = ready_with(&stage, "1.6.38").await;
    let cache = stage.ready("sessions").await.unwrap();
    let slot = |slot: usize| format!("sessions-{slot}.sessions.{}.svc:11211", stage.namespace.name());
    assert_eq!(cache["status"]["serverList"], json!([slot(0), slot(1), slot(2)]));
    let before = identities(&pods);
    for pod in &pods {
        fill(pod, KEYS).await;
    }
    for (turn, version) in [(1, "1.6.45"), (2, "1.6.38")] {
        let observer = Observer::start(&pods);
        stage.declare("sessions", &three(version)).unwrap();
        let after = ready_with(&stage, version).await;
        let outages = observer.stop().await;
        assert!(!overlap(&outages), "one at a time: {outages:?}");
        assert_eq!(identities(&after), before);
        for pod in &after {
            assert_eq!(kept(pod, KEYS).await, KEYS);
            assert_eq!(container(pod, "memcached").unwrap().restart_count, turn, "once each");
        }
    }
}

#[tokio::test]
async fn an_image_that_cannot_be_pulled_or_does_not_start_takes_nothing_down() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "bad-upgrade").await;
    let spec = |fields: Value| stateful(&fields);
    stage.declare("sessions", &spec(json!({"replicas": 2}))).unwrap();
    let pods = ready_with(&stage, "1.6.38").await;
    let before = identities(&pods);
    for pod in &pods {
        fill(pod, 1000).await;
    }
    let observer = Observer::start(&pods);
    // One that is nowhere, and one that has no memcached.
    for (image, words) in [("memcached:no-such-tag", "no-such-tag"), ("busybox:1.37", "memcached")] {
        stage.declare("sessions", &spec(json!({"replicas": 2, "image": image}))).unwrap();
        let is_stopped = |cache: &Value| {
            verdict(cache, "Degraded").0 == "True" && message(cache, "Degraded").contains("rollout stopped")
        };
        let cache = stage.until("sessions", "stopped", is_stopped).await.unwrap();
        let told = message(&cache, "Degraded");
        assert!(told.contains(words), "{told}");
        assert_eq!(verdict(&cache, "Available").0, "True");
        assert_eq!(verdict(&cache, "Progressing").0, "False");
    }
    stage.declare("sessions", &spec(json!({"replicas": 2}))).unwrap();
    let after = ready_with(&stage, "1.6.38").await;
    let outages = observer.stop().await;
    assert!(outages.values().all(Vec::is_empty), "nobody noticed: {outages:?}");
    assert_eq!(identities(&after), before);
    for pod in &after {
        assert_eq!(kept(pod, 1000).await, 1000);
        assert_eq!(container(pod, "memcached").unwrap().restart_count, 0);
    }
}
