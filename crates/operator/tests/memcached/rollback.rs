//! A rollback: the previous version of the operator over what this one has made, and this one again.
//! `make campaign` builds that version and runs this.

use serde_json::{Value, json};
use testbed::User;

use crate::harness::{Arena, Operator, Place};
use crate::idle::shapes;

/// Pods by uid, and the generations of Deployments: what a restart would change.
fn running(place: &Place<'_>) -> Vec<String> {
    let list = |kind: &str| -> Vec<Value> {
        let text = place.namespace.kubectl(&["get", kind, "--output", "json"]).unwrap();
        serde_json::from_str::<Value>(&text).unwrap()["items"].as_array().cloned().unwrap()
    };
    let is_marker = |object: &Value| object["metadata"]["name"].as_str().is_some_and(|name| name.starts_with("after"));
    let pods = list("pods").into_iter().filter(|pod| !is_marker(pod)).map(|pod| pod["metadata"]["uid"].to_string());
    let deployments = list("deployments").into_iter().filter(|deployment| !is_marker(deployment));
    let generations = deployments.map(|d| format!("{} {}", d["metadata"]["name"], d["metadata"]["generation"]));
    let mut all: Vec<String> = pods.chain(generations).collect();
    all.sort();
    all
}

#[tokio::test]
#[ignore = "needs the program of the previous version, which make campaign builds"]
async fn the_previous_version_of_the_operator_restarts_no_pod() {
    let previous = std::env::var("PREVIOUS_OPERATOR").expect("make campaign says where it is");
    let account = User::service_account("memcached-operator-system", "memcached-operator");
    let arena = Arena::start(&["--leader-elect=false"]).await;
    let place = arena.namespace("rollback").await;
    let names: Vec<String> = (0..shapes().len()).map(|number| format!("cache-{number}")).collect();
    for (name, spec) in names.iter().zip(shapes()) {
        place.declare(name, spec).await;
    }
    for name in &names {
        place.ready(name).await;
    }
    // The autoscaler takes its time to raise the count.
    for (name, _) in names.iter().zip(shapes()).filter(|(_, spec)| spec["autoscaling"].is_object()) {
        place.eventually("memcached", name, "raised", |cache| cache["status"]["readyReplicas"] == 2).await;
    }
    let before = running(&place);

    arena.stop_operator();
    let old =
        Operator::start_as(&account, &previous, &arena.cluster, &["--leader-elect=false", "--resync-interval=5s"]);
    *arena.operator.lock().unwrap() = Some(old);
    place.declare("after-rollback", json!({"replicas": 1})).await;
    place.ready("after-rollback").await;
    tokio::time::sleep(std::time::Duration::from_secs(12)).await;
    assert_eq!(running(&place), before, "with the previous version");

    arena.stop_operator();
    arena.start_operator(&["--leader-elect=false", "--resync-interval=5s"]);
    place.declare("after-upgrade", json!({"replicas": 1})).await;
    place.ready("after-upgrade").await;
    tokio::time::sleep(std::time::Duration::from_secs(12)).await;
    assert_eq!(running(&place), before, "with this version again");
    let mark = arena.cluster.audit().mark().unwrap();
    tokio::time::sleep(std::time::Duration::from_secs(12)).await;
    assert_eq!(arena.writes_since(mark, place.name()), [""; 0], "and then there is nothing left to do");
}
