//! kustomize and the flat file: the same objects, and each makes an operator that works.

use e2e::operator::ours;
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{cluster, program};

use crate::document::{difference, objects};
use crate::site::{SYSTEM, Site};

fn kustomize(directory: &str) -> String {
    let store = Store::new(Home::locate().unwrap(), Progress::hidden());
    let mut kubectl = cluster::kubectl(&store, std::path::Path::new("/nowhere")).unwrap();
    program::run("kubectl kustomize", kubectl.args(["kustomize", &ours(directory)])).unwrap()
}

#[test]
fn the_flat_file_is_what_kustomize_makes() {
    let flat = objects(&std::fs::read_to_string(ours("dist/install.yaml")).unwrap());
    let built = objects(&kustomize("config/default"));
    assert_eq!(flat.keys().collect::<Vec<_>>(), built.keys().collect::<Vec<_>>());
    for (identity, object) in &flat {
        assert_eq!(difference(identity, object, &built[identity]), None);
    }
}

/// Caches are served, and the operator comes with what people expect.
async fn expect_a_working_operator(site: &Site) {
    site.rolled_out(SYSTEM, "memcached-operator").await;
    let caches = site.namespace("caches").await;
    let plain = site.plain_cache(&caches, "plain").await;
    assert_eq!(plain["spec"]["replicas"], 1, "the webhook fills defaults in");
    // Those who may edit a namespace may declare caches in it.
    let may = ["auth", "can-i", "create", "memcacheds", "--as=jane", "--namespace", caches.name()];
    site.node.kubectl(&may).unwrap_err();
    caches.kubectl(&["create", "rolebinding", "jane", "--clusterrole=edit", "--user=jane"]).unwrap();
    let aggregated = testbed::wait::until("the role to be aggregated", 60, async || {
        site.node.kubectl(&may).map_err(|error| error.to_string())
    });
    aggregated.await.unwrap();
}

#[tokio::test]
async fn kustomize_makes_a_working_operator() {
    let site = Site::open().await;
    site.node.kubectl(&["apply", "--kustomize", &ours("config/default")]).unwrap();
    expect_a_working_operator(&site).await;
    // And again, over what the operator has written since.
    site.node.kubectl(&["apply", "--kustomize", &ours("config/default")]).unwrap();
    let caches = site.namespace("again").await;
    site.plain_cache(&caches, "plain").await;
}

#[tokio::test]
async fn the_flat_file_makes_a_working_operator() {
    let site = Site::open().await;
    site.node.kubectl(&["apply", "--server-side", "--filename", &ours("dist/install.yaml")]).unwrap();
    expect_a_working_operator(&site).await;
}
