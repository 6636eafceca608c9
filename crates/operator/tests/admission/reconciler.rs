//! The operator where the API server checks nothing: it tells in the status what the API server would have.

use memcached_api::memcached::crd;
use serde_json::{Value, json};

use crate::cel::caches;
use crate::example::{self, By, Example};
use crate::harness::{Arena, condition, define};

/// The CustomResourceDefinition without a rule in it.
pub fn without_rules() -> Value {
    let mut definition = serde_json::to_value(crd::definition().unwrap()).unwrap();
    definition["apiVersion"] = json!("apiextensions.k8s.io/v1");
    definition["kind"] = json!("CustomResourceDefinition");
    strip(&mut definition);
    definition
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove("x-kubernetes-validations");
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn is_for_the_reconciler(example: &Example) -> bool {
    example.refusal.as_ref().is_none_or(|refusal| matches!(refusal.by, By::Everybody | By::Operator))
        // A name that is no label cannot even be asked about: the operator's own writes would fail.
        && example.old.is_none()
}

#[tokio::test]
async fn the_operator_tells_in_the_status_what_it_refuses() {
    let arena = Arena::without_operator().await;
    let definition = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(definition.path(), without_rules().to_string()).unwrap();
    define(&arena.cluster, definition.path().to_str().unwrap()).await;
    arena.start_operator(&["--leader-elect=false"]);
    let place = arena.namespace("told").await;
    let api = caches(&arena.cluster.client().await.unwrap(), place.name(), "v1beta1");
    let examples: Vec<Example> = example::all().into_iter().filter(is_for_the_reconciler).collect();
    let named = examples.into_iter().enumerate().map(|(index, mut example)| {
        // All at once in one namespace; names that matter stay.
        if example.name == "sessions" {
            example.name = format!("sessions-{index}");
        }
        example
    });
    let mut seen = std::collections::BTreeSet::new();
    let named: Vec<Example> = named.filter(|example| seen.insert(example.name.clone())).collect();
    for example in &named {
        let object = serde_json::from_value(example.object("v1beta1")).unwrap();
        api.create(&kube::api::PostParams::default(), &object).await.unwrap();
    }
    for example in &named {
        let cache = place.settled(&example.name).await;
        let degraded = condition(&cache, "Degraded");
        let is_refused = degraded["reason"] == "Invalid";
        assert_eq!(is_refused, example.refusal.is_some(), "{}: {degraded:#}", example.spec);
        let message = degraded["message"].as_str().unwrap_or_default();
        assert!(!is_refused || example.is_told_by(message), "{}: {message}", example.spec);
    }
}
