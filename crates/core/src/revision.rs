//! The pod template in force: pods change only when the declaration does.
//!
//! The template is kept in a ControllerRevision together with what it was built from. While that is the same, the
//! kept template is the wanted one, whatever today's builder would make of it.

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use memcached_api::label;
use memcached_api::spec::{HighAvailability, MemcachedSpec, Monitoring, Security};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::build::{owner, pod::build_template};
use crate::secret::hex;
use crate::validate::Validated;

/// How many revisions are kept: the one in force and some to look back at.
pub const KEPT: usize = 3;

/// What a template was built from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Inputs {
    /// A hash over the parts of the declaration that shape pods.
    pub declaration: String,
    /// The restart trigger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trigger: Option<String>,
    /// The hash over the mounted Secrets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secrets: Option<String>,
}

/// What a ControllerRevision of ours holds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kept {
    pub inputs: Inputs,
    pub template: PodTemplateSpec,
}

/// The template to use, and what to do about its revision.
#[derive(Debug, Clone, PartialEq)]
pub struct InForce {
    pub template: PodTemplateSpec,
    /// To be written before the template is used; none if it is kept already.
    pub new_revision: Option<ControllerRevision>,
    /// Today's builder would make another template of the same declaration.
    pub newer_defaults: bool,
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
    let latest = revisions.iter().max_by_key(|revision| revision.revision);
    let next = latest.map_or(1, |revision| revision.revision + 1);
    let kept = latest.and_then(read);
    let secrets = match (secret_hash, &kept) {
        (Some(hash), _) => Some(hash.to_owned()),
        // A Secret that has gone missing restarts nothing: its pods still run with what they have.
        (None, Some(kept)) if !crate::secret::mounted(cache).is_empty() => kept.inputs.secrets.clone(),
        (None, _) => None,
    };
    let inputs = Inputs { declaration: declaration_hash(cache), trigger: cache.restart_trigger.clone(), secrets };
    let built = build_template(cache, inputs.secrets.as_deref());
    let write = |template: PodTemplateSpec, newer_defaults| {
        let kept = Kept { inputs: inputs.clone(), template: template.clone() };
        InForce { template, new_revision: Some(build_revision(cache, &kept, next)), newer_defaults }
    };
    let Some(kept) = kept else {
        return match deployed.and_then(deployed_template) {
            Some(template) => {
                let differs = !is_covered(&built, &template);
                write(template, differs)
            }
            None => write(built, false),
        };
    };
    if kept.inputs.declaration != inputs.declaration || kept.inputs.trigger != inputs.trigger {
        return write(built, false);
    }
    let mut template = kept.template;
    let same_secrets = kept.inputs.secrets == inputs.secrets;
    set_secret_hash(&mut template, inputs.secrets.as_deref());
    let newer_defaults = !is_covered(&built, &template);
    if same_secrets {
        return InForce { template, new_revision: None, newer_defaults };
    }
    write(template, newer_defaults)
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

/// A hash over the parts of the declaration that shape pods, with defaults filled in: writing down a default, or
/// a webhook doing it, changes nothing.
fn declaration_hash(cache: &Validated) -> String {
    let shape = shape(cache);
    hex(&Sha256::digest(shape.to_string()))
}

fn shape(cache: &Validated) -> Value {
    let mut spec = cache.spec.clone();
    spec.image = Some(cache.image.clone());
    spec.memcached = Some(cache.server.clone());
    // Named one by one, so that a new field has to be thought about here.
    let MemcachedSpec {
        replicas: _,
        autoscaling: _,
        service: _,
        workload: _,
        paused: _,
        version: _,
        warm_restart: _,
        image,
        resources,
        memcached,
        extstore,
        high_availability,
        monitoring,
        security,
        node_selector,
        tolerations,
        affinity,
        priority_class_name,
        service_account_name,
        image_pull_secrets,
        image_pull_policy,
        pod_labels,
        pod_annotations,
        env,
        extra_volumes,
        extra_volume_mounts,
    } = spec;
    serde_json::json!([
        [image, resources, memcached, extstore],
        [availability_shape(high_availability), monitoring_shape(cache, monitoring), security_shape(cache, security)],
        [node_selector, tolerations, affinity, priority_class_name, service_account_name],
        [image_pull_secrets, image_pull_policy, pod_labels, pod_annotations],
        [env, extra_volumes, extra_volume_mounts],
    ])
}

fn availability_shape(availability: Option<HighAvailability>) -> Value {
    let Some(HighAvailability {
        anti_affinity_preset,
        topology_spread_constraints,
        pod_disruption_budget: _,
        graceful_shutdown,
    }) = availability
    else {
        return Value::Null;
    };
    let shutdown = graceful_shutdown.filter(|shutdown| shutdown.enabled);
    serde_json::json!([anti_affinity_preset, topology_spread_constraints, shutdown])
}

fn monitoring_shape(cache: &Validated, monitoring: Option<Monitoring>) -> Value {
    let Some(Monitoring { enabled: true, exporter_image: _, exporter_resources, service_monitor: _ }) = monitoring
    else {
        return Value::Null;
    };
    serde_json::json!([cache.exporter_image(), exporter_resources])
}

fn security_shape(cache: &Validated, security: Option<Security>) -> Value {
    let Security { pod_security_context, container_security_context, sasl: _, tls: _, network_policy: _ } =
        security.unwrap_or_default();
    let sasl = cache.sasl.as_ref().map(|sasl| (sasl.mode, &sasl.secret));
    let tls = cache.tls.as_ref().map(|tls| (tls.mode, &tls.secret, tls.client_certificates));
    serde_json::json!([pod_security_context, container_security_context, sasl, tls])
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
    }
    Some(template)
}

/// Whether everything that is built is there as built; the API server may have added its defaults.
fn is_covered(built: &PodTemplateSpec, there: &PodTemplateSpec) -> bool {
    match (serde_json::to_value(built), serde_json::to_value(there)) {
        (Ok(built), Ok(there)) => covers(&there, &built),
        _ => false,
    }
}

fn covers(there: &Value, wanted: &Value) -> bool {
    match (there, wanted) {
        (Value::Object(there), Value::Object(wanted)) => {
            wanted.iter().all(|(key, value)| there.get(key).is_some_and(|there| covers(there, value)))
        }
        (Value::Array(there), Value::Array(wanted)) => {
            there.len() == wanted.len() && there.iter().zip(wanted).all(|(there, wanted)| covers(there, wanted))
        }
        _ => there == wanted,
    }
}

#[cfg(test)]
#[path = "revision_tests.rs"]
mod tests;
