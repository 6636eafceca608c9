//! What dies comes back by itself, warm where it can be; what is lost is lost for that pod only.

use e2e::pod::wait_for;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use testbed::Node;

use crate::client::{fill, kept};
use crate::{ready_with, set, stateful};

const KEYS: usize = 10_000;

#[tokio::test]
async fn a_pod_that_is_deleted_comes_back_under_its_name_and_the_others_keep_what_they_have() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "deleted").await;
    stage.declare("sessions", &stateful(&json!({"replicas": 2}))).unwrap();
    let before = ready_with(&stage, "1.6.38").await;
    for pod in &before {
        fill(pod, KEYS).await;
    }
    stage.namespace.kubectl(&["delete", "pod", "sessions-1", "--wait=true"]).unwrap();
    let old = before.iter().find(|pod| pod.metadata.name.as_deref() == Some("sessions-1")).unwrap();
    let is_new = |pod: &Pod| pod.metadata.uid != old.metadata.uid && e2e::pod::is_ready(pod);
    let new = wait_for(&stage.namespace, "sessions-1", "back", is_new).await.unwrap();
    assert_eq!(kept(&new, KEYS).await, 0, "its memory went with it");
    let other = before.iter().find(|pod| pod.metadata.name.as_deref() == Some("sessions-0")).unwrap();
    assert_eq!(kept(other, KEYS).await, KEYS);
    stage.ready("sessions").await.unwrap();
}
