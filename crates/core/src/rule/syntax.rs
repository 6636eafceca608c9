//! The spellings that Kubernetes asks for: names, labels, variables, paths.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::finding::Findings;
use crate::image::is_label_value;

/// What to say of a name that is none.
pub const NAME_RULE: &str = "is no name: use lower-case letters, digits, '-' and '.', starting and ending with a \
     letter or a digit";

/// RFC 1123's label.
pub fn is_dns_label(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.len() <= 63
        && text.starts_with(is_end)
        && text.ends_with(is_end)
        && text.chars().all(|c| is_end(c) || c == '-')
}

/// What most objects may be called.
pub fn is_object_name(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_part =
        |part: &str| part.starts_with(is_end) && part.ends_with(is_end) && part.chars().all(|c| is_end(c) || c == '-');
    text.len() <= 253 && text.split('.').all(is_part)
}

/// The key of a label or annotation: a name, with the domain that it belongs to in front.
pub fn is_key(text: &str) -> bool {
    match text.split_once('/') {
        Some((domain, name)) => is_object_name(domain) && is_label_value(name),
        None => is_label_value(text),
    }
}

/// The name of a variable, as every shell and every version of Kubernetes takes it.
pub fn is_variable(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphabetic() || matches!(c, '_' | '-' | '.');
    text.starts_with(is_first)
        && text.chars().all(|c| is_first(c) || c.is_ascii_digit())
        && text != "."
        && !text.starts_with("..")
}

/// A key of a Secret or a ConfigMap.
pub fn is_data_key(text: &str) -> bool {
    let is_inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    (1..=253).contains(&text.len()) && text.chars().all(is_inner) && text != "." && !text.starts_with("..")
}

/// A path below another one.
pub fn is_relative(path: &str) -> bool {
    !path.starts_with('/') && !path.split('/').any(|step| step == "..")
}

pub fn check_labels(findings: &mut Findings<'_>, labels: &BTreeMap<String, String>) {
    for (key, value) in labels {
        findings.require(is_key(key), format!("{key:?} cannot be the key of a label: use example.org/name or name"));
        let is_good = value.is_empty() || is_label_value(value);
        let message =
            format!("{value:?} cannot be the value of the label {key:?}: use up to 63 letters, digits, '-', '_', '.'");
        findings.require(is_good, message);
    }
}

pub fn check_annotations(findings: &mut Findings<'_>, annotations: &BTreeMap<String, String>) {
    for key in annotations.keys() {
        let message = format!("{key:?} cannot be the key of an annotation: use example.org/name or name");
        findings.require(is_key(&key.to_ascii_lowercase()), message);
    }
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    findings.require(size <= 256 << 10, "more than 256Ki of annotations");
}

pub fn check_selector(findings: &mut Findings<'_>, selector: Option<&LabelSelector>) {
    let Some(LabelSelector { match_labels, match_expressions }) = selector else { return };
    check_labels(&mut findings.below("matchLabels"), &match_labels.clone().unwrap_or_default());
    for (index, expression) in match_expressions.iter().flatten().enumerate() {
        let values = expression.values.as_deref().unwrap_or_default();
        let mut findings = findings.below("matchExpressions");
        let mut findings = findings.item(index);
        findings.require(is_key(&expression.key), format!("{:?} cannot be the key of a label", expression.key));
        check_operator(&mut findings, &expression.operator, values, &[]);
    }
}

/// An operator with as many values as it takes; `more` are operators that take one number.
pub fn check_operator(findings: &mut Findings<'_>, operator: &str, values: &[String], more: &[&str]) {
    match operator {
        "In" | "NotIn" => {
            findings.below("values").require(!values.is_empty(), format!("{operator} needs values"));
            for value in values {
                let is_good = value.is_empty() || is_label_value(value);
                findings.below("values").require(is_good, format!("{value:?} cannot be the value of a label"));
            }
        }
        "Exists" | "DoesNotExist" => {
            findings.below("values").require(values.is_empty(), format!("{operator} takes no values"));
        }
        _ if more.contains(&operator) => {
            let is_number = matches!(values, [value] if value.parse::<i64>().is_ok());
            findings.below("values").require(is_number, format!("{operator} needs one number"));
        }
        _ => findings.below("operator").refuse(format!("{operator:?} is none of In, NotIn, Exists, DoesNotExist")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_a_name_and_may_have_a_domain() {
        for good in ["team", "example.org/team", "a_b.c-d", "X"] {
            assert!(is_key(good), "{good}");
        }
        for bad in ["", "/a", "a/", "a b", "-a", "Example.org/a", "a/b/c", &"a".repeat(64)] {
            assert!(!is_key(bad), "{bad}");
        }
    }

    #[test]
    fn objects_and_variables_have_names() {
        assert!(is_object_name("a.b-c.d") && is_object_name("0"));
        assert!(["", "A", "a.", ".a", "a..b", "-a"].iter().all(|bad| !is_object_name(bad)));
        assert!(is_variable("TZ") && is_variable("_a.b-c1"));
        assert!(["", "1a", "a b", "a=b", "..a", "."].iter().all(|bad| !is_variable(bad)));
        assert!(is_dns_label("a-1") && !is_dns_label("a.b"));
    }
}
