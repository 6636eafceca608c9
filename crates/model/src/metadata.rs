//! Labels, annotations and names as Kubernetes takes them.

use std::collections::BTreeMap;

use crate::name::{NAME_RULE, is_annotation_key, is_key, is_label_value, is_object_name};
use crate::violation::FieldErrors;

/// Keys and values of labels; a node selector is spelled the same way.
pub fn check_labels(errors: &mut FieldErrors<'_>, labels: &BTreeMap<String, String>) {
    for (key, value) in labels {
        errors.require(is_key(key), format!("{key:?} cannot be the key of a label: use example.org/name or name"));
        let is_good = value.is_empty() || is_label_value(value);
        let message =
            format!("{value:?} cannot be the value of the label {key:?}: use up to 63 letters, digits, '-', '_', '.'");
        errors.require(is_good, message);
    }
}

/// Keys of annotations, and the size that all of them have together.
pub fn check_annotations(errors: &mut FieldErrors<'_>, annotations: &BTreeMap<String, String>) {
    for key in annotations.keys() {
        let message = format!("{key:?} cannot be the key of an annotation: use example.org/name or name");
        errors.require(is_annotation_key(key), message);
    }
    let size: usize = annotations.iter().map(|(key, value)| key.len() + value.len()).sum();
    errors.require(size <= 256 << 10, "more than 256Ki of annotations");
}

/// The name of another object.
pub fn check_name(errors: &mut FieldErrors<'_>, name: &str) {
    errors.require(is_object_name(name), format!("{name:?} {NAME_RULE}"));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::refused;

    fn map(key: &str, value: &str) -> BTreeMap<String, String> {
        [(key.to_owned(), value.to_owned())].into()
    }

    #[test]
    fn labels_have_keys_and_values_that_selectors_can_name() {
        for (key, value) in [("team", "a"), ("example.org/tier", "")] {
            assert_eq!(refused(|errors| check_labels(errors, &map(key, value))), [""; 0], "{key}={value}");
        }
        for (key, value) in [("a b", "c"), ("a", "b c"), ("disk", "-")] {
            assert_eq!(refused(|errors| check_labels(errors, &map(key, value))), ["at"], "{key}={value}");
        }
    }

    #[test]
    fn annotations_have_any_value_up_to_a_size() {
        let check = |key: &str, value: &str| refused(|errors| check_annotations(errors, &map(key, value)));
        assert_eq!(check("Example.org/note", "any text at all"), [""; 0]);
        assert_eq!(check("a b", "c"), ["at"]);
        assert_eq!(check("", "c"), ["at"]);
        assert_eq!(check("a", &"x".repeat(256 << 10)), ["at"]);
    }

    #[test]
    fn other_objects_have_names() {
        assert_eq!(refused(|errors| check_name(errors, "runner.example")), [""; 0]);
        for bad in ["", "High", "a b"] {
            assert_eq!(refused(|errors| check_name(errors, bad)), ["at"], "{bad}");
        }
    }
}
