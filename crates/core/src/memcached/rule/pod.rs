//! What people add to the pods: labels, variables, names of other objects.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ResourceFieldSelector};
use memcached_api::label;
use memcached_api::memcached::spec::MemcachedSpec;

use super::syntax::{check_annotations, check_labels};
use operator_model::name::{NAME_RULE, is_data_key, is_key, is_object_name, is_variable};
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut errors = FieldErrors::at("spec", &mut violations);
    check_labels(&mut errors.field("podLabels"), &spec.pod_labels);
    for key in [label::NAME, label::INSTANCE, label::MANAGED_BY] {
        let message = format!("{key:?} is how the operator finds the pods: remove it");
        errors.field("podLabels").require(!spec.pod_labels.contains_key(key), message);
    }
    check_annotations(&mut errors.field("podAnnotations"), &spec.pod_annotations);
    check_profiles(&mut errors.field("podAnnotations"), &spec.pod_annotations);
    check_labels(&mut errors.field("nodeSelector"), &spec.node_selector);
    if let Some(service) = &spec.service {
        check_annotations(&mut errors.field("service.annotations"), &service.annotations);
    }
    let names = [
        ("priorityClassName", spec.priority_class_name.as_deref()),
        ("serviceAccountName", spec.service_account_name.as_deref()),
    ];
    for (field, name) in names {
        let name = name.unwrap_or_default();
        errors.field(field).require(name.is_empty() || is_object_name(name), format!("{name:?} {NAME_RULE}"));
    }
    for (index, secret) in spec.image_pull_secrets.iter().enumerate() {
        let message = format!("{:?} {NAME_RULE}", secret.name);
        errors.field("imagePullSecrets").index(index).field("name").require(is_object_name(&secret.name), message);
    }
    let policy = spec.image_pull_policy.as_deref();
    errors.field("imagePullPolicy").require_one_of(policy, &["Always", "IfNotPresent", "Never"]);
    check_variables(&mut errors.field("env"), &spec.env);
    violations
}

/// Annotations that Kubernetes reads as security contexts of old: they would contradict those of today.
fn check_profiles(errors: &mut FieldErrors<'_>, annotations: &BTreeMap<String, String>) {
    const OLD: [&str; 3] = [
        "seccomp.security.alpha.kubernetes.io/",
        "container.seccomp.security.alpha.kubernetes.io/",
        "container.apparmor.security.beta.kubernetes.io/",
    ];
    for key in annotations.keys().filter(|key| OLD.iter().any(|old| key.starts_with(old))) {
        errors.invalid(format!("{key:?} is out of use: say it in spec.security"));
    }
}

fn check_variables(errors: &mut FieldErrors<'_>, env: &[EnvVar]) {
    for (index, variable) in env.iter().enumerate() {
        let mut errors = errors.index(index);
        let message = format!("{:?} cannot be the name of a variable", variable.name);
        errors.field("name").require(is_variable(&variable.name), message);
        let is_repeated = env.iter().take(index).any(|other| other.name == variable.name);
        errors.field("name").require(!is_repeated, format!("{:?} is given twice", variable.name));
        if let Some(source) = &variable.value_from {
            let has_value = variable.value.as_ref().is_some_and(|value| !value.is_empty());
            errors.field("valueFrom").require(!has_value, "not together with value");
            check_source(&mut errors.field("valueFrom"), source);
        }
    }
}

fn check_source(errors: &mut FieldErrors<'_>, source: &EnvVarSource) {
    let EnvVarSource { config_map_key_ref, secret_key_ref, field_ref, resource_field_ref, file_key_ref } = source;
    let given = [
        config_map_key_ref.is_some(),
        secret_key_ref.is_some(),
        field_ref.is_some(),
        resource_field_ref.is_some(),
        file_key_ref.is_some(),
    ];
    errors.require(given.iter().filter(|is_given| **is_given).count() == 1, "give exactly one source");
    let maps = config_map_key_ref.iter().map(|map| ("configMapKeyRef", &map.name, &map.key));
    let secrets = secret_key_ref.iter().map(|secret| ("secretKeyRef", &secret.name, &secret.key));
    for (field, name, key) in maps.chain(secrets) {
        errors.field(field).field("name").require(is_object_name(name), format!("{name:?} {NAME_RULE}"));
        errors.field(field).field("key").require(is_data_key(key), format!("{key:?} cannot be a key"));
    }
    if let Some(field) = field_ref {
        let is_v1 = field.api_version.as_deref().is_none_or(|version| version == "v1");
        errors.field("fieldRef.apiVersion").require(is_v1, "only v1 is known");
        let message = format!("{:?} is no field that a variable can have", field.field_path);
        errors.field("fieldRef.fieldPath").require(is_pod_field(&field.field_path), message);
    }
    if let Some(resource) = resource_field_ref {
        check_resource(&mut errors.field("resourceFieldRef"), resource, false);
    }
    // Needs a volume that the container does not mount, and few clusters know it.
    errors.field("fileKeyRef").require(file_key_ref.is_none(), "is not supported: use secretKeyRef or configMapKeyRef");
}

/// An amount of a container; a file has to say of which.
pub fn check_resource(errors: &mut FieldErrors<'_>, selector: &ResourceFieldSelector, is_named: bool) {
    let ResourceFieldSelector { container_name, divisor, resource } = selector;
    let kind = ["limits.", "requests."].iter().find_map(|kind| resource.strip_prefix(kind)).unwrap_or_default();
    let is_known = ["cpu", "memory", "ephemeral-storage"].contains(&kind);
    errors.field("resource").require(is_known, format!("{resource:?} is no amount of a container"));
    let container = container_name.as_deref().unwrap_or(if is_named { "" } else { "memcached" });
    let is_ours = ["memcached", "exporter"].contains(&container);
    errors.field("containerName").require(is_ours, format!("there is no container {container:?}"));
    let is_unit = divisor.as_ref().is_none_or(|divisor| is_divisor(kind, &divisor.0));
    errors.field("divisor").require(is_unit, "give 1, or a unit such as 1Mi");
}

fn is_divisor(resource: &str, divisor: &str) -> bool {
    match resource {
        "cpu" => ["0", "1", "1m"].contains(&divisor),
        _ => {
            ["0", "1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei"].contains(&divisor)
        }
    }
}

fn is_pod_field(path: &str) -> bool {
    const FIELDS: [&str; 9] = [
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.serviceAccountName",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    ];
    let subscript = |name: &str| path.strip_prefix(name)?.strip_prefix("['")?.strip_suffix("']");
    FIELDS.contains(&path)
        || subscript("metadata.labels").is_some_and(is_key)
        || subscript("metadata.annotations").is_some_and(|key| is_key(&key.to_ascii_lowercase()))
}

#[cfg(test)]
#[path = "pod_tests.rs"]
mod tests;
