//! The table "What each change does" of the documentation, row by row: whether the pod template stays or changes.

use std::collections::{BTreeMap, BTreeSet};

use memcached_api::Memcached;
use memcached_core::memcached::revision::decide;
use memcached_core::memcached::secret::{self, Data};
use memcached_core::memcached::{PodDefaults, Validated, validate_with};
use serde_json::{Value, json};

use crate::fixture::{accepted, merged, sessions, with_knobs, with_monitoring, with_sasl, with_tls};

const PAGE: &str = include_str!("../../../../docs/src/concepts/changes.md");

/// The rows of the table: what is changed, and what happens to the pods.
fn rows() -> Vec<(&'static str, &'static str)> {
    let cells = |line: &'static str| line.split('|').map(str::trim).skip(1).collect::<Vec<_>>();
    let table = PAGE.lines().skip_while(|line| !line.starts_with("| you change")).skip(2);
    table.take_while(|line| line.starts_with('|')).map(cells).map(|cells| (cells[0], cells[1])).collect()
}

/// Whether the words of the table mean that pods are replaced.
fn is_replaced(pods: &str) -> bool {
    const KEPT: [&str; 3] = ["nothing", "new pods beside", "the surplus ends"];
    let is_kept = KEPT.iter().any(|words| pods.starts_with(words));
    let is_replaced = pods.starts_with("replaced one by one");
    assert!(is_kept != is_replaced, "{pods:?} says neither");
    is_replaced
}

/// What a change does to the template of a cache that runs.
fn is_changed_by(before: (&Validated, Option<&str>), after: (&Validated, Option<&str>)) -> bool {
    let running = decide(before.0, before.1, &[], None);
    let revisions: Vec<_> = running.new_revision.into_iter().collect();
    decide(after.0, after.1, &revisions, None).template != running.template
}

fn changes(base: &Value, over: &Value) -> bool {
    is_changed_by((&accepted(base), None), (&accepted(&merged(base, over)), None))
}

/// The same change, of a plain cache and of one that has a section `highAvailability` already.
fn on_each(over: &[Value]) -> Vec<bool> {
    let plain = json!({"replicas": 3, "resources": {"requests": {"cpu": "250m"}}});
    let available = merged(&plain, &json!({"highAvailability": {}}));
    [plain, available].iter().flat_map(|base| over.iter().map(|over| changes(base, over))).collect()
}

fn availability(section: &Value) -> Value {
    json!({"highAvailability": section})
}

fn with_secret(data: &[(&str, &str)]) -> (Validated, Option<String>) {
    let cache = accepted(&with_sasl());
    let data: Data = data.iter().map(|(key, value)| ((*key).to_owned(), value.as_bytes().to_vec())).collect();
    let hash = secret::hash(&cache, &BTreeMap::from([("passwords".to_owned(), Some(data))]));
    (cache, hash)
}

fn secret_changes(data: &[(&str, &str)]) -> bool {
    let (before, old) = with_secret(&[("password-file", "a:b"), ("note", "x")]);
    let (after, new) = with_secret(data);
    is_changed_by((&before, old.as_deref()), (&after, new.as_deref()))
}

fn other_version() -> bool {
    let other = PodDefaults { image: "memcached:1.7".into(), readiness_seconds: 3, ..PodDefaults::default() };
    let cache = sessions(&json!({}));
    is_changed_by((&accepted(&json!({})), None), (&validate_with(&cache, &other).unwrap(), None))
}

fn trigger() -> bool {
    let mut cache: Memcached = sessions(&json!({}));
    let annotation = ("memcached.c5c3.io/restart-trigger".to_owned(), "now".to_owned());
    cache.metadata.annotations = Some([annotation].into());
    is_changed_by((&accepted(&json!({})), None), (&validate_with(&cache, &PodDefaults::default()).unwrap(), None))
}

fn budget() -> Value {
    availability(&json!({"podDisruptionBudget": {"enabled": true, "minAvailable": 1}}))
}

fn spread() -> Value {
    let constraint = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"});
    availability(&json!({"topologySpreadConstraints": [constraint]}))
}

/// The pod fields, each alone.
fn knobs() -> Vec<bool> {
    let all = with_knobs();
    let volumes = json!({"extraVolumes": all["extraVolumes"]});
    let each = all.as_object().unwrap().iter().map(|(name, value)| json!({name: value}));
    each.map(|knob| {
        let base = if knob.get("extraVolumeMounts").is_some() { volumes.clone() } else { json!({}) };
        changes(&base, &knob)
    })
    .collect()
}

/// What the changes of a row do: whether each of them changes the template. None for a row that nobody tries.
#[allow(clippy::too_many_lines, reason = "a table: one row of the documentation, one arm")]
fn tried(row: &str) -> Option<Vec<bool>> {
    tried_beside_pods(row).or_else(|| tried_on_pods(row))
}

