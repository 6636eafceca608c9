//! An operator of some namespaces: Roles there, and in the cluster only what cannot be had otherwise.

use e2e::helm::CHART;
use e2e::operator::ours;
use serde_json::Value;

use crate::document::{objects, of_kind};
use crate::site::{SYSTEM, Site, get_cache};

/// The ClusterRoles that a service account has.
fn cluster_roles(site: &Site, namespace: &str, account: &str) -> Vec<String> {
    let text = site.node.kubectl(&["get", "clusterrolebinding", "--output", "json"]).unwrap();
    let bindings: Value = serde_json::from_str(&text).unwrap();
    let subject = serde_json::json!({"kind": "ServiceAccount", "name": account, "namespace": namespace});
    let is_bound = |binding: &&Value| binding["subjects"].as_array().is_some_and(|all| all.contains(&subject));
    let roles = bindings["items"].as_array().unwrap().iter().filter(is_bound);
    roles.map(|binding| binding["roleRef"]["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_chart_for_some_namespaces_works_there_with_roles_alone() {
    let site = Site::open().await;
    let operators = site.namespace("operator").await;
    let (one, two, other) = (site.namespace("one").await, site.namespace("two").await, site.namespace("other").await);
    let watched = format!("watchNamespaces={{{},{}}}", one.name(), two.name());
    let install = ["install", "memcached-operator", CHART, "--namespace", operators.name(), "--set", &watched];
    site.helm.run(&install).unwrap();
    site.rolled_out(operators.name(), "memcached-operator").await;
    let name = format!("memcached-operator-{}", operators.name());
    let mut roles = cluster_roles(&site, operators.name(), "memcached-operator");
    roles.sort();
    assert_eq!(roles, [format!("{name}-metrics-auth"), format!("{name}-webhook")]);

    let plain = site.plain_cache(&one, "first").await;
    assert_eq!(plain["spec"]["replicas"], 1, "the webhook is asked here");
    site.plain_cache(&two, "second").await;
    let unwatched = ["create", "--filename", &ours("samples/quickstart.yaml")];
    other.kubectl(&unwatched).unwrap();
    // The operator has done something since: it would have seen that one too.
    site.plain_cache(&one, "third").await;
    let left_alone = get_cache(&other, "sessions").unwrap();
    assert!(left_alone.get("status").is_none(), "{left_alone}");
    assert!(left_alone["spec"].get("workload").is_none(), "the webhook is not asked there: {left_alone}");
}

#[tokio::test]
async fn a_chart_without_webhooks_and_token_reviews_needs_no_cluster_role_at_all() {
    let site = Site::open().await;
    let (operators, caches) = (site.namespace("operator").await, site.namespace("caches").await);
    let watched = format!("watchNamespaces={{{}}}", caches.name());
    let values = ["--set", &watched, "--set", "webhook.enabled=false", "--set", "metrics.secure=false"];
    let rendered = site.helm.run(&[&["template", "tenant", CHART][..], &values].concat()).unwrap();
    let objects = objects(&rendered);
    for kind in ["ClusterRole", "ClusterRoleBinding", "ValidatingWebhookConfiguration"] {
        assert_eq!(of_kind(&objects, kind), [""; 0], "{kind}");
    }
    site.helm.run(&[&["install", "tenant", CHART, "--namespace", operators.name()][..], &values].concat()).unwrap();
    site.rolled_out(operators.name(), "tenant-memcached-operator").await;
    site.plain_cache(&caches, "plain").await;
}

#[tokio::test]
async fn kustomize_for_one_namespace_works_there_with_a_role_alone() {
    let site = Site::open().await;
    site.node.kubectl(&["apply", "--server-side", "--kustomize", &ours("config/namespaced")]).unwrap();
    site.rolled_out(SYSTEM, "memcached-operator").await;
    assert_eq!(cluster_roles(&site, SYSTEM, "memcached-operator"), ["memcached-operator-metrics-auth"]);
    let other = site.namespace("other").await;
    other.kubectl(&["create", "--filename", &ours("samples/quickstart.yaml")]).unwrap();
    site.node.kubectl(&["--namespace", SYSTEM, "create", "--filename", &ours("samples/quickstart.yaml")]).unwrap();
    let wait = ["--namespace", SYSTEM, "wait", "--for=condition=Ready", "memcached/sessions", "--timeout=300s"];
    site.node.kubectl(&wait).unwrap();
    assert!(get_cache(&other, "sessions").unwrap().get("status").is_none());
}
