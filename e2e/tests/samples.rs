//! Every sample becomes a cache that serves.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::Path;

use e2e::memcached::Connection;
use e2e::operator::{self, ours};
use e2e::pod::address;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use testbed::Node;

#[tokio::test]
async fn every_sample_becomes_ready_and_serves() {
    let node = Node::shared().await.unwrap();
    operator::install(&node, &[]).await.unwrap();
    let namespace = node.namespace("samples").await.unwrap();
    let log = Path::new(env!("CARGO_TARGET_TMPDIR")).join("samples/operator.log");
    let operator = operator::start(&node, &["--watch-namespaces", namespace.name()], &log).unwrap();
    let samples: Vec<_> = fs::read_dir(ours("samples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert!(!samples.is_empty());
    for sample in samples {
        let file = sample.to_str().unwrap();
        namespace.kubectl(&["apply", "--filename", file]).unwrap();
        let ready = ["wait", "--for=condition=Ready", "memcached", "--all", "--timeout=180s"];
        if let Err(error) = namespace.kubectl(&ready) {
            panic!("{file}: {error}\n{}", operator.last_words(20));
        }
        let servers = ListParams::default().labels("app.kubernetes.io/managed-by=memcached-operator");
        for pod in namespace.api::<Pod>().list(&servers).await.unwrap() {
            let mut connection = Connection::open(&node, address(&pod, 11211).unwrap()).await.unwrap();
            connection.set("key", "value").await.unwrap();
            assert_eq!(connection.get("key").await.unwrap().as_deref(), Some("value"));
        }
        // Pods that are still going would be taken for those of the next sample.
        namespace.kubectl(&["delete", "--cascade=foreground", "--filename", file]).unwrap();
    }
}
