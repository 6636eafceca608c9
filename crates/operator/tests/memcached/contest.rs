//! Another controller that undoes what the operator applies: recognised, named, and not answered as fast as possible.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::apps::v1::Deployment;
use kube::Api;
use kube::api::{Patch, PatchParams};
use serde_json::json;

use crate::harness::{Arena, condition};

#[tokio::test]
async fn a_manager_that_undoes_a_field_again_and_again_is_named_and_backed_off() {
    let arena = Arena::shared().await;
    let place = arena.namespace("contest").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    let deployments: Api<Deployment> = place.namespace.api();
    // The other operator, which somebody forgot to stop: it puts its own value back whenever it sees ours.
    let stop = Arc::new(AtomicBool::new(false));
    let rival = tokio::spawn({
        let (deployments, stop) = (deployments.clone(), Arc::clone(&stop));
        async move {
            let params = PatchParams { field_manager: Some("rival-operator".into()), ..PatchParams::default() };
            let patch = Patch::Merge(json!({"spec": {"minReadySeconds": 7}}));
            while !stop.load(Ordering::Relaxed) {
                let live = deployments.get("sessions").await.unwrap();
                if live.spec.unwrap().min_ready_seconds != Some(7) {
                    deployments.patch("sessions", &params, &patch).await.unwrap();
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        }
    });
    // A field that the operator decides: without it nothing would be contested.
    place.declare("sessions", json!({"replicas": 1, "workload": {"rollout": {"minReadySeconds": 3}}})).await;
    let told = place
        .eventually("memcached", "sessions", "told who undoes it", |cache| {
            condition(cache, "Degraded")["reason"] == "Contested"
        })
        .await;
    let message = condition(&told, "Degraded")["message"].to_string();
    assert!(message.contains("rival-operator") && message.contains("Deployment"), "{message}");
    let events = place.namespace.kubectl(&["get", "events", "--output", "json"]).unwrap();
    assert!(events.contains("\"reason\": \"Contested\""), "{events}");

    // From here on the pauses are longer than this, and they grow.
    let generation = async || deployments.get("sessions").await.unwrap().metadata.generation.unwrap();
    let before = generation().await;
    tokio::time::sleep(Duration::from_secs(9)).await;
    let after = generation().await;
    assert!(after - before <= 4, "{} generations in a pause", after - before);

    stop.store(true, Ordering::Relaxed);
    rival.await.unwrap();
    place.ready("sessions").await;
    place
        .eventually("memcached", "sessions", "no longer contested", |cache| {
            condition(cache, "Degraded")["reason"] == "NotDegraded"
        })
        .await;
    assert_eq!(deployments.get("sessions").await.unwrap().spec.unwrap().min_ready_seconds, Some(3));
}
