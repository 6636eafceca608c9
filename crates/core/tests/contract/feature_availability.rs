//! Rows of the contract's spec table: spreading, budgets, shutdown, rollout.

use memcached_core::memcached::build::Child;
use serde_json::{Value, json};

use crate::diff::{changes, changes_on, without_insides_of};
use crate::fixture::refused;

const NOTHING: [&str; 0] = [];

fn on_soft(declared: &Value) -> Vec<String> {
    changes_on(&json!({"highAvailability": {}}), &json!({"highAvailability": declared}))
}

#[test]
fn the_section_alone_keeps_servers_apart_softly() {
    const TERM: &str = "+ template.spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]";
    let expected = [
        format!("{TERM}.podAffinityTerm.labelSelector.matchLabels.app.kubernetes.io/instance: sessions"),
        format!("{TERM}.podAffinityTerm.labelSelector.matchLabels.app.kubernetes.io/name: memcached"),
        format!("{TERM}.podAffinityTerm.topologyKey: kubernetes.io/hostname"),
        format!("{TERM}.weight: 100"),
    ];
    assert_eq!(changes(&json!({"highAvailability": {}})), expected);
    assert_eq!(on_soft(&json!({"antiAffinityPreset": "soft"})), NOTHING);
}

#[test]
fn a_hard_preset_cannot_deadlock_its_rollout() {
    const TERM: &str = "+ template.spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0]";
    let expected = [
        "Deployment.spec.strategy.rollingUpdate.maxSurge: 1 → 0".to_owned(),
        "Deployment.spec.strategy.rollingUpdate.maxUnavailable: 0 → 1".to_owned(),
        format!("{TERM}.labelSelector.matchLabels.app.kubernetes.io/instance: sessions"),
        format!("{TERM}.labelSelector.matchLabels.app.kubernetes.io/name: memcached"),
        format!("{TERM}.topologyKey: kubernetes.io/hostname"),
    ];
    assert_eq!(changes(&json!({"highAvailability": {"antiAffinityPreset": "hard"}})), expected);
}

#[test]
fn a_preset_is_added_to_the_users_affinity() {
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "other"}}});
    for (preset, list) in [
        ("soft", "preferredDuringSchedulingIgnoredDuringExecution"),
        ("hard", "requiredDuringSchedulingIgnoredDuringExecution"),
    ] {
        let theirs = if preset == "soft" { json!({"weight": 1, "podAffinityTerm": term}) } else { term.clone() };
        let own = json!({"affinity": {"podAntiAffinity": {list: [theirs]}}});
        let lines = changes_on(&own, &json!({"highAvailability": {"antiAffinityPreset": preset}}));
        let affinity: Vec<_> = lines.iter().filter(|line| line.contains("affinity")).collect();
        assert!(!affinity.is_empty());
        assert!(
            affinity.iter().all(|line| line.contains(&format!("+ template.spec.affinity.podAntiAffinity.{list}[1]")))
        );
    }
}

#[test]
fn a_spread_without_a_selector_selects_this_cache() {
    const PATH: &str = "+ template.spec.topologySpreadConstraints[0]";
    let constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"});
    let expected = [
        format!("{PATH}.labelSelector.matchLabels.app.kubernetes.io/instance: sessions"),
        format!("{PATH}.labelSelector.matchLabels.app.kubernetes.io/managed-by: memcached-operator"),
        format!("{PATH}.labelSelector.matchLabels.app.kubernetes.io/name: memcached"),
        format!("{PATH}.maxSkew: 1"),
        format!("{PATH}.topologyKey: zone"),
        format!("{PATH}.whenUnsatisfiable: DoNotSchedule"),
    ];
    assert_eq!(on_soft(&json!({"topologySpreadConstraints": [constraint]})), expected);
    assert_eq!(on_soft(&json!({"topologySpreadConstraints": []})), NOTHING);
}

