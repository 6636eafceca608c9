//! Hundreds of random declarations: what is accepted becomes children that the API server accepts, and what is
//! refused is refused with the field.

use std::collections::BTreeMap;

use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind};
use memcached_api::Memcached;
use memcached_core::memcached::build::{Child, build_children, prepare_revision};
use memcached_core::memcached::revision::decide;
use memcached_core::memcached::secret::mounted;
use memcached_core::memcached::{Validated, validate};
use operator_kit::watch::api_resource;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Value, json};

use crate::cel::{api_server, caches, create};
use crate::fixture::merged;
use crate::generator::{declaration, good_part, odd_part};
use crate::guarded::Guarded;

/// How many declarations there are; `CAMPAIGN` asks for more, `CAMPAIGN_SEED` for others.
fn size() -> u64 {
    std::env::var("CAMPAIGN").ok().and_then(|text| text.parse().ok()).unwrap_or(400)
}

fn seed() -> u64 {
    std::env::var("CAMPAIGN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(11211)
}

/// Random declarations, the same for the same seed: mostly of good parts, every third with an odd one.
pub fn declarations(seed: u64) -> impl Iterator<Item = Value> {
    let config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let good = declaration(good_part()).boxed();
    let odd = (declaration(good_part()), odd_part()).prop_map(|(good, odd)| merged(&good, &odd)).boxed();
    std::iter::repeat([good.clone(), good, odd])
        .flatten()
        .map(move |strategy| strategy.new_tree(&mut runner).unwrap().current())
}

/// What the API server thinks of the children of a cache, by their kind.
pub async fn refused_children(client: &Client, cache: &Validated) -> Vec<String> {
    let hash = (!mounted(cache).is_empty()).then_some("5ec7e7");
    let in_force = decide(cache, hash, &[], None);
    let revision = in_force.new_revision.as_ref().and_then(prepare_revision);
    let revision = revision.map(|prepared| (Child::Revision, prepared.object));
    let children = build_children(cache, &in_force.template, cache.fixed_replicas()).into_iter().chain(revision);
    let mut refused = Vec::new();
    for (child, mut object) in children.filter(|(child, _)| !child.resource().is_optional) {
        let resource = api_resource(child.resource());
        let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &cache.namespace, &resource);
        object["apiVersion"] = json!(resource.api_version);
        object["kind"] = json!(resource.kind);
        refused.extend(create(&api, &object).await.err().map(|answer| format!("{child:?}: {answer}")));
        if child == Child::Deployment {
            refused.extend(refused_pod(client, cache, &object).await);
        }
    }
    refused
}

/// A Deployment is looked at less closely than the pods that it makes.
async fn refused_pod(client: &Client, cache: &Validated, deployment: &Value) -> Option<String> {
    let template = &deployment["spec"]["template"];
    let mut pod =
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": template["metadata"], "spec": template["spec"]});
    pod["metadata"]["name"] = json!(cache.name);
    // Priority classes and accounts are the cluster's: that they exist is nothing a declaration can see to.
    for named in ["priorityClassName", "serviceAccount", "serviceAccountName"] {
        pod["spec"].as_object_mut()?.remove(named);
    }
    let resource = ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk("", "v1", "Pod"), "pods");
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &cache.namespace, &resource);
    create(&api, &pod).await.err().map(|answer| format!("Pod: {answer}"))
}

#[tokio::test]
async fn accepted_declarations_have_acceptable_children_and_refusals_name_the_field() {
    let cluster = api_server().await;
    let namespace = cluster.namespace("campaign").await.unwrap();
    let client = cluster.client().await.unwrap();
    // Pods are refused for want of it while the controller is at work.
    namespace.kubectl(&["create", "serviceaccount", "default"]).ok();
    let api = caches(&client, namespace.name(), "v1beta1");
    let mut counts = BTreeMap::<&str, u32>::new();
    let mut wrong = Vec::new();
    for spec in declarations(seed()).take(usize::try_from(size()).unwrap()) {
        let object = json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached",
            "metadata": {"name": "sessions"}, "spec": spec,
        });
        match create(&api, &object).await {
            Err(answer) => {
                *counts.entry("refused by the API server").or_default() += 1;
                if !answer.contains("spec.") {
                    wrong.push(format!("{spec}: no field in {answer}"));
                }
            }
            Ok(admitted) => {
                let cache: Memcached = serde_json::from_value(serde_json::to_value(admitted).unwrap()).unwrap();
                match validate(&cache) {
                    Err(violations) => {
                        *counts.entry("refused by the operator").or_default() += 1;
                        assert!(
                            violations.iter().all(|violation| violation.field.starts_with("spec.")),
                            "{violations:?}"
                        );
                    }
                    Ok(valid) => {
                        *counts.entry("accepted").or_default() += 1;
                        let refused = refused_children(&client, &valid).await;
                        wrong.extend(refused.into_iter().map(|answer| format!("{spec}: {answer}")));
                    }
                }
            }
        }
    }
    println!("{counts:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(counts.values().all(|count| u64::from(*count) > size() / 40) && counts.len() == 3, "{counts:?}");
}

#[tokio::test]
async fn what_the_webhooks_let_in_has_acceptable_children_and_what_they_refuse_names_the_field() {
    let guarded = Guarded::shared().await;
    let place = guarded.arena.namespace("whole").await;
    let client = guarded.client().await;
    let api = caches(&client, place.name(), "v1alpha1");
    let mut counts = BTreeMap::<&str, u32>::new();
    let mut wrong = Vec::new();
    for spec in declarations(seed() + 1).take(usize::try_from(size()).unwrap()) {
        let object = json!({
            "apiVersion": "memcached.c5c3.io/v1alpha1", "kind": "Memcached",
            "metadata": {"name": "sessions"}, "spec": spec,
        });
        match create(&api, &object).await {
            Err(answer) => {
                *counts.entry("refused").or_default() += 1;
                let is_clean = !answer.contains("Internal") && !answer.contains("timeout");
                if !answer.contains("spec.") || !is_clean {
                    wrong.push(format!("{spec}: {answer}"));
                }
            }
            Ok(admitted) => {
                *counts.entry("accepted").or_default() += 1;
                let cache: Memcached = serde_json::from_value(serde_json::to_value(admitted).unwrap()).unwrap();
                match validate(&cache) {
                    Err(violations) => wrong.push(format!("{spec} is let in: {violations:?}")),
                    Ok(valid) => {
                        let refused = refused_children(&client, &valid).await;
                        wrong.extend(refused.into_iter().map(|answer| format!("{spec}: {answer}")));
                    }
                }
            }
        }
    }
    println!("{counts:?}");
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
    assert!(counts.len() == 2 && !guarded.log().contains("panicked"), "{counts:?}");
}
