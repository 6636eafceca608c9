//! Who decides how many servers there are.

use serde_json::{Value, json};

use super::{Example, accepted, refused};

/// An autoscaled declaration with a CPU request, over another.
pub fn autoscaled(mut autoscaling: Value, over: &Value) -> Value {
    autoscaling["enabled"] = json!(true);
    let mut spec = json!({"resources": {"requests": {"cpu": "50m"}}, "autoscaling": autoscaling});
    for (name, value) in over.as_object().into_iter().flatten() {
        spec[name] = value.clone();
    }
    spec
}

fn metric(resource: &str) -> Value {
    json!([{"type": "Resource", "resource": {
        "name": resource, "target": {"type": "Utilization", "averageUtilization": 80},
    }}])
}

pub fn examples() -> Vec<Example> {
    let warm = json!({"warmRestart": {"enabled": true}, "workload": {"type": "StatefulSet"}});
    let on_memory = json!({"maxReplicas": 3, "metrics": metric("memory")});
    let mut all = vec![
        accepted(8, autoscaled(json!({"maxReplicas": 3}), &json!({}))),
        accepted(8, json!({"replicas": 3, "autoscaling": {"enabled": false, "maxReplicas": 3}})),
        refused(8, autoscaled(json!({"maxReplicas": 3}), &json!({"replicas": 3})), "spec.replicas", "remove it"),
        accepted(9, autoscaled(json!({"minReplicas": 3, "maxReplicas": 3}), &json!({}))),
        refused(
            9,
            autoscaled(json!({"minReplicas": 4, "maxReplicas": 3}), &json!({})),
            "spec.autoscaling.minReplicas",
            "4 is more than maxReplicas 3",
        ),
        refused(9, autoscaled(json!({}), &json!({})), "spec.autoscaling.maxReplicas", "required"),
        accepted(19, autoscaled(on_memory.clone(), &json!({}))),
        refused(19, autoscaled(on_memory, &warm), "spec.autoscaling.metrics", "does not go with warmRestart"),
    ];
    all.extend(cpu_examples());
    all
}

fn cpu_examples() -> Vec<Example> {
    let cpu = "spec.resources.requests.cpu";
    let exporter = "spec.monitoring.exporterResources.requests.cpu";
    vec![
        accepted(10, autoscaled(json!({"maxReplicas": 3}), &json!({"resources": {"limits": {"cpu": "1"}}}))),
        accepted(10, autoscaled(json!({"maxReplicas": 3, "metrics": metric("memory")}), &json!({"resources": {}}))),
        refused(
            10,
            autoscaled(json!({"maxReplicas": 3}), &json!({"resources": {}})),
            cpu,
            "to scale by CPU utilisation",
        ),
        refused(
            10,
            autoscaled(
                json!({"maxReplicas": 3, "metrics": metric("cpu")}),
                &json!({"resources": {"requests": {"memory": "1Gi"}}}),
            ),
            cpu,
            "to scale by CPU utilisation",
        ),
        refused(
            10,
            autoscaled(json!({"maxReplicas": 3}), &json!({"monitoring": {"enabled": true}})),
            exporter,
            "to scale by CPU utilisation",
        ),
        accepted(
            10,
            autoscaled(
                json!({"maxReplicas": 3}),
                &json!({"monitoring": {
                    "enabled": true, "exporterResources": {"requests": {"cpu": "10m"}},
                }}),
            ),
        ),
    ]
}
