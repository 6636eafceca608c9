//! What people add to the pods: labels, variables, names of other objects.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource, ResourceFieldSelector};
use memcached_api::label;
use memcached_api::memcached::spec::MemcachedSpec;

use super::finding::{Findings, Violation};
use super::syntax::{check_annotations, check_labels};
use operator_model::name::{NAME_RULE, is_data_key, is_key, is_object_name, is_variable};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut findings = Findings::at("spec", &mut violations);
    check_labels(&mut findings.below("podLabels"), &spec.pod_labels);
    for key in [label::NAME, label::INSTANCE, label::MANAGED_BY] {
        let message = format!("{key:?} is how the operator finds the pods: remove it");
        findings.below("podLabels").require(!spec.pod_labels.contains_key(key), message);
    }
    check_annotations(&mut findings.below("podAnnotations"), &spec.pod_annotations);
    check_profiles(&mut findings.below("podAnnotations"), &spec.pod_annotations);
    check_labels(&mut findings.below("nodeSelector"), &spec.node_selector);
    if let Some(service) = &spec.service {
        check_annotations(&mut findings.below("service.annotations"), &service.annotations);
    }
    let names = [
        ("priorityClassName", spec.priority_class_name.as_deref()),
        ("serviceAccountName", spec.service_account_name.as_deref()),
    ];
    for (field, name) in names {
        let name = name.unwrap_or_default();
        findings.below(field).require(name.is_empty() || is_object_name(name), format!("{name:?} {NAME_RULE}"));
    }
    for (index, secret) in spec.image_pull_secrets.iter().enumerate() {
        let message = format!("{:?} {NAME_RULE}", secret.name);
        findings.below("imagePullSecrets").item(index).below("name").require(is_object_name(&secret.name), message);
    }
    let policy = spec.image_pull_policy.as_deref();
    findings.below("imagePullPolicy").require_one_of(policy, &["Always", "IfNotPresent", "Never"]);
    check_variables(&mut findings.below("env"), &spec.env);
    violations
}

/// Annotations that Kubernetes reads as security contexts of old: they would contradict those of today.
fn check_profiles(findings: &mut Findings<'_>, annotations: &BTreeMap<String, String>) {
    const OLD: [&str; 3] = [
        "seccomp.security.alpha.kubernetes.io/",
        "container.seccomp.security.alpha.kubernetes.io/",
        "container.apparmor.security.beta.kubernetes.io/",
    ];
    for key in annotations.keys().filter(|key| OLD.iter().any(|old| key.starts_with(old))) {
        findings.refuse(format!("{key:?} is out of use: say it in spec.security"));
    }
}

fn check_variables(findings: &mut Findings<'_>, env: &[EnvVar]) {
    for (index, variable) in env.iter().enumerate() {
        let mut findings = findings.item(index);
        let message = format!("{:?} cannot be the name of a variable", variable.name);
        findings.below("name").require(is_variable(&variable.name), message);
        let is_repeated = env.iter().take(index).any(|other| other.name == variable.name);
        findings.below("name").require(!is_repeated, format!("{:?} is given twice", variable.name));
        if let Some(source) = &variable.value_from {
            let has_value = variable.value.as_ref().is_some_and(|value| !value.is_empty());
            findings.below("valueFrom").require(!has_value, "not together with value");
            check_source(&mut findings.below("valueFrom"), source);
        }
    }
}

fn check_source(findings: &mut Findings<'_>, source: &EnvVarSource) {
    let EnvVarSource { config_map_key_ref, secret_key_ref, field_ref, resource_field_ref, file_key_ref } = source;
    let given = [
        config_map_key_ref.is_some(),
        secret_key_ref.is_some(),
        field_ref.is_some(),
        resource_field_ref.is_some(),
        file_key_ref.is_some(),
    ];
    findings.require(given.iter().filter(|is_given| **is_given).count() == 1, "give exactly one source");
    let maps = config_map_key_ref.iter().map(|map| ("configMapKeyRef", &map.name, &map.key));
    let secrets = secret_key_ref.iter().map(|secret| ("secretKeyRef", &secret.name, &secret.key));
    for (field, name, key) in maps.chain(secrets) {
        findings.below(field).below("name").require(is_object_name(name), format!("{name:?} {NAME_RULE}"));
        findings.below(field).below("key").require(is_data_key(key), format!("{key:?} cannot be a key"));
    }
    if let Some(field) = field_ref {
        let is_v1 = field.api_version.as_deref().is_none_or(|version| version == "v1");
        findings.below("fieldRef.apiVersion").require(is_v1, "only v1 is known");
        let message = format!("{:?} is no field that a variable can have", field.field_path);
        findings.below("fieldRef.fieldPath").require(is_pod_field(&field.field_path), message);
    }
    if let Some(resource) = resource_field_ref {
        check_resource(&mut findings.below("resourceFieldRef"), resource, false);
    }
    // Needs a volume that the container does not mount, and few clusters know it.
    findings
        .below("fileKeyRef")
        .require(file_key_ref.is_none(), "is not supported: use secretKeyRef or configMapKeyRef");
}

/// An amount of a container; a file has to say of which.
pub fn check_resource(findings: &mut Findings<'_>, selector: &ResourceFieldSelector, is_named: bool) {
    let ResourceFieldSelector { container_name, divisor, resource } = selector;
    let kind = ["limits.", "requests."].iter().find_map(|kind| resource.strip_prefix(kind)).unwrap_or_default();
    let is_known = ["cpu", "memory", "ephemeral-storage"].contains(&kind);
    findings.below("resource").require(is_known, format!("{resource:?} is no amount of a container"));
    let container = container_name.as_deref().unwrap_or(if is_named { "" } else { "memcached" });
    let is_ours = ["memcached", "exporter"].contains(&container);
    findings.below("containerName").require(is_ours, format!("there is no container {container:?}"));
    let is_unit = divisor.as_ref().is_none_or(|divisor| is_divisor(kind, &divisor.0));
    findings.below("divisor").require(is_unit, "give 1, or a unit such as 1Mi");
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
