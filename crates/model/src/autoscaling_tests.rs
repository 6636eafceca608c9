use serde_json::{Value, json};

use super::*;
use crate::violation::refused;

fn metric(metric: &Value) -> Vec<String> {
    let metric = serde_json::from_value(metric.clone()).unwrap();
    refused(|errors| check_metrics(errors, &[metric], &["server"]))
}

fn of_container(container: &str) -> Value {
    let target = json!({"type": "Utilization", "averageUtilization": 1});
    let source = json!({"name": "cpu", "container": container, "target": target});
    json!({"type": "ContainerResource", "containerResource": source})
}

#[test]
fn a_metric_has_the_source_and_the_target_that_it_says() {
    let cpu = |target: Value| json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
    assert_eq!(metric(&cpu(json!({"type": "Utilization", "averageUtilization": 80}))), [""; 0]);
    assert_eq!(metric(&cpu(json!({"type": "AverageValue", "averageValue": "500m"}))), [""; 0]);
    for bad in [
        json!({"type": "Utilization"}),
        json!({"type": "Utilization", "averageValue": "1"}),
        json!({"type": "Value", "value": "1"}),
    ] {
        assert!(metric(&cpu(bad.clone())).iter().any(|field| field.starts_with("at[0].resource.target")), "{bad}");
    }
    assert_eq!(metric(&json!({"type": "Pods"})), ["at[0].type"]);
}

#[test]
fn a_metric_is_of_a_container_that_there_is() {
    assert_eq!(metric(&of_container("server")), [""; 0]);
    assert_eq!(metric(&of_container("other")), ["at[0].containerResource.container"]);
}

#[test]
fn behavior_is_within_bounds() {
    let down = |rules: Value| {
        let behavior = serde_json::from_value(json!({"scaleDown": rules})).unwrap();
        refused(|errors| check_behavior(errors, &behavior))
    };
    let policy = json!({"type": "Pods", "value": 1, "periodSeconds": 60});
    assert_eq!(down(json!({"stabilizationWindowSeconds": 3600, "policies": [policy]})), [""; 0]);
    for (bad, field) in [
        (json!({"stabilizationWindowSeconds": 3601}), "stabilizationWindowSeconds"),
        (json!({"selectPolicy": "Most"}), "selectPolicy"),
        (json!({"policies": []}), "policies"),
        (json!({"policies": [{"type": "Pods", "value": 0, "periodSeconds": 60}]}), "policies[0].value"),
        (json!({"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}), "policies[0].periodSeconds"),
    ] {
        assert_eq!(down(bad.clone()), [format!("at.scaleDown.{field}")], "{bad}");
    }
}

#[test]
fn utilization_is_of_what_is_requested() {
    let metric = |value: Value| serde_json::from_value::<MetricSpec>(value).unwrap();
    let of_pods = metric(json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80},
    }}));
    let of_server = metric(of_container("server"));
    assert!(is_cpu_utilization(&of_pods) && !is_cpu_utilization(&of_server));
    assert!(is_cpu_utilization_of(&of_server, "server") && !is_cpu_utilization_of(&of_server, "other"));
    assert!(!is_memory(&of_pods) && !is_memory(&of_server));
}
