//! Security contexts as Kubernetes takes them.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::{AppArmorProfile, PodSecurityContext, SeccompProfile, SecurityContext};

use crate::name::is_relative;
use crate::violation::FieldErrors;

/// The greatest user or group there may be.
const MOST: i64 = i32::MAX as i64;

/// The security context of a pod on Linux.
pub fn check_pod_security_context(errors: &mut FieldErrors<'_>, context: &PodSecurityContext) {
    for (field, id) in
        [("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group), ("fsGroup", context.fs_group)]
    {
        errors.field(field).require_within(id, 0, MOST);
    }
    for id in context.supplemental_groups.iter().flatten() {
        errors.field("supplementalGroups").require_within(Some(*id), 0, MOST);
    }
    let change = context.fs_group_change_policy.as_deref();
    errors.field("fsGroupChangePolicy").require_one_of(change, &["Always", "OnRootMismatch"]);
    let groups = context.supplemental_groups_policy.as_deref();
    errors.field("supplementalGroupsPolicy").require_one_of(groups, &["Merge", "Strict"]);
    let labels = context.se_linux_change_policy.as_deref();
    errors.field("seLinuxChangePolicy").require_one_of(labels, &["MountOption", "Recursive"]);
    let mut sysctls = BTreeSet::new();
    for (index, sysctl) in context.sysctls.iter().flatten().enumerate() {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_' | '/');
        let is_good = !sysctl.name.is_empty() && sysctl.name.chars().all(is_word);
        let message = format!("{:?} cannot be the name of a sysctl", sysctl.name);
        errors.field("sysctls").index(index).field("name").require(is_good, message);
        let is_first = sysctls.insert(sysctl.name.as_str());
        let message = format!("{:?} is given twice", sysctl.name);
        errors.field("sysctls").index(index).field("name").require(is_first, message);
    }
    errors.field("windowsOptions").require(context.windows_options.is_none(), "the pods run on Linux");
    check_seccomp(&mut errors.field("seccompProfile"), context.seccomp_profile.as_ref());
    check_app_armor(&mut errors.field("appArmorProfile"), context.app_armor_profile.as_ref());
}

/// The security context of a container on Linux.
pub fn check_security_context(errors: &mut FieldErrors<'_>, context: &SecurityContext) {
    for (field, id) in [("runAsUser", context.run_as_user), ("runAsGroup", context.run_as_group)] {
        errors.field(field).require_within(id, 0, MOST);
    }
    let added = context.capabilities.as_ref().and_then(|capabilities| capabilities.add.clone()).unwrap_or_default();
    let needs_escalation =
        context.privileged == Some(true) || added.iter().any(|name| name == "SYS_ADMIN" || name == "CAP_SYS_ADMIN");
    let message = "false does not go with privileged or the capability SYS_ADMIN";
    let is_good = context.allow_privilege_escalation != Some(false) || !needs_escalation;
    errors.field("allowPrivilegeEscalation").require(is_good, message);
    // Unmasked needs a user namespace, which the pods have none of.
    errors.field("procMount").require_one_of(context.proc_mount.as_deref(), &["Default"]);
    errors.field("windowsOptions").require(context.windows_options.is_none(), "the pods run on Linux");
    check_seccomp(&mut errors.field("seccompProfile"), context.seccomp_profile.as_ref());
    check_app_armor(&mut errors.field("appArmorProfile"), context.app_armor_profile.as_ref());
}

fn check_seccomp(errors: &mut FieldErrors<'_>, profile: Option<&SeccompProfile>) {
    if let Some(SeccompProfile { type_, localhost_profile }) = profile {
        check_profile(errors, type_, localhost_profile.as_deref());
    }
}

fn check_app_armor(errors: &mut FieldErrors<'_>, profile: Option<&AppArmorProfile>) {
    if let Some(AppArmorProfile { type_, localhost_profile }) = profile {
        check_profile(errors, type_, localhost_profile.as_deref());
    }
}

fn check_profile(errors: &mut FieldErrors<'_>, type_: &str, local: Option<&str>) {
    errors.field("type").require_one_of(Some(type_), &["RuntimeDefault", "Unconfined", "Localhost"]);
    let is_named = local.is_some_and(|name| is_relative(name) && !name.is_empty() && name.trim() == name);
    let is_good = if type_ == "Localhost" { is_named } else { local.is_none() };
    errors.field("localhostProfile").require(is_good, "required with the type Localhost, and only there");
}

/// Annotations that Kubernetes reads as security contexts of old: they would contradict those of today, which
/// are in the field `instead`.
pub fn check_profile_annotations(errors: &mut FieldErrors<'_>, annotations: &BTreeMap<String, String>, instead: &str) {
    const OLD: [&str; 3] = [
        "seccomp.security.alpha.kubernetes.io/",
        "container.seccomp.security.alpha.kubernetes.io/",
        "container.apparmor.security.beta.kubernetes.io/",
    ];
    for key in annotations.keys().filter(|key| OLD.iter().any(|old| key.starts_with(old))) {
        errors.invalid(format!("{key:?} is out of use: say it in {instead}"));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::violation::refused;

    fn of_pod(context: &Value) -> Vec<String> {
        let context = serde_json::from_value(context.clone()).unwrap();
        refused(|errors| check_pod_security_context(errors, &context))
    }

    fn of_container(context: &Value) -> Vec<String> {
        let context = serde_json::from_value(context.clone()).unwrap();
        refused(|errors| check_security_context(errors, &context))
    }

    #[test]
    fn contexts_that_kubernetes_takes_pass() {
        let pod = json!({
            "runAsUser": 1000, "fsGroup": 1000, "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/cache.json"},
            "sysctls": [{"name": "net.core.somaxconn", "value": "1024"}],
        });
        let container = json!({
            "privileged": false, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
            "seccompProfile": {"type": "RuntimeDefault"},
        });
        assert_eq!(of_pod(&pod), [""; 0]);
        assert_eq!(of_container(&container), [""; 0]);
    }

    #[test]
    fn contexts_that_contradict_themselves_are_refused() {
        let twice = json!([{"name": "a", "value": "1"}, {"name": "b", "value": "1"}, {"name": "a", "value": "2"}]);
        for (bad, field) in [
            (json!({"runAsUser": -1}), "at.runAsUser"),
            (json!({"supplementalGroups": [1, 1_i64 << 31]}), "at.supplementalGroups"),
            (json!({"seccompProfile": {"type": "Localhost"}}), "at.seccompProfile.localhostProfile"),
            (json!({"sysctls": twice}), "at.sysctls[2].name"),
            (json!({"windowsOptions": {}}), "at.windowsOptions"),
        ] {
            assert_eq!(of_pod(&bad), [field], "{bad}");
        }
        for (bad, field) in [
            (json!({"privileged": true, "allowPrivilegeEscalation": false}), "at.allowPrivilegeEscalation"),
            (json!({"procMount": "Unmasked"}), "at.procMount"),
            (json!({"appArmorProfile": {"type": "Any"}}), "at.appArmorProfile.type"),
            (json!({"windowsOptions": {}}), "at.windowsOptions"),
        ] {
            assert_eq!(of_container(&bad), [field], "{bad}");
        }
    }

    #[test]
    fn contexts_are_no_annotations_any_more() {
        let check = |key: &str| {
            let annotations = [(key.to_owned(), "runtime/default".to_owned())].into();
            refused(|errors| check_profile_annotations(errors, &annotations, "spec.security"))
        };
        assert_eq!(check("container.apparmor.security.beta.kubernetes.io/server"), ["at"]);
        assert_eq!(check("example.org/profile"), [""; 0]);
    }
}
