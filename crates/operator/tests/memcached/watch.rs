//! Watches that cannot work are told, and one object that cannot be read hides no other.

use serde_json::json;
use testbed::wait;

use crate::harness::{Arena, DEADLINE, DEFINITION, condition, define, manifest};
use crate::program::{eventually, free_port};

#[tokio::test]
async fn without_its_definition_the_operator_is_not_ready_and_says_why() {
    let arena = Arena::without_operator().await;
    arena.cluster.kubectl(&["delete", "--filename", &manifest(DEFINITION)]).unwrap();
    let (metrics, health) = (free_port(), free_port());
    let metrics_address = format!("--metrics-bind-address=127.0.0.1:{metrics}");
    let health_address = format!("--health-probe-bind-address=127.0.0.1:{health}");
    arena.start_operator(&["--leader-elect=false", "--metrics-secure=false", &metrics_address, &health_address]);
    let told = |answer: &str| answer.starts_with("HTTP/1.1 503") && answer.contains("watch on Memcached: ");
    eventually(health, "/readyz", "not ready, with the watch", told).await;
    let counted = "memcached_operator_watch_failures_total{kind=\"Memcached\"}";
    eventually(metrics, "/metrics", "the failure counted", |answer| answer.contains(counted)).await;
    let log = arena.operator.lock().unwrap().as_ref().unwrap().log();
    assert!(log.contains("watch failed"), "{log}");

    define(&arena.cluster, &manifest(DEFINITION)).await;
    eventually(health, "/readyz", "ready", |answer| answer.starts_with("HTTP/1.1 200")).await;
    let place = arena.namespace("defined").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
}

/// A CRD of tomorrow knows what this version does not.
fn accept_other_presets(arena: &Arena) {
    let removal = |version| {
        let schema =
            "schema/openAPIV3Schema/properties/spec/properties/highAvailability/properties/antiAffinityPreset/enum";
        json!({"op": "remove", "path": format!("/spec/versions/{version}/{schema}")})
    };
    let patch = json!([removal(0), removal(1)]).to_string();
    let definition = "crd/memcacheds.memcached.c5c3.io";
    arena.cluster.kubectl(&["patch", definition, "--type=json", "--patch", &patch]).unwrap();
}

#[tokio::test]
async fn an_object_of_a_newer_definition_is_reported_on_itself_and_all_others_stay_managed() {
    let arena = Arena::start(&["--leader-elect=false"]).await;
    let place = arena.namespace("newer").await;
    place.declare("running", json!({"replicas": 1})).await;
    place.ready("running").await;
    accept_other_presets(&arena);
    let newer = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "newer"},
        "spec": {"replicas": 1, "highAvailability": {"antiAffinityPreset": "zonal"}},
    });
    // Until the API server has taken the definition up.
    let namespace = place.name();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), newer.to_string()).unwrap();
    let create = ["apply", "--namespace", namespace, "--filename", file.path().to_str().unwrap()];
    wait::until("the newer object to be accepted", DEADLINE, async || {
        arena.cluster.kubectl(&create).map_err(|error| error.to_string())
    })
    .await
    .unwrap();
    let told = place
        .eventually("memcached", "newer", "told that it cannot be read", |cache| {
            condition(cache, "Degraded")["reason"] == "Invalid" && condition(cache, "Ready")["status"] == "False"
        })
        .await;
    let message = condition(&told, "Degraded")["message"].to_string();
    assert!(message.contains("zonal") && message.contains("upgrade the operator"), "{message}");
    assert!(place.get("deployment", "newer").is_none());
    place
        .eventually("events", "--output=json", "an Event about it", |events| {
            events["items"].as_array().is_some_and(|all| {
                all.iter().any(|event| event["reason"] == "Invalid" && event["involvedObject"]["name"] == "newer")
            })
        })
        .await;

    // A running one that becomes unreadable keeps its children and its status; one that is made later is managed.
    place.edit("memcached", "running", &json!({"spec": {"highAvailability": {"antiAffinityPreset": "zonal"}}}));
    let told = place
        .eventually("memcached", "running", "told", |cache| condition(cache, "Degraded")["reason"] == "Invalid")
        .await;
    assert_eq!(told["status"]["readyReplicas"], 1, "{told:#}");
    assert!(place.get("deployment", "running").is_some());
    place.declare("later", json!({"replicas": 1})).await;
    place.ready("later").await;
    place.edit("memcached", "running", &json!({"spec": {"highAvailability": null}}));
    place.ready("running").await;
}
