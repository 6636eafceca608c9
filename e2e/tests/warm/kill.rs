//! What dies comes back by itself, warm where it can be; what is lost is lost for that pod only.

use std::fs;
use std::process::Command;
use std::time::Duration;

use e2e::pod::{container, is_ready, wait_for};
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;
use testbed::{Node, wait};

use crate::client::{fill, kept};
use crate::{identities, ready_with, set, stateful};

const KEYS: usize = 10_000;

/// The processes of a pod that are called like that, as this machine numbers them.
fn processes(pod: &Pod, name: &str) -> Vec<String> {
    let uid = pod.metadata.uid.clone().unwrap();
    let all = fs::read_dir("/proc").unwrap().flatten().filter_map(|entry| entry.file_name().into_string().ok());
    let is_of_pod = |pid: &String| {
        let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
        // The kernel keeps fifteen letters of a name.
        read("comm").trim() == name.chars().take(15).collect::<String>() && read("cgroup").contains(&uid)
    };
    all.filter(|pid| pid.parse::<u32>().is_ok()).filter(is_of_pod).collect()
}

fn kill(pod: &Pod, name: &str) {
    let pids = processes(pod, name);
    assert_eq!(pids.len(), 1, "{name}: {pids:?}");
    assert!(Command::new("kill").arg("-9").args(&pids).status().unwrap().success());
}

#[tokio::test]
async fn a_server_or_its_agent_that_is_killed_comes_back_in_its_pod() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "killed").await;
    stage.declare("sessions", &stateful(&json!({"replicas": 2}))).unwrap();
    let before = ready_with(&stage, "1.6.38").await;
    for pod in &before {
        fill(pod, KEYS).await;
    }
    let [victim, other] = [&before[0], &before[1]];
    let name = victim.metadata.name.clone().unwrap();
    // memcached alone: its agent starts it again. What it had is lost, for nobody told it to leave it in order.
    let old = processes(victim, "memcached");
    kill(victim, "memcached");
    wait::until("another memcached", 60, async || match processes(victim, "memcached") {
        pids if pids.len() == 1 && pids != old => Ok(()),
        pids => Err(format!("{pids:?}")),
    })
    .await
    .unwrap();
    let again = wait_for(&stage.namespace, &name, "ready", is_ready).await.unwrap();
    wait::until("an answer", 60, async || {
        crate::client::connect(e2e::pod::address(victim, 11211).unwrap()).await.map(drop)
    })
    .await
    .unwrap();
    assert_eq!(kept(&again, KEYS).await, 0);
    assert_eq!(container(&again, "memcached").unwrap().restart_count, 0, "the container stays");
    fill(&again, KEYS).await;
    // The agent: its container ends with it, and the kubelet starts it again.
    kill(victim, "memcached-agent");
    let is_back =
        |pod: &Pod| is_ready(pod) && container(pod, "memcached").is_ok_and(|status| status.restart_count == 1);
    let again = wait_for(&stage.namespace, &name, "back", is_back).await.unwrap();
    assert_eq!(again.metadata.uid, victim.metadata.uid, "the same pod");
    assert_eq!(kept(&again, KEYS).await, 0);
    assert_eq!(kept(other, KEYS).await, KEYS, "nobody else lost anything");
    stage.ready("sessions").await.unwrap();
}

/// Times between two deaths of the operator, in milliseconds: the same each time, and no two alike.
const LIVES: [u64; 10] = [900, 1700, 700, 2300, 1300, 600, 1900, 1100, 2900, 1500];

#[tokio::test]
async fn a_rollout_goes_on_over_ten_operators_and_restarts_no_pod_twice() {
    let node = Node::shared().await.unwrap();
    let mut stage = set(&node, "operators").await;
    let four = |version: &str| stateful(&json!({"replicas": 4, "version": version}));
    stage.declare("sessions", &four("1.6.38")).unwrap();
    let before = ready_with(&stage, "1.6.38").await;
    for pod in &before {
        fill(pod, KEYS).await;
    }
    stage.declare("sessions", &four("1.6.45")).unwrap();
    for life in LIVES {
        tokio::time::sleep(Duration::from_millis(life)).await;
        stage.replace_operator(&node).unwrap();
    }
    let after = ready_with(&stage, "1.6.45").await;
    assert_eq!(identities(&after), identities(&before));
    for pod in &after {
        assert_eq!(kept(pod, KEYS).await, KEYS);
        assert_eq!(container(pod, "memcached").unwrap().restart_count, 1, "{:?}", pod.metadata.name);
    }
}

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
