//! The rules of the CustomResourceDefinition alone: no operator, no webhook.

use std::sync::{Arc, Weak};

use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testbed::ControlPlane;
use tokio::sync::Mutex;

use crate::example::{self, By, Example};
use crate::harness::{DEADLINE, DEFINITION, define, manifest};

/// An API server that knows the kind, shared by the tests of this binary.
pub async fn api_server() -> Arc<ControlPlane> {
    static SHARED: Mutex<Weak<ControlPlane>> = Mutex::const_new(Weak::new());
    let mut shared = SHARED.lock().await;
    if let Some(cluster) = shared.upgrade() {
        return cluster;
    }
    let cluster = Arc::new(ControlPlane::start().await.unwrap());
    define(&cluster, &manifest(DEFINITION)).await;
    *shared = Arc::downgrade(&cluster);
    cluster
}

pub fn caches(client: &kube::Client, namespace: &str, version: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk("memcached.c5c3.io", version, "Memcached");
    Api::namespaced_with(client.clone(), namespace, &ApiResource::from_gvk_with_plural(&kind, "memcacheds"))
}

/// What the API server says to an object, without keeping it.
pub async fn create(api: &Api<DynamicObject>, object: &Value) -> Result<DynamicObject, String> {
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let object = serde_json::from_value(object.clone()).unwrap();
    api.create(&dry_run, &object).await.map_err(|error| answer(&error))
}

fn answer(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => status.message.clone(),
        other => panic!("no answer: {other}"),
    }
}

async fn update(api: &Api<DynamicObject>, name: &str, old: &Value, new: &Value) -> Result<DynamicObject, String> {
    let old = serde_json::from_value(old.clone()).unwrap();
    api.create(&PostParams::default(), &old).await.unwrap();
    let dry_run = PostParams { dry_run: true, ..PostParams::default() };
    let outcome = loop {
        let live = api.get(name).await.unwrap();
        let mut new = new.clone();
        new["metadata"]["resourceVersion"] = json!(live.metadata.resource_version);
        match api.replace(name, &dry_run, &serde_json::from_value(new).unwrap()).await {
            // An operator may have written its status meanwhile.
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            outcome => break outcome,
        }
    };
    api.delete(name, &kube::api::DeleteParams::default()).await.unwrap();
    outcome.map_err(|error| answer(&error))
}

/// Whether an example is answered as it should be; `is_asked` says whose refusals count.
pub async fn check(
    api: &Api<DynamicObject>,
    version: &str,
    example: &Example,
    is_asked: impl Fn(By) -> bool,
) -> Result<(), String> {
    let object = example.object(version);
    let outcome = match example.old_object(version) {
        Some(old) => update(api, &example.name, &old, &object).await,
        None => create(api, &object).await,
    };
    let is_refused = example.refusal.as_ref().is_some_and(|refusal| is_asked(refusal.by));
    match outcome {
        Ok(_) if is_refused => Err(format!("{object} is accepted")),
        Err(answer) if !is_refused => Err(format!("{object} is refused: {answer}")),
        Err(answer) if !example.is_told_by(&answer) => Err(format!("{object} is refused in other words: {answer}")),
        Ok(_) | Err(_) => Ok(()),
    }
}

#[tokio::test]
async fn the_api_server_answers_every_example_in_both_versions() {
    let cluster = api_server().await;
    let namespace = cluster.namespace("cel").await.unwrap();
    let client = cluster.client().await.unwrap();
    let mut wrong = Vec::new();
    for version in ["v1alpha1", "v1beta1"] {
        let api = caches(&client, namespace.name(), version);
        for example in example::all() {
            wrong.extend(check(&api, version, &example, |by| by != By::Operator).await.err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_count_is_checked_where_it_is_scaled() {
    let cluster = api_server().await;
    let namespace = cluster.namespace("scaled").await.unwrap();
    let api = caches(&cluster.client().await.unwrap(), namespace.name(), "v1beta1");
    let budget = json!({"enabled": true, "minAvailable": 2});
    let object = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "sessions"},
        "spec": {"replicas": 3, "highAvailability": {"podDisruptionBudget": budget}},
    });
    api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.unwrap();
    let scale = async |count: i32| {
        let patch = Patch::Merge(json!({"spec": {"replicas": count}}));
        api.patch_scale("sessions", &PatchParams::default(), &patch).await.map_err(|error| answer(&error))
    };
    scale(4).await.unwrap();
    let refused = scale(2).await.unwrap_err();
    assert!(refused.contains("podDisruptionBudget.minAvailable") && refused.contains("none of 2 servers"), "{refused}");
}

#[tokio::test]
async fn what_was_admitted_before_a_rule_was_there_can_still_be_changed_elsewhere() {
    let cluster = ControlPlane::start().await.unwrap();
    let definition = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(definition.path(), crate::reconciler::without_rules().to_string()).unwrap();
    define(&cluster, definition.path().to_str().unwrap()).await;
    let namespace = cluster.namespace("ratchet").await.unwrap();
    let api = caches(&cluster.client().await.unwrap(), namespace.name(), "v1beta1");
    let object = |name: &str| {
        let spec = json!({"memcached": {"maxConnections": 10}});
        json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": name}, "spec": spec,
        })
    };
    // The second has a name that could not be given any more.
    for name in ["sessions", "2nd"] {
        api.create(&PostParams::default(), &serde_json::from_value(object(name)).unwrap()).await.unwrap();
    }
    define(&cluster, &manifest(DEFINITION)).await;
    testbed::wait::until("the rules to be in force", DEADLINE, async || {
        create(&api, &object("fresh")).await.err().ok_or("not yet".to_owned())
    })
    .await
    .unwrap();
    // A section with a mistake in it does not stand in the way of another's change, nor of the status.
    for name in ["sessions", "2nd"] {
        let patch = Patch::Merge(json!({"spec": {"paused": true}}));
        api.patch(name, &PatchParams::default(), &patch).await.unwrap();
        let patch = Patch::Merge(json!({"status": {"phase": "Invalid"}}));
        api.patch_status(name, &PatchParams::default(), &patch).await.unwrap();
    }
}
