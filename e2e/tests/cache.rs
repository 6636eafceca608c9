//! A cache on a real node: what its status says while a real kubelet rolls, fails and recovers.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::path::Path;

use e2e::background::Background;
use e2e::memcached::Connection;
use e2e::operator;
use e2e::pod::{PATIENCE, address};
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::{Node, wait};

/// A namespace with an operator that looks at nothing else.
struct Stage {
    namespace: Namespace,
    operator: Background,
}

impl Stage {
    async fn set(node: &Node, name: &str) -> Self {
        operator::install(node, &[]).await.unwrap();
        let namespace = node.namespace(name).await.unwrap();
        let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name).join("operator.log");
        let operator = operator::start(node, &["--watch-namespaces", namespace.name()], &log).unwrap();
        Self { namespace, operator }
    }

    fn declare(&self, spec: &Value) {
        let document = json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached",
            "metadata": {"name": "sessions"}, "spec": spec,
        });
        let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{}.json", self.namespace.name()));
        std::fs::write(&file, document.to_string()).unwrap();
        let apply = ["apply", "--server-side", "--force-conflicts", "--filename", file.to_str().unwrap()];
        self.namespace.kubectl(&apply).unwrap();
    }

    async fn until(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        wait::until(format!("the cache to be {what}"), PATIENCE, async || {
            let text = self.namespace.kubectl(&["get", "memcached", "sessions", "--output", "json"]);
            let cache: Value = text.ok().and_then(|text| serde_json::from_str(&text).ok()).unwrap_or_default();
            let is_seen = cache["status"]["observedGeneration"] == cache["metadata"]["generation"];
            if is_seen && is_so(&cache) { Ok(cache) } else { Err(format!("{:#}", cache["status"])) }
        })
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", self.operator.last_words(20)))
    }

    async fn ready(&self) -> Value {
        self.until("ready", |cache| verdict(cache, "Ready") == ("True".into(), "MemcachedReady".into())).await
    }

    async fn servers(&self) -> Vec<Pod> {
        let all = ListParams::default().labels("app.kubernetes.io/managed-by=memcached-operator");
        self.namespace.api::<Pod>().list(&all).await.unwrap().items
    }
}

/// A condition's status and reason.
fn verdict(cache: &Value, type_: &str) -> (String, String) {
    let all = cache["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let found = all.into_iter().find(|c| c["type"] == type_).unwrap_or_default();
    let text = |field: &str| found[field].as_str().unwrap_or_default().to_owned();
    (text("status"), text("reason"))
}

fn message(cache: &Value, type_: &str) -> String {
    let all = cache["status"]["conditions"].as_array().unwrap();
    all.iter().find(|c| c["type"] == type_).unwrap()["message"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_bad_image_is_told_while_the_old_servers_serve_on_and_taking_it_back_keeps_them_warm() {
    let node = Node::shared().await.unwrap();
    let stage = Stage::set(&node, "bad-image").await;
    stage.declare(&json!({"replicas": 2}));
    stage.ready().await;
    let before: Vec<Pod> = stage.servers().await;
    let first = address(&before[0], 11211).unwrap();
    Connection::open(&node, first).await.unwrap().set("kept", "warm").await.unwrap();

    stage.declare(&json!({"replicas": 2, "image": "memcached:no-such-tag"}));
    let cache = stage
        .until("stuck", |cache| verdict(cache, "Progressing").0 == "False" && verdict(cache, "Degraded").0 == "True")
        .await;
    let told = message(&cache, "Degraded");
    assert!(told.contains("no-such-tag"), "{told}");
    assert_eq!(verdict(&cache, "Degraded").1, "Degraded");
    assert_eq!(verdict(&cache, "Available"), ("True".into(), "Available".into()));
    assert_eq!(verdict(&cache, "Ready"), ("False".into(), "MemcachedNotReady".into()));
    assert_eq!(cache["status"]["serverList"].as_array().map(Vec::len), Some(1));
    let kept = Connection::open(&node, first).await.unwrap().get("kept").await.unwrap();
    assert_eq!(kept.as_deref(), Some("warm"), "the old servers serve on");

    stage.declare(&json!({"replicas": 2}));
    stage.ready().await;
    let kept = Connection::open(&node, first).await.unwrap().get("kept").await.unwrap();
    assert_eq!(kept.as_deref(), Some("warm"), "taking it back costs nothing");
}

#[tokio::test]
async fn a_missing_secret_is_told_until_it_is_there() {
    let node = Node::shared().await.unwrap();
    let stage = Stage::set(&node, "no-secret").await;
    let sasl = json!({"enabled": true, "credentialsSecretRef": {"name": "creds"}});
    stage.declare(&json!({"replicas": 1, "security": {"sasl": sasl}}));
    let missing = ("True".to_owned(), "SecretNotFound".to_owned());
    let cache = stage.until("told", |cache| verdict(cache, "Degraded") == missing).await;
    assert!(message(&cache, "Degraded").contains("\"creds\""));
    assert_eq!(verdict(&cache, "Available").0, "False");
    stage.namespace.kubectl(&["create", "secret", "generic", "creds", "--from-literal=password-file=u:p"]).unwrap();
    let cache = stage.ready().await;
    assert_eq!(verdict(&cache, "Degraded"), ("False".into(), "NotDegraded".into()));
}

#[tokio::test]
async fn zero_and_back() {
    let node = Node::shared().await.unwrap();
    let stage = Stage::set(&node, "zero").await;
    stage.declare(&json!({"replicas": 1}));
    stage.ready().await;
    stage.declare(&json!({"replicas": 0}));
    let is_empty = |cache: &Value| cache["status"]["replicas"] == 0 && verdict(cache, "Available").0 == "False";
    let cache = stage.until("empty", is_empty).await;
    assert_eq!(verdict(&cache, "Ready").1, "MemcachedNotReady");
    assert_eq!(verdict(&cache, "Degraded").1, "NotDegraded");
    stage.declare(&json!({"replicas": 1}));
    stage.ready().await;
}
