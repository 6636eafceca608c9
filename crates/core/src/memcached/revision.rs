//! The pod template in force: pods change only when the declaration does.
//!
//! The template is kept in a ControllerRevision together with what it was built from. While that is the same, the
//! kept template is the wanted one, whatever today's builder would make of it.

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use memcached_api::label;
use memcached_api::memcached::spec::TlsMode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::memcached::build::{owner, pod::build_template};
use crate::memcached::observed::tls_mode;
use crate::memcached::secret::hex;
use crate::memcached::shape::Shape;
use crate::memcached::validate::Validated;
use operator_model::difference::differences;

/// How many revisions are kept: the one in force and some to look back at.
pub const KEPT: usize = 3;

/// What a template was built from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inputs {
    /// The parts of the declaration that shape pods.
    pub shape: Shape,
    /// The restart trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The hash over the mounted Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<String>,
    /// The TLS mode that was found running, and is in force because no other one is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_tls_mode: Option<TlsMode>,
}

/// What a ControllerRevision of ours holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub inputs: Inputs,
    pub template: PodTemplateSpec,
    /// The template was found, with the API server's defaults in it, and not built.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found: bool,
}

impl Kept {
    /// The TLS mode that was found running and not built by us.
    pub fn found_tls_mode(&self) -> Option<TlsMode> {
        self.inputs.found_tls_mode.or_else(|| tls_mode(&self.template).filter(|_| self.found))
    }

    /// Whether another TLS mode is declared now than the one that was found.
    fn has_other_tls_mode(&self, cache: &Validated) -> bool {
        let mode = cache.tls.as_ref().map(|tls| tls.mode);
        self.found_tls_mode().zip(mode).is_some_and(|(found, mode)| found != mode)
    }

    /// In what today's builder makes another template of the same declaration.
    fn differences_to(&self, built: &PodTemplateSpec) -> Vec<String> {
        match (serde_json::to_value(&self.template), serde_json::to_value(built)) {
            (Ok(there), Ok(built)) => differences(&there, &built, self.found),
            _ => Vec::new(),
        }
    }
}

/// The template to use, and what to do about its revision.
#[derive(Debug, Clone, PartialEq)]
pub struct InForce {
    pub template: PodTemplateSpec,
    /// To be written before the template is used; none if it is kept already.
    pub new_revision: Option<ControllerRevision>,
    /// In what today's builder would make another template of the same declaration.
    pub newer_defaults: Vec<String>,
}

/// Decides which template is in force.
///
/// `deployed` is the workload as it is, if the status says that it reflects this very declaration: without any
/// revision (another operator's cache) its template is taken as it stands.
pub fn decide(
    cache: &Validated,
    secret_hash: Option<&str>,
    revisions: &[ControllerRevision],
    deployed: Option<&Deployment>,
) -> InForce {
    let next = latest(revisions).map_or(1, |revision| revision.revision + 1);
    let kept = in_force(revisions);
    let secrets = match (secret_hash, &kept) {
        (Some(hash), _) => Some(hash.to_owned()),
        // A Secret that has gone missing restarts nothing: its pods still run with what they have.
        (None, Some(kept)) if !crate::memcached::secret::mounted(cache).is_empty() => kept.inputs.secrets.clone(),
        (None, _) => None,
    };
    let found_tls_mode = cache.tls.as_ref().and_then(|tls| tls.found);
    let trigger = cache.restart_trigger.clone();
    let inputs = Inputs { shape: Shape::of(cache), trigger, secrets, found_tls_mode };
    let built = build_template(cache, inputs.secrets.as_deref());
    let write = |kept: Kept| {
        let newer_defaults = kept.differences_to(&built);
        let revision = build_revision(cache, &kept, next);
        InForce { template: kept.template, new_revision: Some(revision), newer_defaults }
    };
    let fresh = || Kept { inputs: inputs.clone(), template: built.clone(), found: false };
    let Some(mut kept) = kept else {
        let found = deployed.and_then(deployed_template);
        return write(found.map_or_else(fresh, |template| Kept { template, found: true, ..fresh() }));
    };
    let is_same = kept.inputs.shape.is_same(&inputs.shape) && kept.inputs.trigger == inputs.trigger;
    if !is_same || kept.has_other_tls_mode(cache) {
        return write(fresh());
    }
    if kept.inputs.secrets == inputs.secrets {
        let newer_defaults = kept.differences_to(&built);
        return InForce { template: kept.template, new_revision: None, newer_defaults };
    }
    set_secret_hash(&mut kept.template, inputs.secrets.as_deref());
    kept.inputs.secrets.clone_from(&inputs.secrets);
    write(kept)
}

fn latest(revisions: &[ControllerRevision]) -> Option<&ControllerRevision> {
    revisions.iter().max_by_key(|revision| revision.revision)
}

/// The template in force with what it was built from, if one is kept.
pub fn in_force(revisions: &[ControllerRevision]) -> Option<Kept> {
    latest(revisions).and_then(read)
}

/// The revisions that are not needed any more, oldest first.
pub fn outdated(revisions: &[ControllerRevision]) -> Vec<&ControllerRevision> {
    let mut sorted: Vec<&ControllerRevision> = revisions.iter().collect();
    sorted.sort_by_key(|revision| revision.revision);
    sorted.truncate(sorted.len().saturating_sub(KEPT));
    sorted
}

fn read(revision: &ControllerRevision) -> Option<Kept> {
    serde_json::from_value(revision.data.as_ref()?.0.clone()).ok()
}

/// A revision's data cannot be changed, so every content has a name of its own.
fn build_revision(cache: &Validated, kept: &Kept, revision: i64) -> ControllerRevision {
    let data = serde_json::to_value(kept).unwrap_or(Value::Null);
    let mut hash = Sha256::new();
    hash.update(data.to_string());
    hash.update(revision.to_le_bytes());
    let suffix: String = hex(&hash.finalize()).chars().take(10).collect();
    // None of the selector's labels: a StatefulSet would adopt any revision that carries them.
    let labels = [(label::TEMPLATE_OF, cache.name.as_str()), (label::MANAGED_BY, label::MANAGED_BY_VALUE)];
    ControllerRevision {
        metadata: ObjectMeta {
            name: Some(format!("{}-{suffix}", cache.name)),
            namespace: Some(cache.namespace.clone()),
            labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
            owner_references: Some(vec![owner(cache)]),
            ..ObjectMeta::default()
        },
        data: Some(RawExtension(data)),
        revision,
    }
}

fn set_secret_hash(template: &mut PodTemplateSpec, hash: Option<&str>) {
    let metadata = template.metadata.get_or_insert_with(ObjectMeta::default);
    match hash {
        Some(hash) => {
            let annotations = metadata.annotations.get_or_insert_default();
            annotations.insert(label::SECRET_HASH.into(), hash.into());
        }
        None => {
            if let Some(annotations) = metadata.annotations.as_mut() {
                annotations.remove(label::SECRET_HASH);
            }
        }
    }
}

fn deployed_template(deployment: &Deployment) -> Option<PodTemplateSpec> {
    let mut template = deployment.spec.as_ref()?.template.clone();
    if let Some(metadata) = template.metadata.as_mut() {
        metadata.creation_timestamp = None;
        // Somebody else's wish, and it must stay theirs: the next restart would be undone.
        if let Some(annotations) = metadata.annotations.as_mut() {
            annotations.remove("kubectl.kubernetes.io/restartedAt");
        }
    }
    Some(template)
}

#[cfg(test)]
#[path = "revision_tests.rs"]
mod tests;
