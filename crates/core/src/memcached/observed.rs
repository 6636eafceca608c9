//! What was observed of an object and its children: what decisions are made from.

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use memcached_api::memcached::spec::TlsMode;

use crate::memcached::revision;
use crate::memcached::secret::Data;

/// What was observed of a `Memcached` and its children. Nothing, where nothing can be: in a webhook, for example.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Observed {
    /// The Deployment, if the object owns it.
    pub deployment: Option<Deployment>,
    /// The kept templates.
    pub revisions: Vec<ControllerRevision>,
    pub pods: Vec<Pod>,
    /// The Secrets that the pods mount: none for one that does not exist; absent if it could not be read.
    pub secrets: BTreeMap<String, Option<Data>>,
}

impl Observed {
    /// The TLS mode that was found running when the object was taken over; none if it was not, or had no TLS.
    ///
    /// The other operator runs `-Z` without a listener, which is TLS on 11211. A template that is built later must not
    /// open that port for plaintext where nobody asked for it.
    pub fn found_tls_mode(&self) -> Option<TlsMode> {
        match revision::in_force(&self.revisions) {
            Some(kept) => kept.found_tls_mode(),
            None => tls_mode(&self.deployment.as_ref()?.spec.as_ref()?.template),
        }
    }
}

/// The TLS mode of running servers, by their command line; none without TLS.
pub fn tls_mode(template: &PodTemplateSpec) -> Option<TlsMode> {
    let container = template.spec.as_ref()?.containers.iter().find(|container| container.name == "memcached")?;
    let words: Vec<&str> = container.command.iter().chain(&container.args).flatten().map(String::as_str).collect();
    words.iter().any(|word| matches!(*word, "-Z" | "--enable-ssl")).then(|| {
        let is_plain = listeners(&words).into_iter().any(is_plaintext);
        if is_plain { TlsMode::Alongside } else { TlsMode::Required }
    })
}

/// What follows `-l`, in every spelling that getopt takes.
fn listeners<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let separate = words.iter().zip(words.iter().skip(1)).filter(|(word, _)| matches!(**word, "-l" | "--listen"));
    let attached = words.iter().filter_map(|word| {
        word.strip_prefix("--listen=").or_else(|| word.strip_prefix("-l").filter(|rest| !rest.is_empty()))
    });
    separate.map(|(_, value)| *value).chain(attached).flat_map(|value| value.split(',')).collect()
}

/// Whether a listener serves plaintext to other pods.
fn is_plaintext(listener: &str) -> bool {
    let Some(address) = listener.strip_prefix("notls:") else { return false };
    let address = address.strip_prefix("proto[ascii]:").unwrap_or(address);
    !["127.", "localhost", "[::1]"].iter().any(|loopback| address.starts_with(loopback))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn mode(command: &[&str], args: &[&str]) -> Option<TlsMode> {
        let container = json!({"name": "memcached", "command": command, "args": args});
        let other = json!({"name": "exporter", "args": ["-Z"]});
        tls_mode(&serde_json::from_value(json!({"spec": {"containers": [other, container]}})).unwrap())
    }

    #[test]
    fn a_command_line_tells_the_tls_mode() {
        assert_eq!(mode(&[], &["-m", "64"]), None);
        assert_eq!(mode(&[], &["-m", "64", "-Z", "-o", "ssl_key=x"]), Some(TlsMode::Required), "the other operator's");
        let alongside = [&["memcached", "-l", "notls:*:11211,*:11212"][..], &["-lnotls:*:11211,*:11212"]];
        for command in alongside {
            assert_eq!(mode(command, &["-Z"]), Some(TlsMode::Alongside), "{command:?}");
        }
        let required = "notls:proto[ascii]:127.0.0.1:11213,*:11211,*:11212";
        assert_eq!(mode(&["memcached", "--listen", required], &["--enable-ssl"]), Some(TlsMode::Required));
        assert_eq!(mode(&[&format!("--listen={required}")], &["-Z"]), Some(TlsMode::Required));
    }
}
