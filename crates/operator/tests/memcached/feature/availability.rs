//! Spreading, disruption budget, graceful shutdown, pacing.

use serde_json::{Value, json};

use super::{child, deployment, pod, server, shows};
use crate::harness::Arena;

fn available(section: Value) -> Value {
    json!({"replicas": 0, "highAvailability": section})
}

#[tokio::test]
async fn soft_anti_affinity() {
    let term = "/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0";
    let seen = [
        pod(&format!("{term}/weight"), json!(100), json!(null)),
        pod(&format!("{term}/podAffinityTerm/topologyKey"), json!("kubernetes.io/hostname"), json!(null)),
    ];
    shows("soft", available(json!({"antiAffinityPreset": "soft"})), json!({}), &seen).await;
}

#[tokio::test]
async fn the_section_alone_is_for_pods_that_are_built_anew() {
    let arena = Arena::shared().await;
    let place = arena.namespace("section").await;
    place.declare("fresh", json!({"replicas": 0, "highAvailability": {}})).await;
    place.settled("fresh").await;
    let built = place.get("deployment", "fresh").unwrap();
    let term = "/spec/template/spec/affinity/podAntiAffinity/preferredDuringSchedulingIgnoredDuringExecution/0/weight";
    assert_eq!(built.pointer(term), Some(&json!(100)), "{built:#}");
}

#[tokio::test]
async fn hard_anti_affinity_and_a_rollout_that_cannot_deadlock() {
    let term = "/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution/0/topologyKey";
    let rolling = |surge: i32, unavailable: i32| json!({"maxSurge": surge, "maxUnavailable": unavailable});
    let seen = [
        pod(term, json!("kubernetes.io/hostname"), json!(null)),
        deployment("/spec/strategy/rollingUpdate", rolling(0, 1), rolling(1, 0)),
    ];
    shows("hard", available(json!({"antiAffinityPreset": "hard"})), json!({}), &seen).await;
}

#[tokio::test]
async fn topology_spread() {
    let constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"});
    let selector = "/topologySpreadConstraints/0/labelSelector/matchLabels/app.kubernetes.io~1name";
    let seen = [
        pod("/topologySpreadConstraints/0/topologyKey", json!("zone"), json!(null)),
        pod(selector, json!("memcached"), json!(null)),
    ];
    shows("spread", available(json!({"topologySpreadConstraints": [constraint]})), json!({}), &seen).await;
}

#[tokio::test]
async fn disruption_budget() {
    let budget = |section: Value| json!({"replicas": 3, "highAvailability": {"podDisruptionBudget": section}});
    let off = budget(json!({"enabled": false, "minAvailable": 2}));
    let seen = [
        child("PodDisruptionBudget", "/spec/minAvailable", json!(2), json!(null)),
        child("PodDisruptionBudget", "/spec/maxUnavailable", json!(null), json!(null)),
        child("PodDisruptionBudget", "/kind", json!("PodDisruptionBudget"), json!(null)),
    ];
    shows("budget", budget(json!({"enabled": true, "minAvailable": 2})), off, &seen).await;
    // From one to the other: the API server refuses an object with both.
    let seen = [
        child("PodDisruptionBudget", "/spec/maxUnavailable", json!("30%"), json!(null)),
        child("PodDisruptionBudget", "/spec/minAvailable", json!(null), json!(1)),
    ];
    let on = budget(json!({"enabled": true, "maxUnavailable": "30%"}));
    shows("budget", on, budget(json!({"enabled": true, "minAvailable": 1})), &seen).await;
}

#[tokio::test]
async fn graceful_shutdown() {
    let hook = "/lifecycle/preStop/exec/command";
    let seen = [
        server(hook, json!(["sleep", "5"]), json!(["sleep", "10"])),
        pod("/terminationGracePeriodSeconds", json!(20), json!(30)),
    ];
    let on = json!({"enabled": true, "preStopDelaySeconds": 5, "terminationGracePeriodSeconds": 20});
    let defaults = json!({"enabled": true});
    let of = |shutdown: Value| available(json!({"gracefulShutdown": shutdown}));
    shows("shutdown", of(on.clone()), of(defaults), &seen).await;
    let seen = [server(hook, json!(["sleep", "5"]), json!(null))];
    shows("shutdown", of(on), of(json!({"enabled": false})), &seen).await;
}

#[tokio::test]
async fn pacing() {
    let seen = [
        deployment("/spec/minReadySeconds", json!(7), json!(null)),
        deployment("/spec/progressDeadlineSeconds", json!(120), json!(600)),
    ];
    let rollout = json!({"minReadySeconds": 7, "progressDeadlineSeconds": 120});
    // The type stays once it is said.
    let off = json!({"workload": {"type": "Deployment"}});
    shows("pacing", json!({"workload": {"type": "Deployment", "rollout": rollout}}), off, &seen).await;
}

// The API server tells constraints apart by `whenUnsatisfiable` too: what was created must not stay beside the new one.
#[tokio::test]
async fn a_spread_constraint_that_is_changed_replaces_the_old_one() {
    let arena = Arena::shared().await;
    let place = arena.namespace("spread").await;
    let spread = |when: &str| {
        let constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": when});
        json!({"replicas": 0, "highAvailability": {"topologySpreadConstraints": [constraint]}})
    };
    for when in ["DoNotSchedule", "ScheduleAnyway", "DoNotSchedule"] {
        place.declare("sessions", spread(when)).await;
        let is_alone = |deployment: &Value| {
            let all = deployment["spec"]["template"]["spec"]["topologySpreadConstraints"].as_array();
            all.is_some_and(|all| all.len() == 1 && all[0]["whenUnsatisfiable"] == when)
        };
        place.eventually("deployment", "sessions", when, is_alone).await;
    }
}
