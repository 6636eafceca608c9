//! What each change does to pods: the table of the documentation is generated from the same code; here is whether it is
//! complete, and what the table does not have a row for.

use std::collections::{BTreeMap, BTreeSet};

use memcached_api::memcached::crd;
use memcached_api::memcached::spec::WorkloadType;
use memcached_core::memcached::change::{self, Change};
use memcached_core::memcached::revision::decide;
use memcached_core::memcached::rollout::Effect;
use memcached_core::memcached::secret::{self, Data};
use memcached_core::memcached::{PodDefaults, Validated, validate_with};
use serde_json::{Value, json};

use crate::fixture::{accepted, merged, sessions, with_sasl};

/// Sections whose fields differ in what they do.
const SECTIONS: [&str; 5] = ["memcached", "highAvailability", "monitoring", "security", "workload"];

/// What cannot be changed.
const FIXED: [&str; 1] = ["workload.type"];

/// The fields of the schema that have to be in the table.
fn fields() -> BTreeSet<String> {
    let crd = serde_json::to_value(crd::definition().unwrap()).unwrap();
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let names = |schema: &Value| schema.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    let below = |section: &String| {
        let fields = names(&spec[section]["properties"]);
        fields.into_iter().map(|field| format!("{section}.{field}")).collect::<Vec<_>>()
    };
    let (sections, plain): (Vec<_>, Vec<_>) =
        names(spec).into_iter().partition(|name| SECTIONS.contains(&name.as_str()));
    let all = plain.into_iter().chain(sections.iter().flat_map(below));
    all.filter(|field| !FIXED.contains(&field.as_str())).collect()
}

#[test]
fn every_field_of_the_schema_is_changed_once() {
    let tried: Vec<String> = change::all().iter().map(|change| change.field.to_owned()).collect();
    let once: BTreeSet<String> = tried.iter().cloned().collect();
    assert_eq!(tried.len(), once.len(), "one comes twice: {tried:?}");
    assert_eq!(once, fields());
}

#[test]
fn every_change_is_one_and_both_declarations_work() {
    for change in change::all() {
        assert_ne!(change.before, change.after, "{}", change.field);
        for workload in [WorkloadType::Deployment, WorkloadType::StatefulSet] {
            change.effect(workload).unwrap_or_else(|violations| panic!("{}: {violations:?}", change.field));
        }
    }
}

fn effects(field: &str) -> [Effect; 2] {
    let change: Change = change::all().into_iter().find(|change| change.field == field).unwrap();
    [WorkloadType::Deployment, WorkloadType::StatefulSet].map(|workload| change.effect(workload).unwrap())
}

#[test]
fn what_people_choose_a_stateful_set_for_is_warm() {
    for field in ["image", "version", "memcached.threads", "memcached.maxConnections", "memcached.extraArgs"] {
        let [deployment, stateful_set] = effects(field);
        assert!(matches!(deployment, Effect::Recreate(_)), "{field}: {deployment}");
        assert_eq!(stateful_set, Effect::Warm, "{field}");
    }
    assert_eq!(change::of_restart_trigger(WorkloadType::StatefulSet), Effect::Warm);
    assert_eq!(change::of_secret(WorkloadType::StatefulSet), Effect::None, "no part of the template");
    assert!(matches!(change::of_secret(WorkloadType::Deployment), Effect::Recreate(_)));
}

#[test]
fn what_is_not_about_pods_leaves_them_alone() {
    for field in
        ["replicas", "autoscaling", "service", "highAvailability.podDisruptionBudget", "paused", "workload.rollout"]
    {
        assert_eq!(effects(field), [Effect::None, Effect::None], "{field}");
    }
}

/// What a change does to the template of a cache that runs.
fn is_changed_by(before: (&Validated, Option<&str>), after: (&Validated, Option<&str>)) -> bool {
    let running = decide(before.0, before.1, &[], None);
    let revisions: Vec<_> = running.new_revision.into_iter().collect();
    decide(after.0, after.1, &revisions, None).template != running.template
}

fn with_secret(data: &[(&str, &str)]) -> (Validated, Option<String>) {
    let cache = accepted(&with_sasl());
    let data: Data = data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    let hash = secret::hash(&cache, &BTreeMap::from([("passwords".to_owned(), Some(data))]));
    (cache, hash)
}

