//! The spellings that Kubernetes asks for: names, labels, variables, paths.

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

/// The key of an annotation, which may have capitals in its domain.
pub fn is_annotation_key(text: &str) -> bool {
    is_key(&text.to_ascii_lowercase())
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

/// Whether a text can be the value of a label.
pub fn is_label_value(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_alphanumeric();
    let is_inner = |c: char| is_end(c) || matches!(c, '-' | '_' | '.');
    text.len() <= 63 && text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(is_inner)
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
    fn domains_of_annotations_may_have_capitals() {
        assert!(is_annotation_key("Example.org/team") && !is_annotation_key("a b"));
    }

    #[test]
    fn objects_and_variables_have_names() {
        assert!(is_object_name("a.b-c.d") && is_object_name("0"));
        assert!(["", "A", "a.", ".a", "a..b", "-a"].iter().all(|bad| !is_object_name(bad)));
        assert!(is_variable("TZ") && is_variable("_a.b-c1"));
        assert!(["", "1a", "a b", "a=b", "..a", "."].iter().all(|bad| !is_variable(bad)));
        assert!(is_dns_label("a-1") && !is_dns_label("a.b"));
    }

    #[test]
    fn label_values_follow_the_rule() {
        assert!(is_label_value("1.6-alpine"));
        for bad in ["", "-a", "a.", "a/b", &"a".repeat(64)] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }
}
