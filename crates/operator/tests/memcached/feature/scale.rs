//! The autoscaler's fields. That it is never fought is in `crate::scale`.

use serde_json::{Value, json};

use super::{child, shows};

fn autoscaled(mut section: Value) -> Value {
    section["enabled"] = json!(true);
    if section["maxReplicas"].is_null() {
        section["maxReplicas"] = json!(3);
    }
    json!({"resources": {"requests": {"cpu": "10m"}}, "autoscaling": section})
}

#[tokio::test]
async fn autoscaling() {
    let cpu = json!([{"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}}}]);
    let kind = "HorizontalPodAutoscaler";
    let seen = [
        child(kind, "/spec/minReplicas", json!(2), json!(null)),
        child(kind, "/spec/maxReplicas", json!(5), json!(null)),
        child(kind, "/spec/metrics", cpu, json!(null)),
        child(kind, "/spec/behavior/scaleDown/stabilizationWindowSeconds", json!(300), json!(null)),
        child(kind, "/spec/scaleTargetRef/kind", json!("Deployment"), json!(null)),
    ];
    let off = json!({"replicas": 1, "autoscaling": {"enabled": false}});
    shows("autoscale", autoscaled(json!({"minReplicas": 2, "maxReplicas": 5})), off, &seen).await;
}

#[tokio::test]
async fn metrics_of_the_autoscaler() {
    let memory = json!({"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "100Mi"}}});
    let seen = [
        child("HorizontalPodAutoscaler", "/spec/metrics/0/resource/name", json!("memory"), json!("cpu")),
        child("HorizontalPodAutoscaler", "/spec/metrics/1", json!(null), json!(null)),
    ];
    shows("metrics", autoscaled(json!({"metrics": [memory]})), autoscaled(json!({})), &seen).await;
}

#[tokio::test]
async fn behavior_of_the_autoscaler() {
    let window = "/spec/behavior/scaleDown/stabilizationWindowSeconds";
    let seen = [child("HorizontalPodAutoscaler", window, json!(60), json!(300))];
    let on = autoscaled(json!({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}}));
    shows("behavior", on, autoscaled(json!({})), &seen).await;
}
