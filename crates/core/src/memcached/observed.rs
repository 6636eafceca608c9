//! Everything that a decision needs, as it was observed.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use memcached_api::Memcached;
use memcached_api::memcached::spec::{TlsMode, WorkloadType};
use operator_model::problem::Problem;
use operator_model::template::KeptTemplate;

use crate::memcached::build::owner;
use crate::memcached::revision;
use crate::memcached::rollout::revision_label;
use crate::memcached::secret::Data;
use crate::memcached::validate::Validated;

/// What was observed of a cache. Nothing, where nothing can be: in a webhook, for example.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The object itself.
    pub cache: Arc<Memcached>,
    /// The Deployment of its name, whoever owns it.
    pub deployment: Option<Deployment>,
    /// The StatefulSet of its name, whoever owns it.
    pub stateful_set: Option<StatefulSet>,
    /// Whether these are certain; else they are left alone.
    pub is_workload_known: bool,
    /// The revisions that keep its pod templates.
    pub revisions: Vec<ControllerRevision>,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// The Secrets it refers to, by name; none if one does not exist.
    pub secrets: BTreeMap<String, Option<Data>>,
    /// What could not be observed.
    pub problems: Vec<Problem>,
}

impl Observed {
    /// Whether a revision may be used: another object's of this name, deleted long ago or forged, keeps nothing of
    /// ours.
    pub fn is_usable(cache: &Memcached, revision: &ControllerRevision) -> bool {
        controller(&revision.metadata).is_none_or(|owner| Some(&owner.uid) == cache.metadata.uid.as_ref())
    }

    /// The revision in force, if nobody controls it: an orphan to adopt.
    pub fn orphaned_revision(&self, cache: &Validated) -> Option<ControllerRevision> {
        let latest = self.revisions.iter().max_by_key(|revision| revision.revision)?;
        if controller(&latest.metadata).is_some() {
            return None;
        }
        let metadata = ObjectMeta {
            name: latest.metadata.name.clone(),
            namespace: latest.metadata.namespace.clone(),
            labels: latest.metadata.labels.clone(),
            owner_references: Some(vec![owner(cache)]),
            ..ObjectMeta::default()
        };
        Some(ControllerRevision { metadata, ..latest.clone() })
    }

    /// The Deployment, if the cache owns it: any other says nothing about it.
    pub fn own_deployment(&self) -> Option<&Deployment> {
        self.deployment.as_ref().filter(|deployment| self.owns(&deployment.metadata))
    }

    /// The StatefulSet, if the cache owns it.
    pub fn own_stateful_set(&self) -> Option<&StatefulSet> {
        self.stateful_set.as_ref().filter(|stateful_set| self.owns(&stateful_set.metadata))
    }

    fn owns(&self, metadata: &ObjectMeta) -> bool {
        let uid = self.cache.metadata.uid.as_deref();
        metadata.owner_references.iter().flatten().any(|owner| Some(owner.uid.as_str()) == uid)
    }

    /// What runs the pods now: the workload that is there, else the one that the last template was built for.
    pub fn running_workload(&self) -> Option<WorkloadType> {
        if self.own_stateful_set().is_some() {
            return Some(WorkloadType::StatefulSet);
        }
        if self.own_deployment().is_some() {
            return Some(WorkloadType::Deployment);
        }
        KeptTemplate::<revision::Inputs>::latest(&self.revisions).map(|kept| kept.inputs.workload)
    }

    /// How many servers the workload that is there is told to run.
    pub fn running_replicas(&self, workload: WorkloadType) -> Option<i32> {
        match workload {
            WorkloadType::Deployment => self.deployment.as_ref()?.spec.as_ref()?.replicas,
            WorkloadType::StatefulSet => self.stateful_set.as_ref()?.spec.as_ref()?.replicas,
        }
    }

    /// The pods of the StatefulSet that it makes.
    pub fn servers(&self) -> impl Iterator<Item = &Pod> {
        self.pods.iter().filter(|pod| revision_label(pod).is_some())
    }

    /// Short-lived pods that try whether something starts.
    pub fn proofs(&self) -> impl Iterator<Item = &Pod> {
        let prefix = format!("{}-proof-", self.cache.metadata.name.as_deref().unwrap_or_default());
        self.pods.iter().filter(move |pod| {
            let is_named = pod.metadata.name.as_deref().is_some_and(|name| name.starts_with(&prefix));
            is_named && revision_label(pod).is_none()
        })
    }

    /// The pods that serve clients: all but proofs.
    pub fn serving_pods(&self) -> Vec<Pod> {
        match self.running_workload() {
            Some(WorkloadType::StatefulSet) => self.servers().cloned().collect(),
            _ => self.pods.clone(),
        }
    }

    /// The Deployment, if the status says that it reflects this very generation.
    pub fn reflecting(&self) -> Option<&Deployment> {
        let seen = self.cache.status.as_ref().and_then(|status| status.observed_generation);
        self.own_deployment().filter(|_| seen == self.cache.metadata.generation)
    }

    /// The TLS mode that was found running when the object was taken over; none if it was not, or had no TLS.
    ///
    /// The other operator runs `-Z` without a listener, which is TLS on 11211. A template that is built later must not
    /// open that port for plaintext where nobody asked for it.
    pub fn found_tls_mode(&self) -> Option<TlsMode> {
        match KeptTemplate::latest(&self.revisions) {
            Some(kept) => revision::found_tls_mode(&kept),
            None => tls_mode(&self.own_deployment()?.spec.as_ref()?.template),
        }
    }
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
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
