//! An autoscaler is never fought, and the number of servers never dips when it comes or goes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{Api, PostParams};
use serde_json::{Value, json};
use testbed::{User, wait};

use crate::harness::{Arena, DEADLINE, Place};

fn autoscaled(min: i32) -> Value {
    json!({
        "resources": {"requests": {"cpu": "10m"}},
        "autoscaling": {"enabled": true, "minReplicas": min, "maxReplicas": 10},
    })
}

/// Scales as the autoscaler's controller would.
async fn scale_as_autoscaler(place: &Place<'_>, replicas: i32) {
    let user = User::service_account("kube-system", "horizontal-pod-autoscaler");
    let client = place.arena.cluster.client_as(&user).await.unwrap();
    let deployments: Api<Deployment> = Api::namespaced(client, place.name());
    // Somebody writes the status all the time: like that controller, try again.
    wait::until("the scale to be written", DEADLINE, async || {
        let mut scale = deployments.get_scale("sessions").await.unwrap();
        scale.spec.as_mut().unwrap().replicas = Some(replicas);
        let written = deployments.replace_scale("sessions", &PostParams::default(), &scale).await;
        written.map_err(|error| error.to_string())
    })
    .await
    .unwrap();
}

/// Watches the wanted number of servers and remembers the lowest.
struct Floor {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<i32>,
}

impl Floor {
    fn watch(place: &Place<'_>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let cluster: testbed::Cluster = (*place.arena.cluster).clone();
        let namespace = place.name().to_owned();
        let thread = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let api: Api<Deployment> = Api::namespaced(cluster.client().await.unwrap(), &namespace);
                let mut lowest = i32::MAX;
                while !stopped.load(Ordering::Relaxed) {
                    let deployment = api.get("sessions").await.unwrap();
                    lowest = lowest.min(deployment.spec.unwrap().replicas.unwrap());
                }
                lowest
            })
        });
        Self { stop, thread }
    }

    fn lowest(self) -> i32 {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

#[tokio::test]
async fn a_real_autoscaler_raises_to_its_minimum_and_is_left_alone() {
    let arena = Arena::shared().await;
    let place = arena.namespace("hpa").await;
    place.declare("sessions", autoscaled(3)).await;
    place.eventually("deployment", "sessions", "raised to three", |d| d["spec"]["replicas"] == 3).await;
    place.ready("sessions").await;
    scale_as_autoscaler(&place, 6).await;
    place.eventually("memcached", "sessions", "six", |c| c["status"]["readyReplicas"] == 6).await;
    let mut spec = autoscaled(3);
    spec["memcached"] = json!({"threads": 2});
    place.declare("sessions", spec).await;
    place.ready("sessions").await;
    assert_eq!(place.get("deployment", "sessions").unwrap()["spec"]["replicas"], 6);
}

#[tokio::test]
async fn turning_autoscaling_on_keeps_the_running_count() {
    let arena = Arena::shared().await;
    let place = arena.namespace("on").await;
    place.declare("sessions", json!({"replicas": 4})).await;
    place.ready("sessions").await;
    let floor = Floor::watch(&place);
    place.declare("sessions", autoscaled(2)).await;
    place.eventually("hpa", "sessions", "made", |h| h["spec"]["minReplicas"] == 2).await;
    place.ready("sessions").await;
    scale_as_autoscaler(&place, 5).await;
    place.eventually("memcached", "sessions", "five", |c| c["status"]["readyReplicas"] == 5).await;
    assert_eq!(floor.lowest(), 4);
}

#[tokio::test]
async fn turning_autoscaling_off_keeps_the_count_unless_one_is_given() {
    let arena = Arena::shared().await;
    let place = arena.namespace("off").await;
    place.declare("sessions", autoscaled(2)).await;
    place.ready("sessions").await;
    scale_as_autoscaler(&place, 5).await;
    place.eventually("memcached", "sessions", "five", |c| c["status"]["readyReplicas"] == 5).await;
    let floor = Floor::watch(&place);
    place.declare("sessions", json!({"resources": {"requests": {"cpu": "10m"}}})).await;
    place.gone("hpa", "sessions").await;
    place.ready("sessions").await;
    place.edit("memcached", "sessions", &json!({"spec": {"memcached": {"threads": 2}}}));
    place.ready("sessions").await;
    assert_eq!(floor.lowest(), 5, "whatever runs stays");
    place.declare("sessions", json!({"replicas": 3})).await;
    place.eventually("deployment", "sessions", "three", |d| d["spec"]["replicas"] == 3).await;
}
