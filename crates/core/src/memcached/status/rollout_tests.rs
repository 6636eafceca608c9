#![allow(clippy::needless_pass_by_value, reason = "a JSON literal reads best without a reference")]

use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use memcached_api::memcached::MemcachedStatus;
use serde_json::{Value, json};

use super::*;
use crate::memcached::status::status;

/// When the pods of these tests were created, and a while later.
const CREATED: &str = "2026-01-01T00:00:00Z";

fn after(seconds: i64) -> Timestamp {
    CREATED.parse::<Timestamp>().unwrap() + SignedDuration::from_secs(seconds)
}

/// A Deployment of three whose controller has observed everything.
fn deployment(counts: (i32, i32, i32), reason: &str) -> Deployment {
    let (replicas, updated, ready) = counts;
    serde_json::from_value(json!({
        "metadata": {"name": "sessions", "generation": 7},
        "spec": {"replicas": 3, "selector": {}, "template": {}, "progressDeadlineSeconds": 60},
        "status": {
            "observedGeneration": 7, "replicas": replicas, "updatedReplicas": updated, "readyReplicas": ready,
            "conditions": [{"type": "Progressing", "status": "True", "reason": reason}],
        },
    }))
    .unwrap()
}

fn pod(status: &Value) -> Pod {
    let metadata = json!({"name": "sessions-abc", "creationTimestamp": CREATED});
    serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap()
}

fn container(name: &str, state: &Value) -> Value {
    json!({"name": name, "image": "memcached:9", "imageID": "", "ready": false, "restartCount": 0, "state": state})
}

fn waiting(reason: &str) -> Value {
    json!({"waiting": {"reason": reason, "message": "the kubelet's words"}})
}

fn unschedulable() -> Pod {
    let message = "0/3 nodes are available: 3 Insufficient memory.";
    let condition = json!({"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": message});
    pod(&json!({"phase": "Pending", "conditions": [condition]}))
}

/// A pod whose containers run since it was created, and that is not ready since `since`.
fn not_ready(since: &str) -> Pod {
    let ready = json!({"type": "Ready", "status": "False", "lastTransitionTime": since});
    let running = container("memcached", &json!({"running": {"startedAt": "2026-01-01T00:00:05Z"}}));
    pod(&json!({"conditions": [ready], "containerStatuses": [running]}))
}

fn seen(deployment: Deployment, pods: Vec<Pod>, now: Timestamp) -> MemcachedStatus {
    let name = "sessions".to_owned();
    status(
        None,
        &StatusInput { name, replicas: Some(3), deployment: Some(deployment), pods, ..StatusInput::default() },
        now,
    )
}

/// Progressing and Degraded, and their messages.
fn told(status: &MemcachedStatus) -> [(&str, &str); 2] {
    [1, 2].map(|index| (status.conditions[index].status.as_str(), status.conditions[index].message.as_str()))
}

fn failure(deployment: Deployment, pods: Vec<Pod>, now: Timestamp) -> Option<FailureKind> {
    let input = StatusInput { replicas: Some(3), deployment: Some(deployment), pods, ..StatusInput::default() };
    RolloutStatus::of(&input, now).failure.map(|failure| failure.kind)
}

#[test]
fn an_ordinary_creation_is_not_degraded() {
    let creating = deployment((3, 3, 1), "ReplicaSetUpdated");
    let status = seen(creating, vec![], after(5));
    assert_eq!(told(&status), [("True", "3/3 updated, 1/3 ready"), ("False", "no failure observed")]);
}

#[test]
fn a_container_that_cannot_start_is_no_progress() {
    for (reason, kind) in [
        ("ImagePullBackOff", FailureKind::ImagePull),
        ("ErrImagePull", FailureKind::ImagePull),
        ("CreateContainerConfigError", FailureKind::ContainerCreation),
        ("RunContainerError", FailureKind::ContainerCreation),
        ("CrashLoopBackOff", FailureKind::CrashLoop),
    ] {
        for list in ["containerStatuses", "initContainerStatuses"] {
            let pods = vec![pod(&json!({list: [container("memcached", &waiting(reason))]}))];
            let rolling = deployment((4, 1, 3), "ReplicaSetUpdated");
            assert_eq!(failure(rolling.clone(), pods.clone(), after(5)), Some(kind), "{list} {reason}");
            let status = seen(rolling, pods, after(5));
            let [progressing, degraded] = told(&status);
            assert_eq!(progressing, ("False", "rollout stalled; see Degraded"));
            let words = format!("container \"memcached\" in pod \"sessions-abc\" is waiting to start: {reason}: the");
            assert!(degraded.0 == "True" && degraded.1.contains(&words), "{}", degraded.1);
        }
    }
    let creating = pod(&json!({"containerStatuses": [container("memcached", &waiting("ContainerCreating"))]}));
    assert_eq!(failure(deployment((3, 3, 0), "ReplicaSetUpdated"), vec![creating], after(5)), None);
}

