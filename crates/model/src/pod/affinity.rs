//! Affinity to nodes and pods as Kubernetes takes it.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, WeightedPodAffinityTerm,
};

use crate::name::{is_dns_label, is_key, is_object_name};
use crate::selector::{check_operator, check_selector, keys};
use crate::violation::FieldErrors;

/// Affinity to nodes and pods, and against pods.
pub fn check_affinity(errors: &mut FieldErrors<'_>, affinity: &Affinity) {
    let Affinity { node_affinity, pod_affinity, pod_anti_affinity } = affinity;
    if let Some(node) = node_affinity {
        let mut errors = errors.field("nodeAffinity");
        if let Some(required) = &node.required_during_scheduling_ignored_during_execution {
            let mut errors = errors.field(format!("{REQUIRED}.nodeSelectorTerms"));
            errors.require(!required.node_selector_terms.is_empty(), "give at least one");
            for (index, term) in required.node_selector_terms.iter().enumerate() {
                check_node_term(&mut errors.index(index), term);
            }
        }
        let preferred = node.preferred_during_scheduling_ignored_during_execution.iter().flatten();
        for (index, term) in preferred.enumerate() {
            let mut errors = errors.field(PREFERRED);
            let mut errors = errors.index(index);
            errors.field("weight").require_within(Some(i64::from(term.weight)), 1, 100);
            check_node_term(&mut errors.field("preference"), &term.preference);
        }
    }
    if let Some(pod) = pod_affinity {
        let required = pod.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = pod.preferred_during_scheduling_ignored_during_execution.as_deref();
        check_pod_terms(&mut errors.field("podAffinity"), required, preferred);
    }
    if let Some(pod) = pod_anti_affinity {
        let required = pod.required_during_scheduling_ignored_during_execution.as_deref();
        let preferred = pod.preferred_during_scheduling_ignored_during_execution.as_deref();
        check_pod_terms(&mut errors.field("podAntiAffinity"), required, preferred);
    }
}

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

fn check_node_term(errors: &mut FieldErrors<'_>, term: &NodeSelectorTerm) {
    for (index, expression) in term.match_expressions.iter().flatten().enumerate() {
        let mut errors = errors.field("matchExpressions");
        let mut errors = errors.index(index);
        let NodeSelectorRequirement { key, operator, values } = expression;
        errors.field("key").require(is_key(key), format!("{key:?} cannot be the key of a label"));
        check_operator(&mut errors, operator, values.as_deref().unwrap_or_default(), &["Gt", "Lt"]);
    }
    for (index, field) in term.match_fields.iter().flatten().enumerate() {
        let mut errors = errors.field("matchFields");
        let mut errors = errors.index(index);
        errors.field("key").require_one_of(Some(&field.key), &["metadata.name"]);
        errors.field("operator").require_one_of(Some(&field.operator), &["In", "NotIn"]);
        let is_name = matches!(field.values.as_deref(), Some([name]) if is_object_name(name));
        errors.field("values").require(is_name, "give the name of one node");
    }
}

fn check_pod_terms(
    errors: &mut FieldErrors<'_>,
    required: Option<&[PodAffinityTerm]>,
    preferred: Option<&[WeightedPodAffinityTerm]>,
) {
    for (index, term) in required.into_iter().flatten().enumerate() {
        check_pod_term(&mut errors.field(REQUIRED).index(index), term);
    }
    for (index, term) in preferred.into_iter().flatten().enumerate() {
        let mut errors = errors.field(PREFERRED);
        let mut errors = errors.index(index);
        errors.field("weight").require_within(Some(i64::from(term.weight)), 1, 100);
        check_pod_term(&mut errors.field("podAffinityTerm"), &term.pod_affinity_term);
    }
}

fn check_pod_term(errors: &mut FieldErrors<'_>, term: &PodAffinityTerm) {
    let key = &term.topology_key;
    errors.field("topologyKey").require(is_key(key), format!("{key:?} cannot be the key of a label"));
    check_selector(&mut errors.field("labelSelector"), term.label_selector.as_ref());
    check_selector(&mut errors.field("namespaceSelector"), term.namespace_selector.as_ref());
    for namespace in term.namespaces.iter().flatten() {
        let message = format!("{namespace:?} cannot be the name of a namespace");
        errors.field("namespaces").require(is_dns_label(namespace), message);
    }
    let set = |keys: &Option<Vec<String>>| keys.iter().flatten().cloned().collect::<BTreeSet<_>>();
    let selected = term.label_selector.as_ref().map(keys);
    let (same, other) = (&term.match_label_keys, &term.mismatch_label_keys);
    for (field, own, others) in [("matchLabelKeys", same, set(other)), ("mismatchLabelKeys", other, set(same))] {
        for key in own.iter().flatten() {
            let is_free = selected.as_ref().is_some_and(|selected| !selected.contains(key.as_str()));
            let is_once = !others.contains(key);
            let message = format!("{key:?} needs a labelSelector that does not have it, and to be in one list only");
            errors.field(field).require(is_key(key) && is_free && is_once, message);
        }
    }
}

#[cfg(test)]
#[path = "affinity_tests.rs"]
mod tests;
