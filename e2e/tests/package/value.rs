//! The chart's values: every switch on and off is accepted by an API server, and nonsense is refused by the schema.

use std::path::Path;

use e2e::helm::{CHART, Helm};
use e2e::operator::ours;
use serde_json::Value;
use testbed::{Cluster, ControlPlane};

use crate::document::objects;
use crate::kind;

/// An API server that knows the kinds of the Prometheus operator and of cert-manager.
async fn server() -> ControlPlane {
    let cluster = ControlPlane::start().await.unwrap();
    kind::install(&cluster).await;
    for namespace in ["ops", "one", "two"] {
        cluster.kubectl(&["create", "namespace", namespace]).unwrap();
    }
    cluster
}

/// The paths of all switches among the values, with their defaults.
fn switches(path: &str, values: &Value, found: &mut Vec<(String, bool)>) {
    for (name, value) in values.as_object().into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        // What Kubernetes defines is passed on as it is.
        if path.ends_with("ecurityContext") {
            continue;
        }
        match value {
            Value::Bool(default) => found.push((path, *default)),
            _ => switches(&path, value, found),
        }
    }
}

/// Renders the chart, and has the API server look at every object without keeping it.
fn accepted(cluster: &Cluster, helm: &Helm, dir: &Path, values: &[&str]) -> Result<String, String> {
    let template = [&["template", "shop", CHART, "--namespace", "ops"][..], values].concat();
    let rendered = helm.run(&template).map_err(|error| error.to_string())?;
    let file = dir.join("rendered.yaml");
    std::fs::write(&file, &rendered).unwrap();
    let apply = ["apply", "--server-side", "--dry-run=server", "--filename", file.to_str().unwrap()];
    cluster.kubectl(&apply).map(|_| rendered).map_err(|error| error.to_string())
}

#[tokio::test]
async fn every_switch_on_and_off_is_accepted() {
    let cluster = server().await;
    let dir = tempfile::tempdir().unwrap();
    let helm = Helm::of(&cluster, dir.path()).unwrap();
    let text = std::fs::read_to_string(format!("{CHART}/values.yaml")).unwrap();
    let values: Value = serde_saphyr::from_str(&text).unwrap();
    let mut found = Vec::new();
    switches("", &values, &mut found);
    assert!(found.len() >= 15, "{found:?}");
    let default = objects(&accepted(&cluster, &helm, dir.path(), &[]).unwrap());
    for (path, default_value) in &found {
        let flipped = format!("{path}={}", !default_value);
        let rendered = accepted(&cluster, &helm, dir.path(), &["--set", &flipped]);
        let rendered = rendered.unwrap_or_else(|error| panic!("{flipped}: {error}"));
        let has_effect = objects(&rendered) != default;
        assert_eq!(has_effect, path != "crds.managedByHelm", "{flipped}");
    }
    // All of them the other way round, as far as they go together.
    let all: Vec<String> = found
        .iter()
        .filter(|(path, _)| path != "leaderElection.enabled" && path != "metrics.enabled")
        .map(|(path, default_value)| format!("{path}={}", !default_value))
        .collect();
    accepted(&cluster, &helm, dir.path(), &["--set", &all.join(",")]).unwrap();
}

#[tokio::test]
async fn values_that_are_no_switches_are_accepted_too() {
    let cluster = server().await;
    let dir = tempfile::tempdir().unwrap();
    let helm = Helm::of(&cluster, dir.path()).unwrap();
    let file = dir.path().join("values.yaml");
    std::fs::write(&file, include_str!("every-value.yaml")).unwrap();
    let rendered = accepted(&cluster, &helm, dir.path(), &["--values", file.to_str().unwrap()]).unwrap();
    let all = objects(&rendered);
    let pod = &all["Deployment ops/caches"]["spec"]["template"]["spec"];
    assert_eq!(
        pod["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]["app.kubernetes.io/instance"],
        "shop"
    );
    assert_eq!(pod["containers"][0]["image"], pod["containers"][0]["env"][0]["value"]);
    let arguments = pod["containers"][0]["args"].as_array().unwrap();
    assert!(arguments.contains(&"--watch-namespaces=one,two".into()), "{arguments:?}");
    assert!(arguments.contains(&"--concurrency=4".into()), "{arguments:?}");
    for argument in [
        "--webhook-service=caches-webhook",
        "--webhook-configuration=caches-ops",
        "--webhook-failure-policy=Ignore",
        "--webhook-timeout-seconds=10",
        "--webhook-cert-dir=/etc/memcached-operator/webhook",
    ] {
        assert!(arguments.contains(&argument.into()), "{argument} is missing in {arguments:?}");
    }
    for kind in ["Mutating", "Validating"] {
        let shipped = &all[&format!("{kind}WebhookConfiguration /caches-ops")];
        assert!(shipped.get("webhooks").is_none(), "the operator applies them: {shipped:#}");
    }
}

#[tokio::test]
async fn a_value_that_is_wrong_is_named_with_what_is_right() {
    let cluster = ControlPlane::start().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let helm = Helm::of(&cluster, dir.path()).unwrap();
    let refused = |value: &str| {
        let error = helm.run(&["template", "shop", CHART, "--set", value]).unwrap_err();
        error.to_string()
    };
    for (value, words) in [
        ("replicaCount=many", ["/replicaCount", "integer"]),
        ("image.pullPolicy=Sometimes", ["/image/pullPolicy", "IfNotPresent"]),
        ("webhooks.enabled=true", ["webhooks", "not allowed"]),
        ("webhook.failurePolicy=Perhaps", ["/webhook/failurePolicy", "Ignore"]),
        ("watchNamespaces={Shop}", ["/watchNamespaces/0", "pattern"]),
        ("serviceMonitor.interval=often", ["/serviceMonitor/interval", "pattern"]),
        ("extraArgs={concurrency}", ["/extraArgs/0", "pattern"]),
    ] {
        let said = refused(value);
        for words in words {
            assert!(said.contains(words), "{value}: {words} is missing in:\n{said}");
        }
    }
    let said = refused("replicaCount=2,leaderElection.enabled=false");
    assert!(said.contains("Enable the election or run one replica"), "{said}");
    let said = refused("serviceMonitor.enabled=true,metrics.enabled=false");
    assert!(said.contains("serviceMonitor.enabled needs metrics.enabled"), "{said}");
}

#[tokio::test]
async fn the_chart_passes_lint() {
    let cluster = ControlPlane::start().await.unwrap();
    let dir = tempfile::tempdir().unwrap();
    let helm = Helm::of(&cluster, dir.path()).unwrap();
    helm.run(&["lint", "--strict", CHART]).unwrap();
    assert!(Path::new(&ours("charts/memcached-operator/values.schema.json")).is_file());
}