#[test]
fn a_terminating_pod_fails_nobody() {
    let mut ending = pod(&json!({"containerStatuses": [container("memcached", &waiting("CrashLoopBackOff"))]}));
    ending.metadata.deletion_timestamp = ending.metadata.creation_timestamp.clone();
    assert_eq!(failure(deployment((3, 3, 2), "ReplicaSetUpdated"), vec![ending], after(5)), None);
}

#[test]
fn a_corrected_change_is_progress_again() {
    let mut corrected = deployment((4, 1, 3), "ProgressDeadlineExceeded");
    corrected.metadata.generation = Some(8);
    let pods = vec![pod(&json!({"containerStatuses": [container("memcached", &waiting("ImagePullBackOff"))]}))];
    let status = seen(corrected, pods, after(500));
    let waiting = "waiting for the Deployment controller to observe the change";
    assert_eq!(told(&status), [("True", waiting), ("False", "no failure observed")]);
}

#[test]
fn an_unschedulable_pod_is_progress_until_the_deadline() {
    // The Deployment controller watches no deadline once a rollout is complete: a pod that is added later has its own.
    for reason in ["ReplicaSetUpdated", "NewReplicaSetAvailable"] {
        let rolling = || deployment((3, 3, 2), reason);
        let words = "pod \"sessions-abc\" is unschedulable: 0/3 nodes are available: 3 Insufficient memory.";
        let early = seen(rolling(), vec![unschedulable()], after(59));
        let progress = format!("3/3 updated, 2/3 ready; {words}");
        assert_eq!(told(&early), [("True", progress.as_str()), ("False", "no failure observed")]);
        let late = seen(rolling(), vec![unschedulable()], after(60));
        assert_eq!(told(&late), [("False", "rollout stalled; see Degraded"), ("True", words)]);
        assert_eq!(failure(rolling(), vec![unschedulable()], after(60)), Some(FailureKind::Unschedulable));
        let input = StatusInput {
            replicas: Some(3),
            deployment: Some(rolling()),
            pods: vec![unschedulable()],
            ..StatusInput::default()
        };
        assert_eq!(RolloutStatus::of(&input, after(5)).recheck_at(), Some(after(60)));
        assert_eq!(RolloutStatus::of(&input, after(60)).recheck_at(), None);
    }
}

#[test]
fn past_the_deadline_a_rollout_is_stalled_even_if_old_pods_are_ready() {
    let overdue = || deployment((4, 1, 3), "ProgressDeadlineExceeded");
    let status = seen(overdue(), vec![], after(500));
    let words = "rollout stalled: 1/3 updated, 3/3 ready, no progress for 60 s";
    assert_eq!(told(&status), [("False", "rollout stalled; see Degraded"), ("True", words)]);
    assert_eq!(failure(overdue(), vec![], after(500)), Some(FailureKind::RolloutStalled));
    // The pod is younger than the rollout.
    let status = seen(overdue(), vec![unschedulable()], after(5));
    assert!(told(&status)[1].1.starts_with(words) && told(&status)[1].1.contains("0/3 nodes"), "{:?}", told(&status));
    assert_eq!(failure(overdue(), vec![unschedulable()], after(5)), Some(FailureKind::Unschedulable));
}

#[test]
fn a_server_that_is_lost_after_the_rollout_is_degraded_at_once() {
    let complete = || deployment((3, 3, 2), "NewReplicaSetAvailable");
    let lost = not_ready("2026-01-01T00:00:30Z");
    let status = seen(complete(), vec![lost], after(40));
    assert_eq!(told(&status), [("False", "rollout complete"), ("True", "2/3 ready")]);
    let starting = not_ready("2026-01-01T00:00:01Z");
    let status = seen(complete(), vec![starting.clone()], after(40));
    assert_eq!(told(&status)[0], ("True", "3/3 updated, 2/3 ready"), "a replacement, or one more");
    let status = seen(complete(), vec![starting], after(70));
    assert_eq!(told(&status)[1], ("True", "2/3 ready"), "it has had its time");
}

#[test]
fn pods_that_cannot_be_created_are_told() {
    let mut refused = deployment((0, 0, 0), "ReplicaSetUpdated");
    let condition = json!({
        "type": "ReplicaFailure", "status": "True", "reason": "FailedCreate", "message": "exceeded quota: pods",
    });
    let conditions = refused.status.as_mut().unwrap().conditions.as_mut().unwrap();
    conditions.push(serde_json::from_value(condition).unwrap());
    assert_eq!(
        told(&seen(refused.clone(), vec![], after(5)))[1],
        ("True", "pods cannot be created: exceeded quota: pods")
    );
    assert_eq!(failure(refused, vec![], after(5)), Some(FailureKind::PodCreation));
}

#[test]
fn old_pods_are_waited_for() {
    let words = |replicas| {
        seen(deployment((replicas, 3, 3), "ReplicaSetUpdated"), vec![], after(5)).conditions[1].message.clone()
    };
    assert_eq!(words(4), "waiting for 1 old pod to terminate");
    assert_eq!(words(5), "waiting for 2 old pods to terminate");
    assert_eq!(words(3), "rollout complete");
}
