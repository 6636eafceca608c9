//! The exporter, its port, and the ServiceMonitor.

use serde_json::{Value, json};

use super::{child, pod, shows};

fn monitored(mut section: Value) -> Value {
    section["enabled"] = json!(true);
    json!({"monitoring": section})
}

fn off() -> Value {
    json!({"monitoring": {"enabled": false}})
}

#[tokio::test]
async fn monitoring() {
    let seen = [
        pod("/containers/1/name", json!("exporter"), json!(null)),
        pod("/containers/1/image", json!("prom/memcached-exporter:v0.15.4"), json!(null)),
        pod("/containers/1/ports/0/name", json!("metrics"), json!(null)),
        pod("/containers/1/ports/0/containerPort", json!(9150), json!(null)),
        child("Service", "/spec/ports/1/port", json!(9150), json!(null)),
        child("Service", "/spec/ports/1/targetPort", json!("metrics"), json!(null)),
        child("ServiceMonitor", "/kind", json!(null), json!(null)),
    ];
    shows("monitoring", monitored(json!({})), off(), &seen).await;
}

#[tokio::test]
async fn exporter_image() {
    let image = "example.org/exporter:2";
    let seen = [pod("/containers/1/image", json!(image), json!("prom/memcached-exporter:v0.15.4"))];
    shows("exporter", monitored(json!({"exporterImage": image})), monitored(json!({})), &seen).await;
}

#[tokio::test]
async fn exporter_resources() {
    let given = json!({"limits": {"cpu": "50m", "memory": "32Mi"}, "requests": {"cpu": "50m", "memory": "32Mi"}});
    let seen = [pod("/containers/1/resources", given.clone(), json!({}))];
    shows("exporter", monitored(json!({"exporterResources": given})), monitored(json!({})), &seen).await;
}

#[tokio::test]
async fn service_monitor() {
    let endpoint =
        |interval: &str, timeout: &str| json!({"port": "metrics", "interval": interval, "scrapeTimeout": timeout});
    let seen = [
        child("ServiceMonitor", "/spec/endpoints", json!([endpoint("60s", "20s")]), json!([endpoint("30s", "10s")])),
        child("ServiceMonitor", "/metadata/labels/release", json!("prometheus"), json!(null)),
        child("ServiceMonitor", "/metadata/labels/app.kubernetes.io~1name", json!("memcached"), json!("memcached")),
    ];
    let on = json!({"additionalLabels": {"release": "prometheus"}, "interval": "60s", "scrapeTimeout": "20s"});
    // Not `{}`: where fields were before, server-side apply makes a null of an empty object.
    let defaults = monitored(json!({"serviceMonitor": {"interval": "30s"}}));
    shows("monitor", monitored(json!({"serviceMonitor": on})), defaults, &seen).await;
    let seen = [child("ServiceMonitor", "/kind", json!("ServiceMonitor"), json!(null))];
    shows("monitor", monitored(json!({"serviceMonitor": {}})), monitored(json!({})), &seen).await;
}
