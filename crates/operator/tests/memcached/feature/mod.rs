//! Each field of the contract changes what it should in the children, on and off, under both API versions.

mod availability;
mod general;
mod knob;
mod monitoring;
mod scale;
mod security;
mod server;
mod stateful_set;

use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use testbed::wait;

use crate::harness::{Arena, DEADLINE, Place, without_noise};

/// Where a field of the declaration is to be seen.
pub struct Seen {
    kind: &'static str,
    pointer: String,
    on: Value,
    off: Value,
}

/// At a place of the Deployment.
pub fn deployment(pointer: &str, on: Value, off: Value) -> Seen {
    Seen { kind: "Deployment", pointer: pointer.into(), on, off }
}

/// At a place of the pods.
pub fn pod(pointer: &str, on: Value, off: Value) -> Seen {
    deployment(&format!("/spec/template/spec{pointer}"), on, off)
}

/// At a place of the container `memcached`.
pub fn server(pointer: &str, on: Value, off: Value) -> Seen {
    pod(&format!("/containers/0{pointer}"), on, off)
}

/// At a place of a child; `null` stands for nothing there, or no such child.
pub fn child(kind: &'static str, pointer: &str, on: Value, off: Value) -> Seen {
    Seen { kind, pointer: pointer.into(), on, off }
}

/// Every child's API.
fn resource(kind: &str) -> ApiResource {
    let (group, version, plural) = match kind {
        "Deployment" => ("apps", "v1", "deployments"),
        "StatefulSet" => ("apps", "v1", "statefulsets"),
        "Service" => ("", "v1", "services"),
        "PodDisruptionBudget" => ("policy", "v1", "poddisruptionbudgets"),
        "NetworkPolicy" => ("networking.k8s.io", "v1", "networkpolicies"),
        "HorizontalPodAutoscaler" => ("autoscaling", "v2", "horizontalpodautoscalers"),
        "ServiceMonitor" => ("monitoring.coreos.com", "v1", "servicemonitors"),
        "Certificate" => ("cert-manager.io", "v1", "certificates"),
        _ => panic!("no child is a {kind}"),
    };
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// Declares a cache with `on`, then with `off`, under both versions; each time all children are as they should be.
pub async fn shows(feature: &str, on: Value, off: Value, seen: &[Seen]) {
    let arena = Arena::shared().await;
    let place = arena.namespace(feature).await;
    let client = arena.cluster.client().await.unwrap();
    let one = Trial { place: &place, client: client.clone(), version: "v1alpha1", name: "older" };
    let two = Trial { place: &place, client, version: "v1beta1", name: "newer" };
    let run = async |trial: &Trial<'_>| {
        trial.declare(&on).await;
        trial.check(seen, "on", |seen| &seen.on).await;
        trial.declare(&off).await;
        trial.check(seen, "off", |seen| &seen.off).await;
    };
    tokio::join!(run(&one), run(&two));
}

struct Trial<'a> {
    place: &'a Place<'a>,
    client: kube::Client,
    version: &'static str,
    name: &'static str,
}

impl Trial<'_> {
    /// Applies a declaration under this version, and waits until the operator has made it so.
    async fn declare(&self, spec: &Value) {
        let kind = GroupVersionKind::gvk("memcached.c5c3.io", self.version, "Memcached");
        let resource = ApiResource::from_gvk_with_plural(&kind, "memcacheds");
        let caches: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), self.place.name(), &resource);
        let mut spec = spec.clone();
        // Nobody needs pods to see what they would be like.
        if spec["autoscaling"]["enabled"] != true && spec["replicas"].is_null() {
            spec["replicas"] = json!(0);
        }
        let document = json!({
            "apiVersion": format!("memcached.c5c3.io/{}", self.version), "kind": "Memcached",
            "metadata": {"name": self.name}, "spec": spec,
        });
        let params = PatchParams::apply("a-user").force();
        let declared = caches.patch(self.name, &params, &Patch::Apply(document)).await.unwrap();
        wait::until(format!("{} to be seen", self.name), DEADLINE, async || {
            let cache = caches.get(self.name).await.map_err(|e| e.to_string())?;
            let status = &cache.data["status"];
            let is_seen = status["observedGeneration"].as_i64() >= declared.metadata.generation;
            if is_seen { Ok(()) } else { Err(status.to_string()) }
        })
        .await
        .unwrap();
    }

    async fn check(&self, all: &[Seen], state: &str, expected: impl Fn(&Seen) -> &Value) {
        for seen in all {
            let resource = resource(seen.kind);
            let api: Api<DynamicObject> = Api::namespaced_with(self.client.clone(), self.place.name(), &resource);
            let object = api.get_opt(self.name).await.unwrap();
            let object = object.map_or(Value::Null, |object| serde_json::to_value(object).unwrap());
            let value = object.pointer(&seen.pointer).cloned().unwrap_or_default();
            assert_eq!(
                value,
                *expected(seen),
                "{} {state}: {}{} of {:#}",
                self.version,
                seen.kind,
                seen.pointer,
                without_noise(object)
            );
        }
    }
}
