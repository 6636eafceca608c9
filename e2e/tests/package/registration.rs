//! The webhooks are registered by the operator and by nobody else: an install that fails locks nobody out, and upgrades
//! of the package leave the entries alone.

use e2e::helm::CHART;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::wait;

use crate::site::{DEADLINE, Site, get_cache};

const RELEASE: &str = "memcached-operator";

/// Runs helm on the release.
fn helm(site: &Site, operators: &Namespace, verb: &str, values: &[&str]) {
    let arguments = [&[verb, RELEASE, CHART, "--namespace", operators.name()][..], values].concat();
    site.helm.run(&arguments).unwrap();
}

/// Waits until the operator's container cannot be started.
async fn image_is_missing(operators: &Namespace) {
    let reason = "jsonpath={.items[*].status.containerStatuses[*].state.waiting.reason}";
    wait::until("the image to be missed", DEADLINE, async || {
        let reason = operators.kubectl(&["get", "pods", "--output", reason]).map_err(|error| error.to_string())?;
        if reason.contains("Image") { Ok(()) } else { Err(reason) }
    })
    .await
    .unwrap();
}

fn edit(caches: &Namespace, name: &str, spec: &Value) -> Result<String, String> {
    let patch = json!({"spec": spec}).to_string();
    let patch = ["patch", "memcached", name, "--type=merge", "--patch", &patch];
    caches.kubectl(&patch).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_wrong_image_over_running_caches_locks_nobody_out_and_the_right_one_heals() {
    let site = Site::open().await;
    let (operators, caches) = (site.namespace("operator").await, site.namespace("caches").await);
    helm(&site, &operators, "install", &[]);
    site.rolled_out(operators.name(), RELEASE).await;
    site.plain_cache(&caches, "sessions").await;
    site.helm.run(&["uninstall", RELEASE, "--namespace", operators.name(), "--wait"]).unwrap();
    assert!(site.registrations().is_empty(), "they go with the package");
    get_cache(&caches, "sessions").expect("the caches stay");

    let wrong = ["--set", "image.tag=nowhere", "--set", "image.pullPolicy=Never"];
    helm(&site, &operators, "install", &wrong);
    image_is_missing(&operators).await;
    for turn in 0..2 {
        assert!(site.registrations().iter().all(|(_, entries)| entries.is_empty()), "{:?}", site.registrations());
        edit(&caches, "sessions", &json!({"replicas": 2 - turn})).expect("a cache can be edited");
        site.declare(&caches, &format!("new-{turn}"), &json!({"replicas": 1})).expect("and made");
        let refused = edit(&caches, "sessions", &json!({"memcached": {"maxConnections": 10}})).unwrap_err();
        assert!(refused.contains("maxConnections"), "the CustomResourceDefinition protects: {refused}");
        helm(&site, &operators, "upgrade", &[&wrong[..], &["--set", "logFormat=json"]].concat());
    }

    // Without values of its own an upgrade takes those of the last one.
    helm(&site, &operators, "upgrade", &["--reset-values"]);
    site.rolled_out(operators.name(), RELEASE).await;
    assert_eq!(site.registrations().len(), 2);
    for name in ["sessions", "new-0", "new-1"] {
        site.ready(&caches, name).await;
    }
    let plain = site.plain_cache(&caches, "plain").await;
    assert_eq!(plain["spec"]["replicas"], 1, "the webhook fills defaults in: {plain}");
}

#[tokio::test]
async fn upgrades_of_the_chart_leave_the_entries_alone_and_an_uninstall_takes_them() {
    let site = Site::open().await;
    let (operators, caches) = (site.namespace("operator").await, site.namespace("caches").await);
    helm(&site, &operators, "install", &[]);
    site.rolled_out(operators.name(), RELEASE).await;
    site.plain_cache(&caches, "sessions").await;
    let selector = json!({"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]});
    let add = json!([{"op": "add", "path": "/webhooks/0/namespaceSelector", "value": selector}]).to_string();
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        site.node.kubectl(&["patch", kind, RELEASE, "--type=json", "--patch", &add]).unwrap();
    }
    let before = site.registrations();
    // Two in a row, while the operator of the first may still be starting, then one as Helm 3 did it.
    for values in [&["--set", "logFormat=json"][..], &["--reset-values"], &["--server-side=false"]] {
        helm(&site, &operators, "upgrade", values);
        assert_eq!(site.registrations(), before, "{values:?}");
    }
    site.rolled_out(operators.name(), RELEASE).await;
    assert_eq!(site.registrations(), before, "not one version further: nobody has written");
    site.plain_cache(&caches, "second").await;

    // The policy is the operator's to apply, from its flag.
    helm(&site, &operators, "upgrade", &["--set", "webhook.failurePolicy=Ignore"]);
    wait::until("the policy to follow its value", DEADLINE, async || {
        let entries: Vec<Value> = site.registrations().into_iter().flat_map(|(_, entries)| entries).collect();
        let is_so = |entry: &Value| entry["failurePolicy"] == "Ignore" && entry["namespaceSelector"] == selector;
        if entries.len() == 2 && entries.iter().all(is_so) { Ok(()) } else { Err(format!("{entries:#?}")) }
    })
    .await
    .unwrap();
    site.helm.run(&["uninstall", RELEASE, "--namespace", operators.name(), "--wait"]).unwrap();
    assert!(site.registrations().is_empty());
    get_cache(&caches, "sessions").expect("the caches stay");
    edit(&caches, "sessions", &json!({"replicas": 2})).expect("and can be edited");
}
