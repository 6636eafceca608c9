//! The spellings that Kubernetes asks for: names, labels, variables, paths.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use operator_model::name::{is_key, is_label_value};
use operator_model::violation::FieldErrors;

pub fn check_labels(errors: &mut FieldErrors<'_>, labels: &BTreeMap<String, String>) {
    for (key, value) in labels {
        errors.require(is_key(key), format!("{key:?} cannot be the key of a label: use example.org/name or name"));
        let is_good = value.is_empty() || is_label_value(value);
        let message =
            format!("{value:?} cannot be the value of the label {key:?}: use up to 63 letters, digits, '-', '_', '.'");
        errors.require(is_good, message);
    }
}

pub fn check_annotations(errors: &mut FieldErrors<'_>, annotations: &BTreeMap<String, String>) {
    for key in annotations.keys() {
        let message = format!("{key:?} cannot be the key of an annotation: use example.org/name or name");
        errors.require(is_key(&key.to_ascii_lowercase()), message);
    }
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    errors.require(size <= 256 << 10, "more than 256Ki of annotations");
}

pub fn check_selector(errors: &mut FieldErrors<'_>, selector: Option<&LabelSelector>) {
    let Some(LabelSelector { match_labels, match_expressions }) = selector else { return };
    check_labels(&mut errors.field("matchLabels"), &match_labels.clone().unwrap_or_default());
    for (index, expression) in match_expressions.iter().flatten().enumerate() {
        let values = expression.values.as_deref().unwrap_or_default();
        let mut errors = errors.field("matchExpressions");
        let mut errors = errors.index(index);
        errors.require(is_key(&expression.key), format!("{:?} cannot be the key of a label", expression.key));
        check_operator(&mut errors, &expression.operator, values, &[]);
    }
}

/// An operator with as many values as it takes; `more` are operators that take one number.
pub fn check_operator(errors: &mut FieldErrors<'_>, operator: &str, values: &[String], more: &[&str]) {
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
