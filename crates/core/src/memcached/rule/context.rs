//! Security contexts as Kubernetes takes them.

use k8s_openapi::api::core::v1::{AppArmorProfile, PodSecurityContext, SeccompProfile, SecurityContext};
use memcached_api::memcached::spec::MemcachedSpec;

use operator_model::violation::{FieldErrors, Violation};

const MOST: i64 = i32::MAX as i64;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(security) = &spec.security else {
        return violations;
    };
    let mut errors = FieldErrors::at("spec.security", &mut violations);
    if let Some(context) = &security.pod_security_context {
        check_pod(&mut errors.field("podSecurityContext"), context);
    }
    if let Some(context) = &security.container_security_context {
        check_container(&mut errors.field("containerSecurityContext"), context);
    }
    violations
}

fn check_pod(errors: &mut FieldErrors<'_>, context: &PodSecurityContext) {
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
    for (index, sysctl) in context.sysctls.iter().flatten().enumerate() {
        let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '-' | '_' | '/');
        let is_good = !sysctl.name.is_empty() && sysctl.name.chars().all(is_word);
        let message = format!("{:?} cannot be the name of a sysctl", sysctl.name);
        errors.field("sysctls").index(index).field("name").require(is_good, message);
        let is_repeated = context.sysctls.iter().flatten().take(index).any(|other| other.name == sysctl.name);
        let message = format!("{:?} is given twice", sysctl.name);
        errors.field("sysctls").index(index).field("name").require(!is_repeated, message);
    }
    errors.field("windowsOptions").require(context.windows_options.is_none(), "memcached runs on Linux");
    check_seccomp(&mut errors.field("seccompProfile"), context.seccomp_profile.as_ref());
    check_app_armor(&mut errors.field("appArmorProfile"), context.app_armor_profile.as_ref());
}

fn check_container(errors: &mut FieldErrors<'_>, context: &SecurityContext) {
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
    errors.field("windowsOptions").require(context.windows_options.is_none(), "memcached runs on Linux");
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
    let is_named =
        local.is_some_and(|name| operator_model::name::is_relative(name) && !name.is_empty() && name.trim() == name);
    let is_good = if type_ == "Localhost" { is_named } else { local.is_none() };
    errors.field("localhostProfile").require(is_good, "required with the type Localhost, and only there");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(security: &Value) -> Vec<String> {
        let spec = serde_json::from_value(json!({"security": security})).unwrap();
        check(&spec).into_iter().map(|violation| violation.field.replace("spec.security.", "")).collect()
    }

    #[test]
    fn contexts_that_kubernetes_takes_pass() {
        let good = json!({
            "podSecurityContext": {
                "runAsUser": 1000, "fsGroup": 1000, "fsGroupChangePolicy": "OnRootMismatch",
                "seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/cache.json"},
            },
            "containerSecurityContext": {
                "privileged": false, "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]},
                "seccompProfile": {"type": "RuntimeDefault"},
            },
        });
        assert_eq!(fields(&good), [""; 0]);
    }

    #[test]
    fn contexts_that_contradict_themselves_are_refused() {
        for (bad, field) in [
            (json!({"podSecurityContext": {"runAsUser": -1}}), "podSecurityContext.runAsUser"),
            (
                json!({"podSecurityContext": {"seccompProfile": {"type": "Localhost"}}}),
                "podSecurityContext.seccompProfile.localhostProfile",
            ),
            (
                json!({"containerSecurityContext": {"privileged": true, "allowPrivilegeEscalation": false}}),
                "containerSecurityContext.allowPrivilegeEscalation",
            ),
            (json!({"containerSecurityContext": {"procMount": "Unmasked"}}), "containerSecurityContext.procMount"),
        ] {
            assert_eq!(fields(&bad), [field], "{bad}");
        }
    }
}
