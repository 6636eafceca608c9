use serde_json::{Value, json};

use super::*;

fn fields(spec: &Value) -> Vec<String> {
    let spec = serde_json::from_value(spec.clone()).unwrap();
    check(&spec).into_iter().map(|violation| violation.field.replace("spec.", "")).collect()
}

fn spread(constraints: &Value) -> Vec<String> {
    let found = fields(&json!({"highAvailability": {"topologySpreadConstraints": constraints}}));
    found.into_iter().map(|field| field.replace("highAvailability.topologySpreadConstraints", "")).collect()
}

#[test]
fn tolerations_say_what_taints_can() {
    for good in [
        json!({"operator": "Exists"}),
        json!({"key": "cache", "value": "yes", "effect": "NoSchedule"}),
        json!({"key": "cache", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}),
    ] {
        assert_eq!(fields(&json!({"tolerations": [good]})), [""; 0], "{good}");
    }
    for (bad, field) in [
        (json!({"key": "a", "operator": "Like"}), "operator"),
        (json!({"operator": "Equal"}), "operator"),
        (json!({"key": "a", "operator": "Exists", "value": "b"}), "value"),
        (json!({"key": "a", "effect": "Never"}), "effect"),
        (json!({"key": "a", "tolerationSeconds": 1}), "tolerationSeconds"),
    ] {
        assert_eq!(fields(&json!({"tolerations": [bad]})), [format!("tolerations[0].{field}")], "{bad}");
    }
}

#[test]
fn spreading_is_over_something_and_said_once() {
    let zone = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"});
    let host = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2});
    assert_eq!(spread(&json!([zone, host])), [""; 0]);
    assert_eq!(spread(&json!([zone, zone])), ["[1]"]);
    let over = |name: &str, value: Value| {
        let mut constraint = zone.clone();
        constraint[name] = value;
        spread(&json!([constraint]))
    };
    assert_eq!(over("maxSkew", json!(0)), ["[0].maxSkew"]);
    assert_eq!(over("topologyKey", json!("")), ["[0].topologyKey"]);
    assert_eq!(over("whenUnsatisfiable", json!("Never")), ["[0].whenUnsatisfiable"]);
    assert_eq!(over("minDomains", json!(2)), ["[0].minDomains"]);
    assert_eq!(over("matchLabelKeys", json!(["app.kubernetes.io/name"])), ["[0].matchLabelKeys"]);
}

#[test]
fn affinity_is_to_something() {
    let term = json!({"topologyKey": "zone", "labelSelector": {"matchLabels": {"a": "b"}}});
    let good = json!({"affinity": {
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
        "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"weight": 1, "podAffinityTerm": term}]},
        "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
    }});
    assert_eq!(fields(&good), [""; 0]);
    for (bad, field) in [
        (
            json!({"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []}}}),
            "nodeSelectorTerms",
        ),
        (
            json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": 0, "podAffinityTerm": term}]}}),
            "weight",
        ),
        (
            json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": ""}]}}),
            "topologyKey",
        ),
    ] {
        let found = fields(&json!({"affinity": bad}));
        assert!(found.len() == 1 && found[0].ends_with(field), "{bad}: {found:?}");
    }
}
