//! Image references: the tag is the version that people see.

/// When a kubelet pulls an image.
pub const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

/// The tag of a reference, if it has one: `registry:5000/server:1.6@sha256:…` → `1.6`.
pub fn tag(image: &str) -> Option<&str> {
    let without_digest = image.split('@').next().unwrap_or(image);
    let last = without_digest.rsplit('/').next().unwrap_or(without_digest);
    last.split_once(':').map(|(_, tag)| tag).filter(|tag| !tag.is_empty())
}

/// The `imagePullPolicy` that the API server gives a container of this image that has none.
///
/// `SetDefaults_Container` in Kubernetes' `pkg/apis/core/v1/defaults.go`: a reference without tag and digest means
/// the tag `latest`.
pub fn default_pull_policy(image: &str) -> &'static str {
    let is_latest = match tag(image) {
        Some(tag) => tag == "latest",
        None => !image.contains('@'),
    };
    if is_latest { "Always" } else { "IfNotPresent" }
}

/// Whether a text can be the tag of an image.
pub fn is_tag(text: &str) -> bool {
    let is_first = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.len() <= 128 && text.starts_with(is_first) && text.chars().all(|c| is_first(c) || matches!(c, '.' | '-'))
}

/// Whether a text names an image: `registry:5000/team/server:1.6@sha256:…`.
pub fn is_reference(image: &str) -> bool {
    let (named, digest) = image.split_once('@').map_or((image, None), |(named, digest)| (named, Some(digest)));
    let is_digest = |digest: &str| {
        digest.split_once(':').is_some_and(|(kind, hash)| {
            kind.starts_with(|c: char| c.is_ascii_alphabetic())
                && kind.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '.' | '_' | '-'))
                && !hash.is_empty()
                && hash.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
    };
    let (path, last) = named.rsplit_once('/').map_or((None, named), |(path, last)| (Some(path), last));
    let (name, tag) = last.split_once(':').map_or((last, None), |(name, tag)| (name, Some(tag)));
    let mut path = path.into_iter().flat_map(|path| path.split('/'));
    let registry = path.next();
    digest.is_none_or(is_digest)
        && tag.is_none_or(is_tag)
        && is_component(name)
        && path.all(is_component)
        && registry.is_none_or(|registry| is_component(registry) || is_registry(registry))
}

/// A part of an image's name.
fn is_component(text: &str) -> bool {
    let is_end = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let is_inner = |c: char| is_end(c) || matches!(c, '.' | '_' | '-');
    text.starts_with(is_end) && text.ends_with(is_end) && text.chars().all(is_inner)
}

/// A host, and its port.
fn is_registry(text: &str) -> bool {
    let (host, port) = text.rsplit_once(':').map_or((text, None), |(host, port)| (host, Some(port)));
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    !host.is_empty() && host.chars().all(is_host) && port.is_none_or(is_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_found_behind_registries_and_before_digests() {
        assert_eq!(tag("server:1.6"), Some("1.6"));
        assert_eq!(tag("registry:5000/team/server:1.6.45@sha256:abc"), Some("1.6.45"));
        assert_eq!(tag("registry:5000/server"), None);
        assert_eq!(tag("server@sha256:abc"), None);
    }

    #[test]
    fn the_pull_policy_is_the_api_servers_own_choice() {
        for (image, policy) in [
            ("memcached", "Always"),
            ("memcached:latest", "Always"),
            ("memcached:latest@sha256:abc", "Always"),
            ("registry:5000/memcached", "Always"),
            ("memcached:1.6", "IfNotPresent"),
            ("memcached@sha256:abc", "IfNotPresent"),
        ] {
            assert_eq!(default_pull_policy(image), policy, "{image}");
        }
    }

    #[test]
    fn references_are_told_from_other_texts() {
        for good in [
            "server",
            "server:1.6-alpine",
            "registry:5000/team/server:1.6.45@sha256:abc",
            "Registry.example.org/server",
            "[::1]:5000/a/b_c",
        ] {
            assert!(is_reference(good), "{good}");
        }
        for bad in ["", " server", "ser ver", "Server", "a//b", "a:", "a:b:c", "a@b", "/a", "a/", "a:-b"] {
            assert!(!is_reference(bad), "{bad}");
        }
    }
}
