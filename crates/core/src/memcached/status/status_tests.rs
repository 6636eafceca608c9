use serde_json::json;

use super::*;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn deployment(desired: i32, generations: (i64, i64), replicas: i32, updated: i32, ready: i32) -> Deployment {
    serde_json::from_value(json!({
        "metadata": {"name": "sessions", "generation": generations.0},
        "spec": {"replicas": desired, "selector": {}, "template": {}},
        "status": {
            "observedGeneration": generations.1, "replicas": replicas,
            "updatedReplicas": updated, "readyReplicas": ready,
        },
    }))
    .unwrap()
}

fn input(replicas: Option<i32>, deployment: Option<Deployment>) -> StatusInput {
    StatusInput {
        name: "sessions".into(),
        namespace: "shop".into(),
        generation: 4,
        replicas,
        deployment,
        ..StatusInput::default()
    }
}

fn shown(status: &MemcachedStatus) -> Vec<String> {
    status.conditions.iter().map(|c| format!("{}={}/{}", c.type_, c.status, c.reason)).collect()
}

#[test]
fn a_fresh_cache_has_four_conditions_in_order() {
    let status = status(None, &input(Some(2), None), NOW);
    assert_eq!(
        shown(&status),
        [
            "Available=False/Unavailable",
            "Progressing=True/Progressing",
            "Degraded=False/NotDegraded",
            "Ready=False/MemcachedNotReady"
        ]
    );
    assert!(status.conditions.iter().all(|c| c.observed_generation == Some(4)));
    assert_eq!(status.server_list, [""; 0]);
}

#[test]
fn a_converged_cache_is_ready() {
    let status = status(None, &input(Some(2), Some(deployment(2, (1, 1), 2, 2, 2))), NOW);
    assert_eq!(
        shown(&status),
        [
            "Available=True/Available",
            "Progressing=False/ProgressingComplete",
            "Degraded=False/NotDegraded",
            "Ready=True/MemcachedReady"
        ]
    );
    assert_eq!(status.server_list, ["sessions.shop:11211"]);
    assert_eq!(status.phase.as_deref(), Some("Ready"));
}

#[test]
fn a_generation_that_the_controller_has_not_seen_is_not_ready() {
    let status = status(None, &input(Some(2), Some(deployment(2, (2, 1), 2, 2, 2))), NOW);
    assert_eq!(shown(&status)[3], "Ready=False/MemcachedNotReady");
    assert_eq!(shown(&status)[1], "Progressing=True/Progressing");
}

#[test]
fn surge_pod_does_not_drop_ready() {
    let status = status(None, &input(Some(2), Some(deployment(2, (1, 1), 3, 2, 3))), NOW);
    assert_eq!(shown(&status)[3], "Ready=True/MemcachedReady");
    assert_eq!(status.server_list.len(), 1);
}

#[test]
fn a_count_that_was_not_taken_up_yet_is_not_ready() {
    let status = status(None, &input(Some(3), Some(deployment(2, (1, 1), 2, 2, 2))), NOW);
    assert_eq!(shown(&status)[3], "Ready=False/MemcachedNotReady");
}

#[test]
fn scaled_to_zero_is_neither_ready_nor_degraded() {
    let status = status(None, &input(Some(0), Some(deployment(0, (1, 1), 0, 0, 0))), NOW);
    assert_eq!(
        shown(&status),
        [
            "Available=False/Unavailable",
            "Progressing=False/ProgressingComplete",
            "Degraded=False/NotDegraded",
            "Ready=False/MemcachedNotReady"
        ]
    );
    assert_eq!(status.phase.as_deref(), Some("Scaled to zero"));
}

#[test]
fn an_autoscaler_decides_what_is_desired() {
    let status = status(None, &input(None, Some(deployment(5, (1, 1), 5, 5, 5))), NOW);
    assert_eq!(shown(&status)[3], "Ready=True/MemcachedReady");
}

#[test]
fn problems_are_told_worst_first() {
    let problem = |reason, message: &str| Problem::new(reason, message, None);
    let problems = vec![problem(reason::SECRET_NOT_FOUND, "no Secret"), problem(reason::REFUSED, "quota")];
    let input = StatusInput { problems, ..input(Some(1), Some(deployment(1, (1, 1), 1, 1, 1))) };
    let status = status(None, &input, NOW);
    assert_eq!(shown(&status)[2], "Degraded=True/SecretNotFound");
    assert_eq!(status.conditions[2].message, "no Secret; quota");
    assert_eq!(shown(&status)[3], "Ready=True/MemcachedReady", "what runs goes on running");
}

#[test]
fn the_time_of_a_condition_moves_only_with_its_status() {
    let later = Timestamp::from_second(100).unwrap();
    let before = status(None, &input(Some(2), Some(deployment(2, (1, 1), 2, 2, 1))), NOW);
    let after = status(Some(&before), &input(Some(2), Some(deployment(2, (1, 1), 2, 2, 2))), later);
    let times: Vec<Timestamp> = after.conditions.iter().map(|c| c.last_transition_time.0).collect();
    assert_eq!(times, [NOW, later, NOW, later]);
}

#[test]
fn newer_defaults_are_announced_with_the_way_to_take_them() {
    let input = StatusInput { newer_defaults: vec!["spec.priority: 1 → 2".into()], ..input(Some(1), None) };
    let text = status(None, &input, NOW).pending_defaults.unwrap();
    assert!(text.contains("kubectl annotate memcached sessions --namespace shop"), "{text}");
    assert!(text.contains("memcached.c5c3.io/restart-trigger="), "{text}");
}

#[test]
fn whoever_has_to_act_comes_first_whatever_was_found_first() {
    let problem = |reason| Problem::new(reason, format!("about {reason}"), None);
    let found = [reason::KIND_MISSING, reason::NAME_TAKEN, reason::SECRET_NOT_FOUND];
    let input =
        StatusInput { problems: found.map(problem).into(), ..input(Some(1), Some(deployment(1, (1, 1), 1, 1, 1))) };
    let status = status(None, &input, NOW);
    assert_eq!(shown(&status)[2], "Degraded=True/SecretNotFound");
    assert!(found.iter().all(|reason| status.conditions[2].message.contains(reason)), "all are told");
}

#[test]
fn a_declaration_that_cannot_work_is_no_progress() {
    let invalid = Problem::new(reason::INVALID, "no", None);
    let status = status(None, &StatusInput { problems: vec![invalid], ..input(Some(1), None) }, NOW);
    assert_eq!(shown(&status)[1], "Progressing=False/ProgressingComplete");
    assert_eq!(status.phase.as_deref(), Some("Invalid"));
}

#[test]
fn what_is_said_of_readiness_is_true_of_each_number() {
    let rolling = input(Some(2), Some(deployment(2, (3, 3), 3, 1, 2)));
    let status = status(None, &rolling, NOW);
    assert_eq!(status.conditions[3].message, "1/2 updated, 2/2 ready");
}
