use serde_json::{Value, json};

use super::*;

fn fields(spec: &Value) -> Vec<String> {
    let spec = serde_json::from_value(spec.clone()).unwrap();
    check(&spec).into_iter().map(|violation| violation.field.replace("spec.", "")).collect()
}

#[test]
fn what_kubernetes_takes_passes() {
    let good = json!({
        "podLabels": {"team": "a", "example.org/tier": ""},
        "podAnnotations": {"Example.org/note": "any text at all"},
        "nodeSelector": {"disk": "fast"},
        "service": {"annotations": {"example.org/x": "y"}},
        "priorityClassName": "", "serviceAccountName": "runner", "imagePullPolicy": "Never",
        "imagePullSecrets": [{"name": "login"}],
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}},
            {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        ],
    });
    assert_eq!(fields(&good), [""; 0]);
}

#[test]
fn what_kubernetes_would_refuse_is_refused_with_its_field() {
    for (bad, field) in [
        (json!({"podLabels": {"a b": "c"}}), "podLabels"),
        (json!({"podLabels": {"a": "b c"}}), "podLabels"),
        (json!({"podAnnotations": {"a b": "c"}}), "podAnnotations"),
        (json!({"nodeSelector": {"disk": "-"}}), "nodeSelector"),
        (json!({"service": {"annotations": {"": "c"}}}), "service.annotations"),
        (json!({"priorityClassName": "High"}), "priorityClassName"),
        (json!({"serviceAccountName": "a b"}), "serviceAccountName"),
        (json!({"imagePullSecrets": [{"name": "A"}]}), "imagePullSecrets[0].name"),
        (json!({"imagePullPolicy": "Sometimes"}), "imagePullPolicy"),
        (json!({"env": [{"name": "1A"}]}), "env[0].name"),
        (json!({"env": [{"name": "A"}, {"name": "A"}]}), "env[1].name"),
        (json!({"env": [{"name": "A", "valueFrom": {}}]}), "env[0].valueFrom"),
        (
            json!({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}}]}),
            "env[0].valueFrom",
        ),
        (
            json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]}),
            "env[0].valueFrom.fieldRef.fieldPath",
        ),
    ] {
        assert_eq!(fields(&bad), [field], "{bad}");
    }
}

#[test]
fn the_labels_that_pods_are_found_by_are_the_operators() {
    for key in ["app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"] {
        assert_eq!(fields(&json!({"podLabels": {key: "x"}})), ["podLabels"]);
    }
    assert_eq!(fields(&json!({"podLabels": {"app.kubernetes.io/part-of": "shop"}})), [""; 0]);
}
