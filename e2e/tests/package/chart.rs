//! The chart with its defaults: installed, used, removed, installed again.

use std::path::Path;

use e2e::helm::CHART;
use e2e::memcached::Connection;
use e2e::operator::ours;
use e2e::pod::address;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ListParams;
use serde_json::json;

use crate::site::{Site, get_cache};

#[tokio::test]
async fn a_chart_with_its_defaults_runs_a_sample_and_leaves_it_running_when_it_goes() {
    let site = Site::open().await;
    let (operators, caches) = (site.namespace("operator").await, site.namespace("caches").await);
    let install = ["install", "memcached-operator", CHART, "--namespace", operators.name()];
    let notes = site.helm.run(&install).unwrap();
    for words in ["kind: Memcached", "rollout status deployment/memcached-operator", "metrics-reader", "helm uninstall"]
    {
        assert!(notes.contains(words), "{words} is missing in:\n{notes}");
    }
    site.rolled_out(operators.name(), "memcached-operator").await;

    site.apply(&caches, Path::new(&ours("samples/quickstart.yaml"))).await;
    site.ready(&caches, "sessions").await;
    let plain = site.plain_cache(&caches, "plain").await;
    assert_eq!(plain["spec"]["replicas"], 1, "the webhook fills defaults in: {plain}");
    let servers = ListParams::default().labels("app.kubernetes.io/instance=sessions");
    let before = caches.api::<Pod>().list(&servers).await.unwrap().items;
    let mut connection = Connection::open(&site.node, address(&before[0], 11211).unwrap()).await.unwrap();
    connection.set("kept", "yes").await.unwrap();

    site.helm.run(&["uninstall", "memcached-operator", "--namespace", operators.name(), "--wait"]).unwrap();
    let left = site.node.kubectl(&[
        "get",
        "validatingwebhookconfiguration,mutatingwebhookconfiguration,clusterrole",
        "--output",
        "name",
    ]);
    assert!(!left.unwrap().contains("memcached-operator"), "nothing that would stand in the way");
    get_cache(&caches, "sessions").expect("the definition and the caches stay");
    assert_eq!(connection.get("kept").await.unwrap().as_deref(), Some("yes"));

    // The definition that stayed is the release's own: a second install takes it back.
    site.helm.run(&install).unwrap();
    site.rolled_out(operators.name(), "memcached-operator").await;
    site.plain_cache(&caches, "second").await;
    let after = caches.api::<Pod>().list(&servers).await.unwrap().items;
    let names = |pods: &[Pod]| pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&before), names(&after), "no server was replaced");
    assert_eq!(connection.get("kept").await.unwrap().as_deref(), Some("yes"));
}

#[tokio::test]
async fn two_replicas_share_the_work_and_roll_out_without_a_gap() {
    let site = Site::open().await;
    let (operators, caches) = (site.namespace("operator").await, site.namespace("caches").await);
    let values = ["--set", "replicaCount=2", "--set", "podDisruptionBudget.enabled=true"];
    let both = |verb: &'static str, more: &[&'static str]| {
        let arguments = [&[verb, "shop", CHART, "--namespace", operators.name()][..], &values, more].concat();
        site.helm.run(&arguments).unwrap();
    };
    both("install", &[]);
    site.rolled_out(operators.name(), "shop-memcached-operator").await;
    assert_eq!(site.operators(operators.name()).await.len(), 2);
    site.plain_cache(&caches, "first").await;
    both("upgrade", &["--set", "logFormat=json"]);
    // Admission fails closed: a declaration would be refused while nobody answers.
    let rolled_out = ["rollout", "status", "deployment/shop-memcached-operator", "--timeout=1s"];
    for number in 0.. {
        site.declare(&caches, &format!("during-{number}"), &json!({"replicas": 0})).unwrap();
        if operators.kubectl(&rolled_out).is_ok() {
            break;
        }
        assert!(number < 600, "the rollout does not end");
    }
    site.plain_cache(&caches, "second").await;
}
