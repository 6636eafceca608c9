//! An upgrade of the chart upgrades the definition, and no cache notices.

use std::fs;
use std::path::Path;
use std::process::Command;

use e2e::helm::CHART;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;

use crate::site::Site;

/// The chart as it was before `spec.paused` existed.
fn older_chart(dir: &Path) -> String {
    let copied = Command::new("cp").args(["-r", CHART]).arg(dir).status().unwrap();
    assert!(copied.success());
    let chart = dir.join("memcached-operator");
    let template = chart.join("templates/crd.yaml");
    let text = fs::read_to_string(&template).unwrap();
    let older = without_field(&text, "paused");
    assert_eq!(text.matches("              paused:\n").count(), 2, "once a version");
    assert!(!older.contains("paused:"));
    fs::write(&template, older).unwrap();
    chart.to_str().unwrap().to_owned()
}

/// The text without a field of the spec.
fn without_field(text: &str, field: &str) -> String {
    let head = format!("              {field}:");
    let mut is_inside = false;
    let mut kept = String::new();
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        is_inside = line == head || (is_inside && depth > 14);
        if !is_inside {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

#[tokio::test]
async fn an_upgrade_brings_the_new_definition_and_leaves_caches_alone() {
    let site = Site::open().await;
    let (operators, caches) = (site.namespace("operator").await, site.namespace("caches").await);
    let dir = tempfile::tempdir().unwrap();
    let older = older_chart(dir.path());
    let helm = |verb: &str, chart: &str| {
        site.helm.run(&[verb, "memcached-operator", chart, "--namespace", operators.name()]).unwrap();
    };
    helm("install", &older);
    site.rolled_out(operators.name(), "memcached-operator").await;
    site.plain_cache(&caches, "sessions").await;
    let pause = ["patch", "memcached", "sessions", "--type=merge", "--patch", r#"{"spec":{"paused":true}}"#];
    caches.kubectl(&pause).unwrap();
    let paused = || caches.kubectl(&["get", "memcached", "sessions", "--output", "jsonpath={.spec.paused}"]).unwrap();
    assert_eq!(paused(), "", "the older definition does not know it");
    let uids = async || {
        let servers = ListParams::default().labels("app.kubernetes.io/instance=sessions");
        let pods = caches.api::<Pod>().list(&servers).await.unwrap().items;
        pods.into_iter().filter_map(|pod| pod.metadata.uid).collect::<Vec<_>>()
    };
    let before = uids().await;

    helm("upgrade", CHART);
    site.rolled_out(operators.name(), "memcached-operator").await;
    site.plain_cache(&caches, "second").await;
    assert_eq!(uids().await, before, "no server was replaced");
    caches.kubectl(&pause).unwrap();
    assert_eq!(paused(), "true");

    // Without the definition, nothing is left behind that would delete it.
    site.helm
        .run(&["upgrade", "memcached-operator", CHART, "--namespace", operators.name(), "--set", "crds.install=false"])
        .unwrap();
    site.node.kubectl(&["get", "crd", "memcacheds.memcached.c5c3.io"]).expect("kept when it leaves the chart");
}

#[tokio::test]
async fn a_definition_that_somebody_else_has_applied_can_be_taken_over() {
    let site = Site::open().await;
    let operators = site.namespace("operator").await;
    site.node.kubectl(&["apply", "--server-side", "--kustomize", &e2e::operator::ours("config/crd")]).unwrap();
    let install = ["install", "memcached-operator", CHART, "--namespace", operators.name()];
    let refused = site.helm.run(&install).unwrap_err().to_string();
    assert!(refused.contains("memcacheds.memcached.c5c3.io"), "{refused}");
    site.helm.run(&[&install[..], &["--take-ownership", "--force-conflicts"]].concat()).unwrap();
    site.rolled_out(operators.name(), "memcached-operator").await;
}
