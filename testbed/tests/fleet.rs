//! kwok answers for hundreds of nodes and a thousand pods.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::collections::BTreeSet;

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{ListParams, PostParams};
use serde_json::json;
use testbed::{ControlPlane, wait};

#[tokio::test]
async fn a_thousand_pods_become_ready_on_two_hundred_nodes() {
    let cluster = ControlPlane::start_with_fleet().await.unwrap();
    cluster.add_nodes(200).await.unwrap();
    let namespace = cluster.namespace("fleet").await.unwrap();
    let deployment: Deployment = serde_json::from_value(json!({
        "metadata": {"name": "many"},
        "spec": {
            "replicas": 1000,
            "selector": {"matchLabels": {"app": "many"}},
            "template": {
                "metadata": {"labels": {"app": "many"}},
                "spec": {"containers": [{"name": "memcached", "image": "memcached:1.6"}]},
            },
        },
    }))
    .unwrap();
    let deployments = namespace.api::<Deployment>();
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
    wait::until("1,000 ready pods", 300, async || {
        let status = deployments.get("many").await.map_err(|e| e.to_string())?.status.unwrap_or_default();
        match status.ready_replicas {
            Some(1000) => Ok(()),
            other => Err(format!("{} ready", other.unwrap_or(0))),
        }
    })
    .await
    .unwrap();
    let pods = namespace.api::<Pod>().list(&ListParams::default()).await.unwrap();
    let nodes: BTreeSet<_> = pods.iter().filter_map(|pod| pod.spec.as_ref()?.node_name.as_deref()).collect();
    assert_eq!(pods.items.len(), 1000);
    assert_eq!(nodes.len(), 200, "the scheduler spreads them over all nodes");
}