#[test]
fn a_spread_with_a_selector_keeps_it() {
    let selector = json!({"matchLabels": {"team": "checkout"}});
    let constraint = json!({
        "maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": selector,
    });
    let lines = on_soft(&json!({"topologySpreadConstraints": [constraint]}));
    let selectors: Vec<_> = lines.iter().filter(|line| line.contains("labelSelector")).collect();
    assert_eq!(selectors, ["+ template.spec.topologySpreadConstraints[0].labelSelector.matchLabels.team: checkout"]);
}

#[test]
fn a_budget_is_one_more_object() {
    for limit in [json!({"minAvailable": 1}), json!({"maxUnavailable": "25%"})] {
        let (key, value) = limit.as_object().unwrap().iter().next().unwrap();
        let mut declared = limit.clone();
        declared["enabled"] = json!(true);
        let lines = changes_on(
            &json!({"replicas": 3, "highAvailability": {}}),
            &json!({"highAvailability": {"podDisruptionBudget": declared}}),
        );
        let shown = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let limits: Vec<_> = lines.iter().filter(|line| line.contains("vailable:")).collect();
        assert_eq!(limits, [&format!("+ Budget.spec.{key}: {shown}")]);
        assert_eq!(without_insides_of(Child::Budget, lines), ["+ Budget"]);
    }
    assert_eq!(on_soft(&json!({"podDisruptionBudget": {"enabled": false, "minAvailable": 1}})), NOTHING);
}

#[test]
fn a_budget_of_both_or_neither_is_refused() {
    let budget = |declared| refused(&json!({"highAvailability": {"podDisruptionBudget": declared}}));
    assert_eq!(budget(json!({"enabled": true})), ["spec.highAvailability.podDisruptionBudget"]);
    assert_eq!(
        budget(json!({"enabled": true, "minAvailable": 1, "maxUnavailable": 1})),
        ["spec.highAvailability.podDisruptionBudget.maxUnavailable"]
    );
}

#[test]
fn a_graceful_shutdown_waits_before_the_server_stops() {
    assert_eq!(
        on_soft(&json!({"gracefulShutdown": {"enabled": true}})),
        ["+ server.lifecycle.preStop.exec.command: sleep 10", "+ template.spec.terminationGracePeriodSeconds: 30",]
    );
    let longer = json!({"enabled": true, "preStopDelaySeconds": 20, "terminationGracePeriodSeconds": 50});
    assert_eq!(
        on_soft(&json!({"gracefulShutdown": longer})),
        ["+ server.lifecycle.preStop.exec.command: sleep 20", "+ template.spec.terminationGracePeriodSeconds: 50",]
    );
    assert_eq!(on_soft(&json!({"gracefulShutdown": {"enabled": false, "preStopDelaySeconds": 20}})), NOTHING);
}

#[test]
fn a_rollout_is_paced_by_the_deployment() {
    let rollout = json!({"workload": {"rollout": {"minReadySeconds": 30, "progressDeadlineSeconds": 900}}});
    assert_eq!(
        changes(&rollout),
        ["+ Deployment.spec.minReadySeconds: 30", "+ Deployment.spec.progressDeadlineSeconds: 900"]
    );
    assert_eq!(changes(&json!({"workload": {"type": "Deployment"}})), NOTHING);
}

#[test]
fn a_rollout_has_longer_than_a_server_waits() {
    let rollout = |declared: Value| json!({"workload": {"rollout": declared}});
    assert_eq!(changes(&rollout(json!({"minReadySeconds": 599}))), ["+ Deployment.spec.minReadySeconds: 599"]);
    assert_eq!(
        changes(&rollout(json!({"minReadySeconds": 600}))),
        ["+ Deployment.spec.minReadySeconds: 600", "+ Deployment.spec.progressDeadlineSeconds: 1200"]
    );
    assert_eq!(
        refused(&rollout(json!({"minReadySeconds": 60, "progressDeadlineSeconds": 60}))),
        ["spec.workload.rollout.progressDeadlineSeconds"]
    );
}

#[test]
fn what_needs_a_stateful_set_is_refused_without_one() {
    assert_eq!(refused(&json!({"warmRestart": {"enabled": true}})), ["spec.warmRestart.enabled"]);
    assert_eq!(changes(&json!({"warmRestart": {"enabled": false}})), NOTHING);
}
