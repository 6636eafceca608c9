//! Image references: the tag is the version that people see.

/// The image when nothing is declared.
pub const DEFAULT: &str = "memcached:1.6";

/// The tag of a reference, if it has one: `registry:5000/memcached:1.6@sha256:…` → `1.6`.
pub fn tag(image: &str) -> Option<&str> {
    let without_digest = image.split('@').next().unwrap_or(image);
    let last = without_digest.rsplit('/').next().unwrap_or(without_digest);
    last.split_once(':').map(|(_, tag)| tag).filter(|tag| !tag.is_empty())
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
    fn the_tag_is_found_behind_registries_and_before_digests() {
        assert_eq!(tag("memcached:1.6"), Some("1.6"));
        assert_eq!(tag("registry:5000/team/memcached:1.6.45@sha256:abc"), Some("1.6.45"));
        assert_eq!(tag("registry:5000/memcached"), None);
        assert_eq!(tag("memcached@sha256:abc"), None);
    }

    #[test]
    fn label_values_follow_the_rule() {
        assert!(is_label_value("1.6-alpine"));
        for bad in ["", "-a", "a.", "a/b", &"a".repeat(64)] {
            assert!(!is_label_value(bad), "{bad}");
        }
    }
}
