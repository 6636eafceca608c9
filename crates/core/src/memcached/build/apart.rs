//! Whether two pods of a cache can be in one place.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodAffinityTerm;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use memcached_api::memcached::spec::AntiAffinityPreset;

use super::meta::workload_labels;
use crate::memcached::validate::Validated;

/// Whether pods of a cache must keep off each other: by our preset, or by an affinity of the user's own.
pub fn keeps_apart(cache: &Validated) -> bool {
    let preset = cache.spec.high_availability.as_ref().and_then(|availability| availability.anti_affinity_preset);
    let own = cache.spec.affinity.as_ref().and_then(|affinity| affinity.pod_anti_affinity.as_ref());
    let terms = own.and_then(|own| own.required_during_scheduling_ignored_during_execution.as_deref());
    let mut labels = cache.spec.pod_labels.clone();
    labels.extend(workload_labels(cache));
    preset == Some(AntiAffinityPreset::Hard)
        || terms.into_iter().flatten().any(|term| is_against(term, &cache.namespace, &labels))
}

fn is_against(term: &PodAffinityTerm, namespace: &String, labels: &BTreeMap<String, String>) -> bool {
    let named = term.namespaces.as_deref().unwrap_or_default();
    // Whether a selector of namespaces means our own is not ours to know: it may.
    let is_here = named.is_empty() || named.contains(namespace) || term.namespace_selector.is_some();
    is_here && term.label_selector.as_ref().is_some_and(|selector| selects(selector, labels))
}

fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
    let LabelSelector { match_labels, match_expressions } = selector;
    match_labels.iter().flatten().all(|(key, value)| labels.get(key) == Some(value))
        && match_expressions.iter().flatten().all(|requirement| is_met(requirement, labels))
}

fn is_met(requirement: &LabelSelectorRequirement, labels: &BTreeMap<String, String>) -> bool {
    let LabelSelectorRequirement { key, operator, values } = requirement;
    let value = labels.get(key);
    let is_listed = value.is_some_and(|value| values.iter().flatten().any(|listed| listed == value));
    match operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        "Exists" => value.is_some(),
        _ => value.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::memcached::fixture::validated;

    fn is_apart(term: &Value) -> bool {
        let affinity = json!({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}});
        let affinity = serde_json::from_value(affinity).unwrap();
        keeps_apart(&validated(|spec| spec.affinity = Some(affinity)))
    }

    #[test]
    fn an_affinity_against_our_own_pods_keeps_them_apart() {
        for selector in [
            json!({}),
            json!({"matchLabels": {"app.kubernetes.io/instance": "sessions"}}),
            json!({"matchExpressions": [{"key": "app.kubernetes.io/name", "operator": "Exists"}]}),
        ] {
            assert!(
                is_apart(&json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": selector})),
                "{selector}"
            );
        }
    }

    #[test]
    fn an_affinity_against_others_does_not() {
        let host = "kubernetes.io/hostname";
        assert!(!is_apart(&json!({"topologyKey": host, "labelSelector": {"matchLabels": {"app": "other"}}})));
        assert!(!is_apart(&json!({"topologyKey": host})), "no selector selects nothing");
        assert!(!is_apart(&json!({"topologyKey": host, "labelSelector": {}, "namespaces": ["elsewhere"]})));
    }
}