/// Rows that are not about the pods themselves.
fn tried_beside_pods(row: &str) -> Option<Vec<bool>> {
    let autoscaling = json!({"autoscaling": {"enabled": true, "maxReplicas": 7}});
    let enabled = with_monitoring();
    Some(match row {
        "the operator's version" => vec![other_version()],
        "`replicas` up" => on_each(&[json!({"replicas": 5})]),
        "`replicas` down" => on_each(&[json!({"replicas": 1})]),
        "`autoscaling` on or off" => {
            let requests = json!({"resources": {"requests": {"cpu": "250m"}}});
            let on = merged(&requests, &autoscaling);
            let off = merged(&on, &json!({"autoscaling": {"enabled": false}}));
            vec![changes(&requests, &on), changes(&on, &off)]
        }
        "`podDisruptionBudget`, `networkPolicy`, `service`, `serviceMonitor`" => {
            let policy = json!({"security": {"networkPolicy": {"enabled": true}}});
            let service = json!({"service": {"type": "ClusterIP", "annotations": {"a": "b"}}});
            let monitor = changes(&enabled, &json!({"monitoring": {"serviceMonitor": {"interval": "60s"}}}));
            [on_each(&[budget(), policy, service]), vec![monitor]].concat()
        }
        "the section `highAvailability`, and the preset `soft` that is its default" => {
            let soft = availability(&json!({"antiAffinityPreset": "soft"}));
            let off = is_changed_by((&accepted(&budget_of_three()), None), (&accepted(&json!({"replicas": 3})), None));
            let mut done = on_each(&[availability(&json!({}))]);
            done.extend([off, changes(&budget_of_three(), &soft)]);
            done
        }
        "`workload.rollout`" => on_each(&[json!({"workload": {"rollout": {"minReadySeconds": 60}}})]),
        "`paused`" => on_each(&[json!({"paused": true})]),
        _ => return None,
    })
}

/// Rows that are.
fn tried_on_pods(row: &str) -> Option<Vec<bool>> {
    let contexts = |name: &str| json!({"security": {name: {"runAsNonRoot": true}}});
    let enabled = with_monitoring();
    Some(match row {
        "`image`, `version`" => on_each(&[json!({"image": "memcached:1.6.45"}), json!({"version": "1.6.45"})]),
        "`memcached.*`, `resources`, `extstore`" => on_each(&[
            json!({"memcached": {"threads": 8}}),
            json!({"resources": {"requests": {"cpu": "1"}}}),
            json!({"extstore": {"size": "1Gi"}}),
        ]),
        "`monitoring.enabled`, `exporterImage`, `exporterResources`" => {
            let image = json!({"monitoring": {"exporterImage": "example.org/exporter:1"}});
            let resources = json!({"monitoring": {"exporterResources": {"requests": {"cpu": "10m"}}}});
            vec![changes(&json!({}), &enabled), changes(&enabled, &image), changes(&enabled, &resources)]
        }
        "`antiAffinityPreset`, `topologySpreadConstraints`, `gracefulShutdown`" => {
            let hard = availability(&json!({"antiAffinityPreset": "hard"}));
            let shutdown = availability(&json!({"gracefulShutdown": {"enabled": true}}));
            let soft = availability(&json!({"antiAffinityPreset": "soft"}));
            [on_each(&[hard.clone(), spread(), shutdown]), vec![changes(&json!({}), &soft), changes(&hard, &soft)]]
                .concat()
        }
        "`nodeSelector`, `tolerations`, `affinity` and the other pod fields" => knobs(),
        "`sasl`, `tls`, security contexts" => {
            on_each(&[with_sasl(), with_tls(), contexts("podSecurityContext"), contexts("containerSecurityContext")])
        }
        "a mounted key of a Secret" => vec![secret_changes(&[("password-file", "a:c"), ("note", "x")])],
        "another key of the same Secret" => vec![secret_changes(&[("password-file", "a:b"), ("note", "y")])],
        "writing a default down" => on_each(&[
            json!({"image": "memcached:1.6"}),
            json!({"memcached": {"maxMemoryMB": 64}}),
            json!({"imagePullPolicy": "IfNotPresent"}),
        ]),
        "the annotation `memcached.c5c3.io/restart-trigger`" => vec![trigger()],
        _ => return None,
    })
}

fn budget_of_three() -> Value {
    merged(&json!({"replicas": 3}), &budget())
}

#[test]
fn each_row_of_the_table_is_true() {
    let rows = rows();
    assert!(rows.len() > 15, "the table was not found: {rows:?}");
    assert_eq!(rows.iter().map(|(what, _)| what).collect::<BTreeSet<_>>().len(), rows.len(), "a row comes twice");
    let mut wrong = Vec::new();
    for (what, pods) in rows {
        let expected = is_replaced(pods);
        match tried(what) {
            None => wrong.push(format!("{what}: no change is tried for this row")),
            Some(done) if done.len() < what.matches('`').count() / 2 => {
                wrong.push(format!("{what}: not every field is tried"));
            }
            Some(done) if done.iter().any(|is_changed| *is_changed != expected) => {
                wrong.push(format!("{what}: {pods}, but the template changes: {done:?}"));
            }
            Some(_) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
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
