use memcached_api::memcached::spec::{MemcachedSpec, Rollout, Server, Workload};
use serde_json::{Value, json};

use super::*;
use crate::memcached::fixture::{template, validated};

fn templates() -> BTreeMap<String, PodTemplateSpec> {
    let threads = |spec: &mut MemcachedSpec| spec.memcached = Some(Server { threads: 8, ..Server::default() });
    let memory = |spec: &mut MemcachedSpec| spec.memcached = Some(Server { max_memory_mb: 128, ..Server::default() });
    [
        ("old".to_owned(), template(|_| {})),
        ("image".to_owned(), template(|spec| spec.version = Some("1.6.45".into()))),
        ("threads".to_owned(), template(threads)),
        ("memory".to_owned(), template(memory)),
    ]
    .into()
}

fn pod(annotations: &Value, restarts: i32, is_ready: bool) -> Pod {
    serde_json::from_value(json!({
        "metadata": {"name": "sessions-0", "labels": {REVISION: "old"}, "annotations": annotations},
        "status": {
            "conditions": [{"type": "Ready", "status": if is_ready { "True" } else { "False" }}],
            "containerStatuses": [
                {"name": "memcached", "image": "", "imageID": "", "ready": is_ready, "restartCount": restarts},
            ],
        },
    }))
    .unwrap()
}

fn slot(desired: &str, pod: Pod, agent: Option<Result<AgentStatus, String>>) -> Slot {
    let live = [Some(LivePod { pod, agent, proof: Proof::Missing, image: None })];
    // A minute after the epoch, at which all notes of these tests are written.
    let now = Timestamp::from_second(60).unwrap();
    let pods = Pods { slots: &live, templates: &templates(), desired, now };
    pods.slots().remove(0).unwrap()
}

fn change(to: &str, restarts: i32, previous: Option<&str>) -> Value {
    let since = Timestamp::UNIX_EPOCH.to_string();
    let note = ChangeNote { to: to.into(), since, restarts, previous: previous.map(Into::into), restart: None };
    json!({label::CHANGE: serde_json::to_string(&note).unwrap()})
}

#[allow(clippy::unnecessary_wraps, reason = "as a pod has it")]
fn agent(args: &[String], error: Option<&str>) -> Option<Result<AgentStatus, String>> {
    let status = json!({"memcached": {"phase": "Ready", "args": args}, "orders": {"error": error}});
    Some(Ok(serde_json::from_value(status).unwrap()))
}

#[test]
fn what_separates_a_pod_decides_what_is_done_to_it() {
    let fresh = || pod(&json!({}), 0, true);
    assert_eq!(slot("old", fresh(), None).change, Change::None);
    assert_eq!(slot("image", fresh(), None).change, Change::InPlace(Proof::Missing));
    assert_eq!(slot("memory", fresh(), None).change, Change::Recreate);
    assert_eq!(slot("unknown", fresh(), None).change, Change::Recreate);
}

#[test]
fn another_image_is_in_force_when_its_container_has_started_and_the_agent_agrees() {
    let args = server_arguments(&templates()["image"]);
    let progress = |restarts, is_ready, agent| {
        slot("image", pod(&change("image", 2, Some("before")), restarts, is_ready), agent).progress
    };
    let waiting = Some(Progress::Waiting(Duration::from_secs(60)));
    assert_eq!(progress(2, true, agent(&args, None)), waiting, "still the old container");
    assert_eq!(progress(3, false, agent(&args, None)), waiting);
    assert_eq!(progress(3, true, agent(&args, None)), Some(Progress::Confirmed));
    assert_eq!(progress(3, true, Some(Err("no answer".into()))), Some(Progress::Confirmed), "after a while");
}

#[test]
fn other_flags_are_in_force_when_the_agent_says_so() {
    let args = server_arguments(&templates()["threads"]);
    let before = server_arguments(&templates()["old"]);
    let progress = |agent| slot("threads", pod(&change("threads", 0, None), 0, true), agent).progress;
    assert_eq!(progress(agent(&args, None)), Some(Progress::Confirmed));
    assert_eq!(progress(agent(&before, None)), Some(Progress::Waiting(Duration::from_secs(60))));
    assert_eq!(progress(agent(&before, Some("it does not start"))), Some(Progress::Failed("it does not start".into())));
    assert_eq!(progress(Some(Err("no answer".into()))), Some(Progress::Waiting(Duration::from_secs(60))));
}

#[test]
fn a_change_that_nobody_wants_any_more_is_undone_from_where_it_is() {
    let half_way = || pod(&change("image", 0, Some("before")), 0, false);
    let undone = slot("old", half_way(), None);
    assert_eq!((undone.change, undone.progress), (Change::InPlace(Proof::Good), None), "it serves nobody");
    let other = slot("memory", half_way(), None);
    assert_eq!((other.change, other.progress), (Change::Recreate, None));
    // One that has come back meanwhile is confirmed first, so that it is known what it is.
    let args = server_arguments(&templates()["image"]);
    let back = slot("threads", pod(&change("image", 0, Some("before")), 1, true), agent(&args, None));
    assert_eq!(back.progress, Some(Progress::Confirmed));
}

#[test]
fn a_refusal_counts_for_the_revision_it_is_about() {
    let refused = |revision: &str| {
        let note = RefusalNote { revision: revision.into(), reason: "no".into() };
        pod(&json!({label::REFUSED: serde_json::to_string(&note).unwrap()}), 0, true)
    };
    assert_eq!(slot("image", refused("image"), None).refused.as_deref(), Some("no"));
    assert_eq!(slot("image", refused("threads"), None).refused, None);
}

#[test]
fn the_pace_is_declared() {
    let rollout = Rollout { max_unavailable: Some(2), pause_seconds: Some(30), ..Rollout::default() };
    let cache = validated(|spec| spec.workload = Some(Workload { type_: None, rollout: Some(rollout) }));
    let pace = pace(&cache);
    assert_eq!((pace.max_unavailable, pace.pause), (2, Duration::from_secs(30)));
}

#[test]
fn what_the_kubelet_said_of_the_container_before_says_nothing_of_the_change() {
    let mut broken = pod(&change("image", 3, Some("before")), 3, false);
    let waiting = json!({"waiting": {"reason": "CrashLoopBackOff", "message": "back-off"}});
    let status = &mut broken.status.as_mut().unwrap().container_statuses.as_mut().unwrap()[0];
    status.state = Some(serde_json::from_value(waiting).unwrap());
    assert_eq!(slot("image", broken.clone(), None).progress, Some(Progress::Waiting(Duration::from_secs(60))));
    broken.status.as_mut().unwrap().container_statuses.as_mut().unwrap()[0].restart_count = 4;
    assert!(matches!(slot("image", broken, None).progress, Some(Progress::Failed(_))));
}

#[test]
fn a_pod_that_was_changed_back_is_not_changed_back_again() {
    let back = pod(&change("old", 0, Some("after")), 0, true);
    let args = server_arguments(&templates()["old"]);
    assert_eq!(slot("old", back.clone(), agent(&args, None)).progress, Some(Progress::Confirmed), "after a while");
    let mut gone = back;
    gone.status.as_mut().unwrap().conditions = None;
    assert_eq!(slot("old", gone, None).progress, Some(Progress::Waiting(Duration::from_secs(60))), "for ever");
}
