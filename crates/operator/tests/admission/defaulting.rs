//! What is filled in, as people see it: in the object, in `kubectl apply`, in `kubectl diff`.

use serde_json::{Value, json};

use crate::guarded::Guarded;
use crate::harness::{Place, condition};

/// Runs kubectl on a manifest.
fn kubectl(place: &Place<'_>, words: &[&str], object: &Value) -> Result<String, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), object.to_string()).unwrap();
    let words = [words, &["--filename", file.path().to_str().unwrap()]].concat();
    place.namespace.kubectl(&words).map_err(|error| error.to_string())
}

fn cache(spec: &Value) -> Value {
    json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "sessions"}, "spec": spec,
    })
}

fn rich() -> Value {
    json!({
        "highAvailability": {"gracefulShutdown": {"enabled": true}},
        "monitoring": {"enabled": true, "serviceMonitor": {"additionalLabels": {"a": "b"}}},
        "resources": {"requests": {"cpu": "50m"}},
    })
}

#[tokio::test]
async fn defaults_are_in_the_object_and_applying_again_changes_nothing() {
    let guarded = Guarded::shared().await;
    for (number, apply) in [&["apply"][..], &["apply", "--server-side"]].into_iter().enumerate() {
        let place = guarded.arena.namespace(&format!("defaults-{number}")).await;
        kubectl(&place, apply, &cache(&rich())).unwrap();
        let first = place.get("memcached", "sessions").unwrap();
        let spec = &first["spec"];
        assert_eq!(spec["replicas"], 1);
        assert_eq!(spec["image"], "memcached:1.6");
        assert_eq!(spec["memcached"]["maxMemoryMB"], 64);
        assert_eq!(spec["memcached"]["maxItemSize"], "1m");
        assert_eq!(spec["monitoring"]["exporterImage"], "prom/memcached-exporter:v0.15.4");
        assert_eq!(spec["monitoring"]["serviceMonitor"]["interval"], "30s");
        assert!(
            spec["highAvailability"]["antiAffinityPreset"].is_null(),
            "the builder's, for pods that are built anew"
        );
        assert_eq!(spec["highAvailability"]["gracefulShutdown"]["preStopDelaySeconds"], 10);
        assert!(spec["workload"].is_null(), "what there is goes on");
        let again = kubectl(&place, apply, &cache(&rich())).unwrap();
        assert!(again.contains("unchanged") || again.contains("serverside-applied"), "{again}");
        let second = place.get("memcached", "sessions").unwrap();
        assert_eq!(second["metadata"]["generation"], first["metadata"]["generation"]);
        assert_eq!(second["spec"], first["spec"], "filling in twice is filling in once");
        // It fails where there is a difference.
        let diff = [&["diff"][..], &apply[1..]].concat();
        assert_eq!(kubectl(&place, &diff, &cache(&rich())).unwrap(), "");
    }
}

#[tokio::test]
async fn autoscaling_is_turned_on_and_off_in_one_apply() {
    let guarded = Guarded::shared().await;
    for (number, apply) in [&["apply"][..], &["apply", "--server-side"]].into_iter().enumerate() {
        let place = guarded.arena.namespace(&format!("autoscale-{number}")).await;
        let cpu = json!({"requests": {"cpu": "10m"}});
        // The count is the webhook's, not the user's.
        kubectl(&place, apply, &cache(&json!({"resources": cpu}))).unwrap();
        place.ready("sessions").await;
        let on = json!({"resources": cpu, "autoscaling": {"enabled": true, "minReplicas": 2, "maxReplicas": 4}});
        kubectl(&place, apply, &cache(&on)).unwrap();
        let live = place.get("memcached", "sessions").unwrap();
        assert!(live["spec"]["replicas"].is_null(), "{live:#}");
        assert_eq!(live["spec"]["autoscaling"]["metrics"][0]["resource"]["name"], "cpu");
        let is_raised = |cache: &Value| cache["status"]["readyReplicas"] == 2;
        place.eventually("memcached", "sessions", "raised by the autoscaler", is_raised).await;
        // Off without a count: the running one stays.
        kubectl(&place, apply, &cache(&json!({"resources": cpu, "autoscaling": {"enabled": false}}))).unwrap();
        place.gone("horizontalpodautoscaler", "sessions").await;
        place.ready("sessions").await;
        assert_eq!(place.get("deployment", "sessions").unwrap()["spec"]["replicas"], 2);
        // And with one: that.
        let given = json!({"resources": cpu, "replicas": 3, "autoscaling": {"enabled": false}});
        kubectl(&place, apply, &cache(&given)).unwrap();
        place.eventually("deployment", "sessions", "three", |deployment| deployment["spec"]["replicas"] == 3).await;
    }
}

#[tokio::test]
async fn a_count_that_was_given_is_not_taken_back_silently() {
    let guarded = Guarded::shared().await;
    let place = guarded.arena.namespace("given").await;
    let cpu = json!({"requests": {"cpu": "10m"}});
    kubectl(&place, &["apply"], &cache(&json!({"replicas": 2, "resources": cpu}))).unwrap();
    let both = json!({"replicas": 2, "resources": cpu, "autoscaling": {"enabled": true, "maxReplicas": 4}});
    let refused = kubectl(&place, &["apply"], &cache(&both)).unwrap_err();
    assert!(refused.contains("spec.replicas"), "{refused}");
}

#[tokio::test]
async fn turning_the_webhook_on_restarts_nothing() {
    let guarded = Guarded::start().await;
    let place = guarded.arena.namespace("late").await;
    // Made while nobody filled anything in.
    guarded.arena.stop_operator();
    guarded.unship();
    guarded.arena.start_operator(&["--leader-elect=false"]);
    testbed::wait::until("a cache to be taken as it is", crate::harness::DEADLINE, async || {
        kubectl(&place, &["apply"], &cache(&json!({"replicas": 1})))
    })
    .await
    .unwrap();
    let cache_before = place.ready("sessions").await;
    assert!(cache_before["spec"]["image"].is_null());
    let before = place.get("deployment", "sessions").unwrap();
    guarded.arena.stop_operator();
    guarded.ship();
    guarded.start_operator().await;
    // A change that shapes no pods is all it takes for the webhook to see the object.
    kubectl(&place, &["apply"], &cache(&json!({"replicas": 2}))).unwrap();
    let cache = place.ready("sessions").await;
    assert_eq!(condition(&cache, "Degraded")["status"], "False");
    let after = place.get("deployment", "sessions").unwrap();
    assert_eq!(after["spec"]["template"], before["spec"]["template"]);
}
