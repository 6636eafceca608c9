//! Label selectors: whether Kubernetes takes one, and what it selects.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};

use crate::metadata::check_labels;
use crate::name::{is_key, is_label_value};
use crate::violation::FieldErrors;

/// A selector that the API server takes; an absent one is good.
pub fn check_selector(errors: &mut FieldErrors<'_>, selector: Option<&LabelSelector>) {
    let Some(LabelSelector { match_labels, match_expressions }) = selector else { return };
    if let Some(labels) = match_labels {
        check_labels(&mut errors.field("matchLabels"), labels);
    }
    for (index, expression) in match_expressions.iter().flatten().enumerate() {
        let values = expression.values.as_deref().unwrap_or_default();
        let mut errors = errors.field("matchExpressions");
        let mut errors = errors.index(index);
        errors.require(is_key(&expression.key), format!("{:?} cannot be the key of a label", expression.key));
        check_operator(&mut errors, &expression.operator, values, &[]);
    }
}

/// An operator with as many values as it takes; `more` are operators that take one number.
pub(crate) fn check_operator(errors: &mut FieldErrors<'_>, operator: &str, values: &[String], more: &[&str]) {
    match operator {
        "In" | "NotIn" => {
            errors.field("values").require(!values.is_empty(), format!("{operator} needs values"));
            for value in values {
                let is_good = value.is_empty() || is_label_value(value);
                errors.field("values").require(is_good, format!("{value:?} cannot be the value of a label"));
            }
        }
        "Exists" | "DoesNotExist" => {
            errors.field("values").require(values.is_empty(), format!("{operator} takes no values"));
        }
        _ if more.contains(&operator) => {
            let is_number = matches!(values, [value] if value.parse::<i64>().is_ok());
            errors.field("values").require(is_number, format!("{operator} needs one number"));
        }
        _ => errors.field("operator").invalid(format!("{operator:?} is none of In, NotIn, Exists, DoesNotExist")),
    }
}

/// Whether a selector selects an object with these labels; an empty one selects everything.
pub fn selects(selector: &LabelSelector, labels: &BTreeMap<String, String>) -> bool {
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

/// The keys of labels that a selector looks at.
pub(crate) fn keys(selector: &LabelSelector) -> BTreeSet<&str> {
    let labels = selector.match_labels.iter().flatten().map(|(key, _)| key.as_str());
    let expressions = selector.match_expressions.iter().flatten().map(|expression| expression.key.as_str());
    labels.chain(expressions).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::violation::refused;

    fn of(value: &Value) -> LabelSelector {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn expression(key: &str, operator: &str, values: &[&str]) -> LabelSelector {
        of(&json!({"matchExpressions": [{"key": key, "operator": operator, "values": values}]}))
    }

    #[test]
    fn operators_have_as_many_values_as_they_take() {
        let check = |selector: &LabelSelector| refused(|errors| check_selector(errors, Some(selector)));
        for good in [expression("a", "In", &["b", ""]), expression("a", "Exists", &[]), LabelSelector::default()] {
            assert_eq!(check(&good), [""; 0], "{good:?}");
        }
        for (bad, field) in [
            (expression("a", "In", &[]), "at.matchExpressions[0].values"),
            (expression("a", "NotIn", &["b c"]), "at.matchExpressions[0].values"),
            (expression("a", "DoesNotExist", &["b"]), "at.matchExpressions[0].values"),
            (expression("a", "Gt", &["1"]), "at.matchExpressions[0].operator"),
            (expression("a b", "Exists", &[]), "at.matchExpressions[0]"),
            (of(&json!({"matchLabels": {"a": "-"}})), "at.matchLabels"),
        ] {
            assert_eq!(check(&bad), [field], "{bad:?}");
        }
        assert_eq!(refused(|errors| check_selector(errors, None)), [""; 0]);
    }

    #[test]
    fn a_selector_selects_what_meets_all_of_it() {
        let labels: BTreeMap<String, String> = [("tier".to_owned(), "web".to_owned())].into();
        for selector in [
            LabelSelector::default(),
            of(&json!({"matchLabels": {"tier": "web"}})),
            expression("tier", "In", &["db", "web"]),
            expression("team", "NotIn", &["a"]),
            expression("tier", "Exists", &[]),
            expression("team", "DoesNotExist", &[]),
        ] {
            assert!(selects(&selector, &labels), "{selector:?}");
        }
        for selector in [
            of(&json!({"matchLabels": {"tier": "web", "team": "a"}})),
            expression("tier", "In", &["db"]),
            expression("tier", "NotIn", &["web"]),
            expression("team", "Exists", &[]),
            expression("tier", "DoesNotExist", &[]),
        ] {
            assert!(!selects(&selector, &labels), "{selector:?}");
        }
    }
}
