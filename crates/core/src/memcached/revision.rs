//! The pod template in force, by the inputs of a `Memcached`; `operator_model::template` has the algorithm.

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use memcached_api::label;
use memcached_api::memcached::spec::{TlsMode, WorkloadType};
use operator_model::template::{self, KeptTemplate, PodFields, TemplateInputs};
use serde::{Deserialize, Serialize};

use crate::memcached::build::{owner, pod::build_template};
use crate::memcached::observed::tls_mode;
use crate::memcached::rollout;
use crate::memcached::rollout_fields::rollout_fields;
use crate::memcached::secret;
use crate::memcached::validate::Validated;

/// What a template was built from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inputs {
    /// The fields of the spec that decide about pods.
    #[serde(rename = "shape")]
    pub fields: PodFields,
    /// The restart trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The hash over the mounted Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<String>,
    /// The TLS mode that was found running, and is in force because no other one is declared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_tls_mode: Option<TlsMode>,
    /// What runs the pods. Before there was a choice, that was a Deployment.
    #[serde(default, skip_serializing_if = "is_deployment")]
    pub workload: WorkloadType,
    /// The TLS mode that is to be in force; the template itself says which one is.
    #[serde(skip)]
    pub tls_mode: Option<TlsMode>,
}

impl TemplateInputs for Inputs {
    fn is_in_force(kept: &KeptTemplate<Self>, now: &Self) -> bool {
        let has_other_tls_mode = found_tls_mode(kept).zip(now.tls_mode).is_some_and(|(found, mode)| found != mode);
        kept.inputs.workload == now.workload
            && kept.inputs.fields.is_same(&now.fields)
            && kept.inputs.trigger == now.trigger
            && !has_other_tls_mode
    }

    fn refresh(kept: &mut KeptTemplate<Self>, now: &Self) -> bool {
        if kept.inputs.secrets == now.secrets {
            return false;
        }
        set_secret_hash(&mut kept.template, now.secrets.as_deref());
        kept.inputs.secrets.clone_from(&now.secrets);
        true
    }

    /// An upgrade of the operator must not turn the next change that is made in place into new pods.
    fn edit(kept: &KeptTemplate<Self>, now: &Self, built: &PodTemplateSpec) -> Option<PodTemplateSpec> {
        let Self { fields, trigger, workload, .. } = &kept.inputs;
        let changed: Vec<&str> = fields.changes(&now.fields).collect();
        let is_in_place = *workload == WorkloadType::StatefulSet
            && now.workload == WorkloadType::StatefulSet
            && *trigger == now.trigger
            && changed.iter().all(|path| IN_PLACE.contains(path));
        is_in_place.then(|| rollout::edited(&kept.template, built, &changed))
    }
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_deployment(workload: &WorkloadType) -> bool {
    *workload == WorkloadType::Deployment
}

/// Fields that pods of a StatefulSet take in place.
const IN_PLACE: [&str; 9] = [
    "image",
    "imagePullPolicy",
    "memcached.maxConnections",
    "memcached.threads",
    "memcached.maxItemSize",
    "memcached.verbosity",
    "memcached.extraArgs",
    "podLabels",
    "podAnnotations",
];

/// The TLS mode that was found running and not built by us.
pub fn found_tls_mode(kept: &KeptTemplate<Inputs>) -> Option<TlsMode> {
    kept.inputs.found_tls_mode.or_else(|| tls_mode(&kept.template).filter(|_| kept.found))
}

/// The template to use, and what to do about its revision.
#[derive(Debug, Clone, PartialEq)]
pub struct InForce {
    pub template: PodTemplateSpec,
    /// To be written before the template is used; none if it is kept already.
    pub new_revision: Option<ControllerRevision>,
    /// In what today's builder would make another template of the same spec.
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
    let kept: Option<KeptTemplate<Inputs>> = KeptTemplate::latest(revisions);
    let secrets = match (secret_hash, &kept) {
        // The agent takes them live: they are no part of the template.
        _ if cache.workload == WorkloadType::StatefulSet => None,
        (Some(hash), _) => Some(hash.to_owned()),
        // A Secret that has gone missing restarts nothing: its pods still run with what they have.
        (None, Some(kept)) if !secret::mounted(cache).is_empty() => kept.inputs.secrets.clone(),
        (None, _) => None,
    };
    let now = Inputs {
        fields: rollout_fields(cache),
        trigger: cache.restart_trigger.clone(),
        found_tls_mode: cache.tls.as_ref().and_then(|tls| tls.found),
        tls_mode: cache.tls.as_ref().map(|tls| tls.mode),
        workload: cache.workload,
        secrets,
    };
    let built = build_template(cache, now.secrets.as_deref());
    let decided = template::decide(kept, deployed.and_then(deployed_template), now, &built);
    let new_revision = decided.new_revision.map(|kept| build_revision(cache, &kept, revisions));
    InForce { template: decided.template, new_revision, newer_defaults: decided.newer_defaults }
}

/// The revision that keeps a template.
fn build_revision(
    cache: &Validated,
    kept: &KeptTemplate<Inputs>,
    revisions: &[ControllerRevision],
) -> ControllerRevision {
    // None of the selector's labels: a StatefulSet would adopt any revision that carries them.
    let labels = [(label::TEMPLATE_OF, cache.name.as_str()), (label::MANAGED_BY, label::MANAGED_BY_VALUE)];
    let metadata = ObjectMeta {
        name: Some(cache.name.clone()),
        namespace: Some(cache.namespace.clone()),
        labels: Some(labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()),
        owner_references: Some(vec![owner(cache)]),
        ..ObjectMeta::default()
    };
    kept.to_revision(metadata, revisions)
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
        // Somebody else's restart, and it must stay theirs: the next restart would be undone.
        if let Some(annotations) = metadata.annotations.as_mut() {
            annotations.remove("kubectl.kubernetes.io/restartedAt");
        }
    }
    Some(template)
}

#[cfg(test)]
#[path = "revision_tests.rs"]
mod tests;
