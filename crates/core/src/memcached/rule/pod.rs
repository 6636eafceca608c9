//! What users add to the pods: the rules are Kubernetes', here they meet our fields.

use memcached_api::label;
use memcached_api::memcached::spec::MemcachedSpec;
use operator_model::image;
use operator_model::metadata::{check_annotations, check_labels, check_name};
use operator_model::pod::affinity::check_affinity;
use operator_model::pod::env::check_env;
use operator_model::pod::resources::check_resources;
use operator_model::pod::scheduling::{check_tolerations, check_topology_spread};
use operator_model::pod::security_context::{
    check_pod_security_context, check_profile_annotations, check_security_context,
};
use operator_model::pod::volume::{check_volume_mounts, check_volumes};
use operator_model::pod::{Layout, check_pod_labels};
use operator_model::violation::{FieldErrors, Violation};

use crate::memcached::build::{DIRECTORIES, VOLUMES};
use crate::memcached::rollout::REVISION;

/// What the pods have already.
const LAYOUT: Layout<'_> = Layout {
    containers: &["memcached", "exporter"],
    volumes: &VOLUMES,
    mount_paths: &DIRECTORIES,
    selector_labels: &[
        label::NAME,
        label::INSTANCE,
        label::MANAGED_BY,
        REVISION,
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    ],
};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut errors = FieldErrors::at("spec", &mut violations);
    check_contexts(&mut errors, spec);
    check_amounts(&mut errors, spec);
    check_placement(&mut errors, spec);
    check_metadata(&mut errors, spec);
    check_references(&mut errors, spec);
    check_env(&mut errors.field("env"), &spec.env, LAYOUT.containers);
    check_volumes(&mut errors.field("extraVolumes"), &spec.extra_volumes, &LAYOUT);
    let volumes = ("spec.extraVolumes", spec.extra_volumes.as_slice());
    check_volume_mounts(&mut errors.field("extraVolumeMounts"), &spec.extra_volume_mounts, volumes, &LAYOUT);
    violations
}

fn check_contexts(errors: &mut FieldErrors<'_>, spec: &MemcachedSpec) {
    let Some(security) = &spec.security else { return };
    if let Some(context) = &security.pod_security_context {
        check_pod_security_context(&mut errors.field("security.podSecurityContext"), context);
    }
    if let Some(context) = &security.container_security_context {
        check_security_context(&mut errors.field("security.containerSecurityContext"), context);
    }
}

fn check_amounts(errors: &mut FieldErrors<'_>, spec: &MemcachedSpec) {
    if let Some(resources) = &spec.resources {
        check_resources(&mut errors.field("resources"), resources);
    }
    if let Some(monitoring) = spec.monitoring.as_ref().filter(|monitoring| monitoring.enabled)
        && let Some(resources) = &monitoring.exporter_resources
    {
        check_resources(&mut errors.field("monitoring.exporterResources"), resources);
    }
}

fn check_placement(errors: &mut FieldErrors<'_>, spec: &MemcachedSpec) {
    check_tolerations(&mut errors.field("tolerations"), &spec.tolerations);
    if let Some(availability) = &spec.high_availability {
        let mut errors = errors.field("highAvailability.topologySpreadConstraints");
        check_topology_spread(&mut errors, &availability.topology_spread_constraints, &LAYOUT);
    }
    if let Some(affinity) = &spec.affinity {
        check_affinity(&mut errors.field("affinity"), affinity);
    }
}

fn check_metadata(errors: &mut FieldErrors<'_>, spec: &MemcachedSpec) {
    check_pod_labels(&mut errors.field("podLabels"), &spec.pod_labels, &LAYOUT);
    check_annotations(&mut errors.field("podAnnotations"), &spec.pod_annotations);
    check_profile_annotations(&mut errors.field("podAnnotations"), &spec.pod_annotations, "spec.security");
    check_labels(&mut errors.field("nodeSelector"), &spec.node_selector);
    if let Some(service) = &spec.service {
        check_annotations(&mut errors.field("service.annotations"), &service.annotations);
    }
}

/// Objects that the pods refer to, and when their images are pulled.
fn check_references(errors: &mut FieldErrors<'_>, spec: &MemcachedSpec) {
    let names = [
        ("priorityClassName", spec.priority_class_name.as_deref()),
        ("serviceAccountName", spec.service_account_name.as_deref()),
    ];
    for (field, name) in names {
        if let Some(name) = name.filter(|name| !name.is_empty()) {
            check_name(&mut errors.field(field), name);
        }
    }
    for (index, secret) in spec.image_pull_secrets.iter().enumerate() {
        check_name(&mut errors.field("imagePullSecrets").index(index).field("name"), &secret.name);
    }
    let policy = spec.image_pull_policy.as_deref();
    errors.field("imagePullPolicy").require_one_of(policy, &image::PULL_POLICIES);
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
