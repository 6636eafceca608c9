//! How the server runs.

use serde_json::{Value, json};

use super::{child, deployment, server, shows};

/// A declaration with one setting of the server.
fn set(name: &str, value: Value) -> Value {
    json!({"memcached": {name: value}})
}

#[tokio::test]
async fn replicas() {
    let seen = [deployment("/spec/replicas", json!(2), json!(0))];
    shows("replicas", json!({"replicas": 2}), json!({"replicas": 0}), &seen).await;
}

#[tokio::test]
async fn image() {
    let seen = [
        server("/image", json!("registry.example.org/memcached:1.6.45"), json!("memcached:1.6")),
        deployment("/metadata/labels/app.kubernetes.io~1version", json!("1.6.45"), json!("1.6")),
        deployment("/spec/template/metadata/labels/app.kubernetes.io~1version", json!("1.6.45"), json!("1.6")),
    ];
    shows("image", json!({"image": "registry.example.org/memcached:1.6.45"}), json!({}), &seen).await;
}

#[tokio::test]
async fn version() {
    let seen = [
        server("/image", json!("memcached:1.6.45"), json!("memcached:1.6")),
        deployment("/metadata/labels/app.kubernetes.io~1version", json!("1.6.45"), json!("1.6")),
    ];
    shows("version", json!({"version": "1.6.45"}), json!({}), &seen).await;
}

#[tokio::test]
async fn resources() {
    let given = json!({"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}});
    let seen = [server("/resources", given.clone(), json!({}))];
    shows("resources", json!({"resources": given}), json!({}), &seen).await;
}

#[tokio::test]
async fn memory() {
    let seen = [server("/args/1", json!("128"), json!("64"))];
    shows("memory", set("maxMemoryMB", json!(128)), json!({}), &seen).await;
}

#[tokio::test]
async fn connections() {
    let seen = [server("/args/3", json!("2048"), json!("1024"))];
    shows("connections", set("maxConnections", json!(2048)), json!({}), &seen).await;
}

#[tokio::test]
async fn threads() {
    let seen = [server("/args/5", json!("8"), json!("4"))];
    shows("threads", set("threads", json!(8)), json!({}), &seen).await;
}

#[tokio::test]
async fn item_size() {
    let seen = [server("/args/7", json!("2m"), json!("1m"))];
    shows("item", set("maxItemSize", json!("2m")), json!({}), &seen).await;
}

#[tokio::test]
async fn verbosity() {
    let seen = [server("/args/8", json!("-vv"), json!("-v"))];
    shows("verbosity", set("verbosity", json!(2)), set("verbosity", json!(1)), &seen).await;
    let seen = [server("/args/8", json!("-v"), json!(null))];
    shows("verbosity", set("verbosity", json!(1)), json!({}), &seen).await;
}

#[tokio::test]
async fn extra_args() {
    let args = |more: &[&str]| json!([&["-m", "64", "-c", "1024", "-t", "4", "-I", "1m"], more].concat());
    let seen = [server("/args", args(&["-o", "modern"]), args(&[]))];
    shows("extra", set("extraArgs", json!(["-o", "modern"])), json!({}), &seen).await;
}

#[tokio::test]
async fn extstore() {
    let seen = [
        server("/volumeMounts/0/name", json!("extstore"), json!(null)),
        super::pod("/volumes/0/name", json!("extstore"), json!(null)),
        super::pod("/volumes/0/emptyDir/medium", json!(null), json!(null)),
        child("Service", "/spec/clusterIP", json!("None"), json!("None")),
    ];
    shows("extstore", json!({"extstore": {"size": "1Gi"}}), json!({}), &seen).await;
    let claim = "/volumes/0/ephemeral/volumeClaimTemplate/spec/storageClassName";
    let seen = [super::pod(claim, json!("fast"), json!(null))];
    let on = json!({"extstore": {"size": "1Gi", "volumeClaim": {"storageClassName": "fast"}}});
    shows("extstore", on, json!({}), &seen).await;
}
