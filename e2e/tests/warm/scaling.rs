//! More servers and fewer: the list changes by the slots that come and go, and nobody else loses anything.

use e2e::stage::Stage;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ResourceExt;
use serde_json::{Value, json};
use testbed::Node;

use crate::client::{fill, kept};
use crate::{identities, set, stateful};

const KEYS: usize = 10_000;

/// Waits until a cache has so many servers, all of them ready, and says so.
async fn with_servers(stage: &Stage, count: usize) -> Vec<Pod> {
    let slots: Vec<String> =
        (0..count).map(|slot| format!("sessions-{slot}.sessions.{}.svc:11211", stage.namespace.name())).collect();
    let is_so = |cache: &Value| {
        cache["status"]["readyReplicas"] == count
            && cache["status"]["replicas"] == count
            && cache["status"]["serverList"] == json!(slots)
    };
    stage.until("sessions", &format!("{count} servers"), is_so).await.unwrap();
    let mut pods = stage.servers("sessions").await.unwrap();
    pods.sort_by_key(ResourceExt::name_any);
    pods
}

#[tokio::test]
async fn the_list_changes_by_the_slots_that_come_and_go() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "scaling").await;
    stage.declare("sessions", &stateful(&json!({"replicas": 2}))).unwrap();
    let two = with_servers(&stage, 2).await;
    for pod in &two {
        fill(pod, KEYS).await;
    }
    stage.declare("sessions", &stateful(&json!({"replicas": 3}))).unwrap();
    let three = with_servers(&stage, 3).await;
    assert_eq!(identities(&three[..2]), identities(&two));
    for pod in &two {
        assert_eq!(kept(pod, KEYS).await, KEYS);
    }
    stage.declare("sessions", &stateful(&json!({"replicas": 1}))).unwrap();
    let one = with_servers(&stage, 1).await;
    assert_eq!(identities(&one), identities(&two[..1]));
    assert_eq!(kept(&one[0], KEYS).await, KEYS);
}

#[tokio::test]
async fn an_autoscaler_scales_a_stateful_set_up_and_down_and_is_not_fought() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "autoscaled").await;
    let between = |min: i32, max: i32| {
        let mut spec = stateful(&json!({
            "resources": {"requests": {"cpu": "10m"}},
            "autoscaling": {"enabled": true, "minReplicas": min, "maxReplicas": max},
        }));
        spec.as_object_mut().unwrap().remove("replicas");
        spec
    };
    // Nobody measures anything here: what is below the least or above the most is the autoscaler's to mend all the same.
    stage.declare("sessions", &between(2, 3)).unwrap();
    let two = with_servers(&stage, 2).await;
    fill(&two[0], KEYS).await;
    stage.declare("sessions", &between(3, 3)).unwrap();
    with_servers(&stage, 3).await;
    stage.declare("sessions", &between(1, 1)).unwrap();
    let one = with_servers(&stage, 1).await;
    assert_eq!(identities(&one), identities(&two[..1]));
    assert_eq!(kept(&one[0], KEYS).await, KEYS);
}
