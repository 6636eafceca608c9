//! Whether two pods of a cache can be in one place.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::PodAffinityTerm;
use memcached_api::memcached::spec::AntiAffinityPreset;
use operator_model::selector::selects;

use super::metadata::workload_labels;
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
