//! Where pods may run: tolerations, spreading, affinity.

use k8s_openapi::api::core::v1::{
    Affinity, NodeSelectorRequirement, NodeSelectorTerm, PodAffinityTerm, Toleration, TopologySpreadConstraint,
    WeightedPodAffinityTerm,
};
use memcached_api::memcached::spec::MemcachedSpec;

use super::syntax::{check_operator, check_selector};
use operator_model::name::is_label_value;
use operator_model::name::{is_dns_label, is_key, is_object_name};
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut errors = FieldErrors::at("spec", &mut violations);
    for (index, toleration) in spec.tolerations.iter().enumerate() {
        check_toleration(&mut errors.field("tolerations").index(index), toleration);
    }
    if let Some(availability) = &spec.high_availability {
        let constraints = &availability.topology_spread_constraints;
        check_spread(&mut errors.field("highAvailability.topologySpreadConstraints"), constraints);
    }
    if let Some(affinity) = &spec.affinity {
        check_affinity(&mut errors.field("affinity"), affinity);
    }
    violations
}

fn check_toleration(errors: &mut FieldErrors<'_>, toleration: &Toleration) {
    let Toleration { effect, key, operator, toleration_seconds, value } = toleration;
    let (key, value) = (key.as_deref().unwrap_or_default(), value.as_deref().unwrap_or_default());
    errors.field("key").require(key.is_empty() || is_key(key), format!("{key:?} cannot be the key of a taint"));
    let effects = ["", "NoSchedule", "PreferNoSchedule", "NoExecute"];
    errors.field("effect").require_one_of(effect.as_deref(), &effects);
    match operator.as_deref() {
        Some("Exists") => errors.field("value").require(value.is_empty(), "Exists takes no value"),
        None | Some("" | "Equal") => {
            errors
                .field("operator")
                .require(!key.is_empty(), "must be Exists without a key, which tolerates everything");
            let is_good = value.is_empty() || is_label_value(value);
            errors.field("value").require(is_good, format!("{value:?} cannot be the value of a taint"));
        }
        Some(other) => errors.field("operator").invalid(format!("{other:?} is none of Exists, Equal")),
    }
    let is_timed = toleration_seconds.is_none() || effect.as_deref() == Some("NoExecute");
    errors.field("tolerationSeconds").require(is_timed, "only with the effect NoExecute");
}

fn check_spread(errors: &mut FieldErrors<'_>, constraints: &[TopologySpreadConstraint]) {
    for (index, constraint) in constraints.iter().enumerate() {
        let mut errors = errors.index(index);
        errors.field("maxSkew").require(constraint.max_skew > 0, "give at least 1");
        let key = &constraint.topology_key;
        errors.field("topologyKey").require(is_key(key), format!("{key:?} cannot be the key of a label"));
        let when = constraint.when_unsatisfiable.as_str();
        errors.field("whenUnsatisfiable").require_one_of(Some(when), &["DoNotSchedule", "ScheduleAnyway"]);
        let same = |other: &TopologySpreadConstraint| other.topology_key == *key && other.when_unsatisfiable == when;
        let is_repeated = constraints.iter().take(index).any(same);
        errors.require(!is_repeated, format!("{key:?} with {when} is given twice"));
        if let Some(domains) = constraint.min_domains {
            errors.field("minDomains").require(domains > 0, "give at least 1");
            errors.field("minDomains").require(when == "DoNotSchedule", "only with whenUnsatisfiable DoNotSchedule");
        }
        let policies = ["Honor", "Ignore"];
        errors.field("nodeAffinityPolicy").require_one_of(constraint.node_affinity_policy.as_deref(), &policies);
        errors.field("nodeTaintsPolicy").require_one_of(constraint.node_taints_policy.as_deref(), &policies);
        check_selector(&mut errors.field("labelSelector"), constraint.label_selector.as_ref());
        let ours = [memcached_api::label::NAME, memcached_api::label::INSTANCE, memcached_api::label::MANAGED_BY];
        for key in constraint.match_label_keys.iter().flatten() {
            let selected = match &constraint.label_selector {
                Some(selector) => selects(selector, key),
                None => ours.contains(&key.as_str()),
            };
            let message = format!("{key:?} cannot be the key of a label, or is in labelSelector already");
            errors.field("matchLabelKeys").require(is_key(key) && !selected, message);
        }
    }
}

fn selects(selector: &k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector, key: &String) -> bool {
    selector.match_labels.as_ref().is_some_and(|labels| labels.contains_key(key))
        || selector.match_expressions.iter().flatten().any(|expression| expression.key == *key)
}

fn check_affinity(errors: &mut FieldErrors<'_>, affinity: &Affinity) {
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
    let (same, other) = (term.match_label_keys.as_deref(), term.mismatch_label_keys.as_deref());
    for (field, keys, others) in [("matchLabelKeys", same, other), ("mismatchLabelKeys", other, same)] {
        for key in keys.into_iter().flatten() {
            let selector = term.label_selector.as_ref();
            let is_free = selector.is_some_and(|selector| !selects(selector, key));
            let is_once = !others.into_iter().flatten().any(|other| other == key);
            let message = format!("{key:?} needs a labelSelector that does not have it, and to be in one list only");
            errors.field(field).require(is_key(key) && is_free && is_once, message);
        }
    }
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
