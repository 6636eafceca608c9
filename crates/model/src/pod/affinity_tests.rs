use serde_json::{Value, json};

use super::*;
use crate::violation::refused;

fn fields(affinity: &Value) -> Vec<String> {
    let affinity = serde_json::from_value(affinity.clone()).unwrap();
    refused(|errors| check_affinity(errors, &affinity))
}

fn term() -> Value {
    json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}})
}

#[test]
fn affinity_that_kubernetes_takes_passes() {
    let good = json!({
        "nodeAffinity": {
            "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                {"matchExpressions": [{"key": "cores", "operator": "Gt", "values": ["4"]}]},
            ]},
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": 100, "preference": {"matchFields": [
                    {"key": "metadata.name", "operator": "In", "values": ["node-1"]},
                ]}},
            ],
        },
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term()}]},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term()]},
    });
    assert_eq!(fields(&good), [""; 0]);
}

#[test]
fn affinity_is_to_something() {
    let required = json!({"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}});
    let weightless = json!([{"weight": 0, "podAffinityTerm": term()}]);
    for (bad, field) in [
        (
            json!({"nodeAffinity": required}),
            "at.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        ),
        (
            json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": weightless}}),
            "at.podAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight",
        ),
        (
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}),
            "at.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey",
        ),
    ] {
        assert_eq!(fields(&bad), [field], "{bad}");
    }
}

#[test]
fn keys_to_match_are_not_selected_already_and_in_one_list() {
    let with = |same: &[&str], other: &[&str]| {
        let mut term = term();
        term["matchLabelKeys"] = json!(same);
        term["mismatchLabelKeys"] = json!(other);
        let found = fields(&json!({"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}));
        found.into_iter().map(|field| field.rsplit('.').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(with(&["x"], &["y"]), [""; 0]);
    assert_eq!(with(&["a"], &[]), ["matchLabelKeys"]);
    assert_eq!(with(&["x"], &["x"]), ["matchLabelKeys", "mismatchLabelKeys"]);
}
