//! Where pods may run: tolerations and spreading. Affinity has a file of its own.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Toleration, TopologySpreadConstraint};

use super::Layout;
use crate::name::{is_key, is_label_value};
use crate::selector::{check_selector, keys};
use crate::violation::FieldErrors;

/// Taints that pods tolerate.
pub fn check_tolerations(errors: &mut FieldErrors<'_>, tolerations: &[Toleration]) {
    for (index, toleration) in tolerations.iter().enumerate() {
        check_toleration(&mut errors.index(index), toleration);
    }
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

/// Topology spread constraints; the operator fills in its own labels where they select none.
pub fn check_topology_spread(
    errors: &mut FieldErrors<'_>,
    constraints: &[TopologySpreadConstraint],
    layout: &Layout<'_>,
) {
    let mut given = BTreeSet::new();
    for (index, constraint) in constraints.iter().enumerate() {
        let mut errors = errors.index(index);
        errors.field("maxSkew").require(constraint.max_skew > 0, "give at least 1");
        let key = constraint.topology_key.as_str();
        errors.field("topologyKey").require(is_key(key), format!("{key:?} cannot be the key of a label"));
        let when = constraint.when_unsatisfiable.as_str();
        errors.field("whenUnsatisfiable").require_one_of(Some(when), &["DoNotSchedule", "ScheduleAnyway"]);
        errors.require(given.insert((key, when)), format!("{key:?} with {when} is given twice"));
        if let Some(domains) = constraint.min_domains {
            errors.field("minDomains").require(domains > 0, "give at least 1");
            errors.field("minDomains").require(when == "DoNotSchedule", "only with whenUnsatisfiable DoNotSchedule");
        }
        let policies = ["Honor", "Ignore"];
        errors.field("nodeAffinityPolicy").require_one_of(constraint.node_affinity_policy.as_deref(), &policies);
        errors.field("nodeTaintsPolicy").require_one_of(constraint.node_taints_policy.as_deref(), &policies);
        let selector = constraint.label_selector.as_ref();
        check_selector(&mut errors.field("labelSelector"), selector);
        let selected = selector.map_or_else(|| layout.selector_labels.iter().copied().collect(), keys);
        for key in constraint.match_label_keys.iter().flatten() {
            let message = format!("{key:?} cannot be the key of a label, or is in labelSelector already");
            let is_free = !selected.contains(key.as_str());
            errors.field("matchLabelKeys").require(is_key(key) && is_free, message);
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::LAYOUT;
    use super::*;
    use crate::violation::refused;

    fn spread(constraints: &Value) -> Vec<String> {
        let constraints: Vec<_> = serde_json::from_value(constraints.clone()).unwrap();
        refused(|errors| check_topology_spread(errors, &constraints, &LAYOUT))
    }

    #[test]
    fn tolerations_say_what_taints_can() {
        let check = |toleration: &Value| {
            let toleration = serde_json::from_value(toleration.clone()).unwrap();
            refused(|errors| check_tolerations(errors, &[toleration]))
        };
        for good in [
            json!({"operator": "Exists"}),
            json!({"key": "cache", "value": "yes", "effect": "NoSchedule"}),
            json!({"key": "cache", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}),
        ] {
            assert_eq!(check(&good), [""; 0], "{good}");
        }
        for (bad, field) in [
            (json!({"key": "a", "operator": "Like"}), "operator"),
            (json!({"operator": "Equal"}), "operator"),
            (json!({"key": "a", "operator": "Exists", "value": "b"}), "value"),
            (json!({"key": "a", "effect": "Never"}), "effect"),
            (json!({"key": "a", "tolerationSeconds": 1}), "tolerationSeconds"),
        ] {
            assert_eq!(check(&bad), [format!("at[0].{field}")], "{bad}");
        }
    }

    #[test]
    fn spreading_is_over_something_and_said_once() {
        let zone = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"});
        let host = json!({"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2});
        assert_eq!(spread(&json!([zone, host])), [""; 0]);
        assert_eq!(spread(&json!([zone, zone])), ["at[1]"]);
        let over = |name: &str, value: Value| {
            let mut constraint = zone.clone();
            constraint[name] = value;
            spread(&json!([constraint]))
        };
        assert_eq!(over("maxSkew", json!(0)), ["at[0].maxSkew"]);
        assert_eq!(over("topologyKey", json!("")), ["at[0].topologyKey"]);
        assert_eq!(over("whenUnsatisfiable", json!("Never")), ["at[0].whenUnsatisfiable"]);
        assert_eq!(over("minDomains", json!(2)), ["at[0].minDomains"]);
        assert_eq!(over("matchLabelKeys", json!(["app.kubernetes.io/name"])), ["at[0].matchLabelKeys"]);
        assert_eq!(over("matchLabelKeys", json!(["pod-template-hash"])), [""; 0]);
    }
}
