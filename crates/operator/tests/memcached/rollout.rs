//! Pods change only when the declaration does; what fails is told and keeps nothing else from working.

use serde_json::{Value, json};

use crate::harness::{Arena, condition, is, server};

#[tokio::test]
async fn a_restart_trigger_restarts() {
    let arena = Arena::shared().await;
    let place = arena.namespace("restart").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    place.namespace.kubectl(&["annotate", "memcached", "sessions", "memcached.c5c3.io/restart-trigger=now"]).unwrap();
    place
        .eventually("deployment", "sessions", "the trigger", |d| {
            d["spec"]["template"]["metadata"]["annotations"]["memcached.c5c3.io/restart-trigger"] == "now"
        })
        .await;
    place.ready("sessions").await;
}

#[tokio::test]
async fn an_operator_with_other_defaults_restarts_nothing_and_says_what_it_would_change() {
    let arena = Arena::without_operator().await;
    arena.start_operator(&["--leader-elect=false"]);
    let place = arena.namespace("upgrade").await;
    place.declare("sessions", json!({"replicas": 2})).await;
    // Another field said, another default taken.
    place.declare("own", json!({"replicas": 1, "image": "memcached:1.6"})).await;
    place.ready("sessions").await;
    place.ready("own").await;
    let before = ["sessions", "own"].map(|name| place.get("deployment", name).unwrap());
    arena.stop_operator();
    arena.start_other_version(&["--leader-elect=false"]);
    let announced = |cache: &Value| cache["status"]["pendingDefaults"].is_string();
    let cache = place.eventually("memcached", "sessions", "told of newer defaults", announced).await;
    let message = cache["status"]["pendingDefaults"].as_str().unwrap().to_owned();
    let image = "spec.containers.memcached.image: memcached:1.6 → memcached:1.6.45";
    let probe = "spec.containers.memcached.readinessProbe.periodSeconds: 5 → 3";
    assert!(message.contains(image) && message.contains(probe), "{message}");
    let own = place.eventually("memcached", "own", "told of newer defaults", announced).await;
    let message = own["status"]["pendingDefaults"].as_str().unwrap().to_owned();
    assert!(!message.contains(image) && message.contains(probe), "what was said stays: {message}");
    assert!(is(&cache, "Ready", "True"), "{cache:#}");
    for (name, before) in ["sessions", "own"].iter().zip(&before) {
        let after = place.get("deployment", name).unwrap();
        assert_eq!(after["metadata"]["generation"], before["metadata"]["generation"], "nothing is written");
    }
    // Not even a change that shapes no pods.
    place.declare("sessions", json!({"replicas": 3})).await;
    place.ready("sessions").await;
    for (name, before) in ["sessions", "own"].iter().zip(&before) {
        let after = place.get("deployment", name).unwrap();
        assert_eq!(after["spec"]["template"], before["spec"]["template"], "no pod changes");
    }
    take_new_defaults(&place).await;
}

async fn take_new_defaults(place: &crate::harness::Place<'_>) {
    let before = place.get("memcached", "sessions").unwrap();
    let message = before["status"]["pendingDefaults"].as_str().unwrap();
    // Exactly as the status says.
    let command = message.split("kubectl ").nth(1).unwrap().replace("\"$(date)\"", "now");
    let words: Vec<&str> = command.split_whitespace().collect();
    place.namespace.kubectl(&words).unwrap();
    let taken = place
        .eventually("deployment", "sessions", "the new defaults", |d| server(d)["image"] == "memcached:1.6.45")
        .await;
    assert_eq!(server(&taken)["readinessProbe"]["periodSeconds"], 3);
    assert_eq!(taken["spec"]["replicas"], 3);
    place.ready("sessions").await;
    place.eventually("memcached", "sessions", "up to date", |c| c["status"]["pendingDefaults"].is_null()).await;
    let own = place.get("deployment", "own").unwrap();
    assert_eq!(server(&own)["readinessProbe"]["periodSeconds"], 5, "only who was told");
}

#[tokio::test]
async fn a_rolling_update_takes_ready_away_once_and_the_server_list_never() {
    let arena = Arena::shared().await;
    let place = arena.namespace("flap").await;
    place.declare("sessions", json!({"replicas": 3})).await;
    place.ready("sessions").await;
    place.declare("sessions", json!({"replicas": 3, "memcached": {"threads": 2}})).await;
    let caches = place.caches();
    let mut changes = vec![true];
    testbed::wait::until("the rollout", crate::harness::DEADLINE, async || {
        let cache = serde_json::to_value(caches.get("sessions").await.unwrap()).unwrap();
        assert_eq!(cache["status"]["serverList"].as_array().map(Vec::len), Some(1), "{cache:#}");
        assert!(is(&cache, "Available", "True"), "{cache:#}");
        let ready = is(&cache, "Ready", "True");
        if changes.last() != Some(&ready) {
            changes.push(ready);
        }
        let is_over = condition(&cache, "Progressing")["status"] == "False" && ready && changes.len() > 1;
        if is_over { Ok(()) } else { Err(format!("{changes:?}")) }
    })
    .await
    .unwrap();
    assert_eq!(changes, [true, false, true], "no flapping");
}

#[tokio::test]
async fn a_refused_child_is_told_while_the_others_are_made() {
    let arena = Arena::shared().await;
    let place = arena.namespace("quota").await;
    place.create(&json!({
        "apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"},
        "spec": {"hard": {"count/networkpolicies.networking.k8s.io": "0"}},
    }));
    place.eventually("resourcequota", "none", "in force", |q| q["status"]["hard"].is_object()).await;
    place.declare("sessions", crate::drift::everything()).await;
    let cache =
        place.eventually("memcached", "sessions", "told", |c| condition(c, "Degraded")["reason"] == "Refused").await;
    let message = condition(&cache, "Degraded")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("NetworkPolicy \"sessions\"") && message.contains("quota"), "{message}");
    place.eventually("deployment", "sessions", "made", |d| d["metadata"]["uid"].is_string()).await;
    place.eventually("poddisruptionbudget", "sessions", "made", |d| d["metadata"]["uid"].is_string()).await;
    let events = place.namespace.kubectl(&["get", "events", "--output", "json"]).unwrap();
    assert!(events.contains("\"reason\": \"Refused\""), "{events}");
}

#[tokio::test]
async fn a_paused_cache_is_left_alone() {
    let arena = Arena::shared().await;
    let place = arena.namespace("paused").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    place.declare("sessions", json!({"replicas": 3, "paused": true})).await;
    place.eventually("memcached", "sessions", "paused", |c| c["status"]["phase"] == "Paused").await;
    place.namespace.kubectl(&["delete", "service", "sessions"]).unwrap();
    place.settled("sessions").await;
    assert_eq!(place.get("deployment", "sessions").unwrap()["spec"]["replicas"], 1);
    place.declare("sessions", json!({"replicas": 3})).await;
    place.ready("sessions").await;
    assert!(place.get("service", "sessions").is_some());
}
