//! What keeps a cache warm, on a real node with real memcached: keys are counted before and after.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod client;
mod flag;
mod kill;
mod outage;
mod scaling;
mod secret;
mod upgrade;

use std::collections::BTreeMap;

use e2e::operator;
use e2e::stage::Stage;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ResourceExt;
use serde_json::{Value, json};
use testbed::Node;

/// Our image, as the operator names it here.
const AGENT_IMAGE: &str = "memcached-operator:dev";

/// A stage on a node that has the agent.
async fn set(node: &Node, name: &str) -> Stage {
    static LOADED: std::sync::Once = std::sync::Once::new();
    LOADED.call_once(|| node.load(&operator::image().unwrap()).unwrap());
    Stage::set(node, name, env!("CARGO_TARGET_TMPDIR"), &["--agent-image", AGENT_IMAGE]).await.unwrap()
}

/// A StatefulSet with these fields beside.
fn stateful(fields: &Value) -> Value {
    let mut spec = json!({"replicas": 1, "version": "1.6.38", "workload": {"type": "StatefulSet"}});
    for (field, value) in fields.as_object().unwrap() {
        spec[field] = value.clone();
    }
    // An image of one's own takes the version's place.
    if spec.get("image").is_some() {
        spec.as_object_mut().unwrap().remove("version");
    }
    spec
}

/// What must not change about a pod that is changed in place.
fn identities(pods: &[Pod]) -> BTreeMap<String, (String, String)> {
    let identity = |pod: &Pod| {
        let ip = pod.status.as_ref().and_then(|status| status.pod_ip.clone());
        (pod.name_any(), (pod.uid().unwrap_or_default(), ip.unwrap_or_default()))
    };
    pods.iter().map(identity).collect()
}

/// Waits until a cache is ready again, and has the version that it should have.
async fn ready_with(stage: &Stage, version: &str) -> Vec<Pod> {
    stage.ready("sessions").await.unwrap();
    let pods = stage.servers("sessions").await.unwrap();
    let tag = format!("memcached:{version}");
    for pod in &pods {
        let image = &pod.spec.as_ref().unwrap().containers[0].image;
        assert_eq!(image.as_deref(), Some(tag.as_str()), "{}", pod.name_any());
    }
    pods
}