#[test]
fn a_key_that_is_not_mounted_changes_nothing() {
    let (before, old) = with_secret(&[("password-file", "a:b"), ("note", "x")]);
    let is_changed = |data: &[(&str, &str)]| {
        let (after, new) = with_secret(data);
        is_changed_by((&before, old.as_deref()), (&after, new.as_deref()))
    };
    assert!(is_changed(&[("password-file", "a:c"), ("note", "x")]));
    assert!(!is_changed(&[("password-file", "a:b"), ("note", "y")]));
}

#[test]
fn another_version_of_the_operator_and_a_default_written_down_change_nothing() {
    let other = PodDefaults { image: "memcached:1.7".into(), readiness_seconds: 3, ..PodDefaults::default() };
    for workload in ["Deployment", "StatefulSet"] {
        let spec = json!({"workload": {"type": workload}});
        let before = accepted(&spec);
        let newer = validate_with(&sessions(&spec), &other).unwrap();
        assert!(!is_changed_by((&before, None), (&newer, None)), "{workload}");
        for written in [
            json!({"image": "memcached:1.6"}),
            json!({"memcached": {"maxMemoryMB": 64}}),
            json!({"imagePullPolicy": "IfNotPresent"}),
        ] {
            let after = accepted(&merged(&spec, &written));
            assert!(!is_changed_by((&before, None), (&after, None)), "{workload}: {written}");
        }
    }
}

#[test]
fn an_upgrade_of_the_operator_does_not_turn_a_change_in_place_into_another_pod() {
    let spec = json!({"workload": {"type": "StatefulSet"}, "version": "1.6.38"});
    let running = decide(&accepted(&spec), None, &[], None);
    let revisions: Vec<_> = running.new_revision.into_iter().collect();
    let other = PodDefaults { liveness_seconds: 3, agent_image: "agent:2".into(), ..PodDefaults::default() };
    let spec = merged(&spec, &json!({"version": "1.6.45"}));
    let after = decide(&validate_with(&sessions(&spec), &other).unwrap(), None, &revisions, None);
    let effect =
        memcached_core::memcached::rollout::effect(WorkloadType::StatefulSet, &running.template, &after.template);
    assert_eq!(effect, Effect::Warm);
    assert!(after.newer_defaults.iter().any(|line| line.contains("livenessProbe")), "{:?}", after.newer_defaults);
    assert!(!after.newer_defaults.iter().any(|line| line.contains("agent:2")), "taken: {:?}", after.newer_defaults);
    // And what was not changed stays, whatever today's default is.
    let other = PodDefaults { image: "memcached:1.7".into(), ..PodDefaults::default() };
    let plain = json!({"workload": {"type": "StatefulSet"}});
    let running = decide(&accepted(&plain), None, &[], None);
    let revisions: Vec<_> = running.new_revision.into_iter().collect();
    let labelled = merged(&plain, &json!({"podLabels": {"team": "a"}}));
    let after = decide(&validate_with(&sessions(&labelled), &other).unwrap(), None, &revisions, None);
    assert_eq!(after.template.spec.unwrap().containers[0].image.as_deref(), Some("memcached:1.6"));
}

fn availability(section: &Value) -> Value {
    json!({"highAvailability": section})
}

fn budget_of_three() -> Value {
    let budget = json!({"podDisruptionBudget": {"enabled": true, "minAvailable": 1}});
    merged(&json!({"replicas": 3}), &availability(&budget))
}

#[test]
fn the_default_of_a_new_section_waits_to_be_taken() {
    let running = decide(&accepted(&json!({"replicas": 3})), None, &[], None);
    let revisions: Vec<_> = running.new_revision.into_iter().collect();
    let after = decide(&accepted(&budget_of_three()), None, &revisions, None);
    assert!(after.template == running.template && after.new_revision.is_none(), "the pods stay");
    assert_eq!(after.newer_defaults, ["spec.affinity: none → …"]);
    let asked = merged(&budget_of_three(), &availability(&json!({"antiAffinityPreset": "soft"})));
    let asked = decide(&accepted(&asked), None, &revisions, None);
    assert!(asked.template.spec.unwrap().affinity.is_some(), "who says it gets it");
}
