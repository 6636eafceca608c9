//! Volumes that people add, and where the server sees them.

use k8s_openapi::api::core::v1::{KeyToPath, Volume, VolumeMount};
use memcached_api::spec::MemcachedSpec;
use serde_json::Value;

use super::finding::{Findings, Violation};
use super::syntax::{NAME_RULE, is_data_key, is_dns_label, is_object_name, is_relative};
use crate::build::{EXTSTORE_DIRECTORY, SASL_DIRECTORY, TLS_DIRECTORY, VOLUMES};
use crate::quantity;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut findings = Findings::at("spec", &mut violations);
    for (index, volume) in spec.extra_volumes.iter().enumerate() {
        let mut findings = findings.below("extraVolumes");
        let mut findings = findings.item(index);
        let name = &volume.name;
        findings.below("name").require(is_dns_label(name), format!("{name:?} cannot be the name of a volume"));
        findings
            .below("name")
            .require(!VOLUMES.contains(&name.as_str()), format!("{name:?} is the operator's own: use another"));
        let is_repeated = spec.extra_volumes.iter().take(index).any(|other| other.name == *name);
        findings.below("name").require(!is_repeated, format!("{name:?} is given twice"));
        check_volume(&mut findings, volume);
    }
    for (index, mount) in spec.extra_volume_mounts.iter().enumerate() {
        let mut findings = findings.below("extraVolumeMounts");
        let mut findings = findings.item(index);
        let is_known = spec.extra_volumes.iter().any(|volume| volume.name == mount.name);
        findings.below("name").require(is_known, format!("{:?} is none of spec.extraVolumes", mount.name));
        let others = spec.extra_volume_mounts.iter().take(index);
        let is_repeated = others.map(|other| other.mount_path.as_str()).any(|other| other == mount.mount_path);
        findings.below("mountPath").require(!is_repeated, format!("{:?} is given twice", mount.mount_path));
        check_mount(&mut findings, mount);
    }
    violations
}

fn check_mount(findings: &mut Findings<'_>, mount: &VolumeMount) {
    let path = mount.mount_path.as_str();
    let is_absolute = path.starts_with('/') && !path.contains(':') && !path.split('/').any(|step| step == "..");
    findings.below("mountPath").require(is_absolute, format!("{path:?} is no absolute path"));
    let own = [SASL_DIRECTORY, TLS_DIRECTORY, EXTSTORE_DIRECTORY].into_iter().find(|own| overlap(own, path));
    if let Some(own) = own {
        findings
            .below("mountPath")
            .refuse(format!("{path:?} overlaps {own}, which is the operator's own: use another"));
    }
    let (fixed, computed) = (mount.sub_path.as_deref(), mount.sub_path_expr.as_deref());
    let (fixed, computed) = (fixed.unwrap_or_default(), computed.unwrap_or_default());
    findings.below("subPath").require(is_relative(fixed), format!("{fixed:?} is no path below the volume"));
    findings.below("subPathExpr").require(is_relative(computed), format!("{computed:?} is no path below the volume"));
    findings.below("subPathExpr").require(fixed.is_empty() || computed.is_empty(), "not together with subPath");
    // Bidirectional is for privileged containers, and memcached's is none.
    let propagation = mount.mount_propagation.as_deref();
    findings.below("mountPropagation").require_one_of(propagation, &["None", "HostToContainer"]);
    if let Some(recursive) = mount.recursive_read_only.as_deref() {
        findings.below("recursiveReadOnly").require_one_of(Some(recursive), &["Disabled", "IfPossible", "Enabled"]);
        let is_read_only = mount.read_only == Some(true) && matches!(propagation, None | Some("None"));
        let message = "needs readOnly and no mountPropagation";
        findings.below("recursiveReadOnly").require(recursive == "Disabled" || is_read_only, message);
    }
}

fn overlap(one: &str, other: &str) -> bool {
    let steps = |path: &str| {
        path.split('/').filter(|step| !step.is_empty() && *step != ".").map(str::to_owned).collect::<Vec<_>>()
    };
    steps(one).iter().zip(&steps(other)).all(|(one, other)| one == other)
}

fn check_volume(findings: &mut Findings<'_>, volume: &Volume) {
    let document = serde_json::to_value(volume).unwrap_or_default();
    let sources = document.as_object().map_or(0, |fields| fields.keys().filter(|key| *key != "name").count());
    findings.require(sources == 1, "give exactly one source for the volume, for example emptyDir");
    if let Some(directory) = &volume.empty_dir {
        let is_good = directory.size_limit.as_ref().is_none_or(|size| quantity::bytes(size).is_some());
        findings.below("emptyDir.sizeLimit").require(is_good, "is no size: give for example 1Gi");
        findings.below("emptyDir.medium").require_one_of(directory.medium.as_deref(), &["", "Memory", "HugePages"]);
    }
    if let Some(secret) = &volume.secret {
        let name = secret.secret_name.as_deref().unwrap_or_default();
        findings.below("secret.secretName").require(is_object_name(name), format!("{name:?} {NAME_RULE}"));
        check_mode(&mut findings.below("secret.defaultMode"), secret.default_mode);
        check_items(&mut findings.below("secret.items"), secret.items.as_deref());
    }
    if let Some(map) = &volume.config_map {
        findings.below("configMap.name").require(is_object_name(&map.name), format!("{:?} {NAME_RULE}", map.name));
        check_mode(&mut findings.below("configMap.defaultMode"), map.default_mode);
        check_items(&mut findings.below("configMap.items"), map.items.as_deref());
    }
    if let Some(claim) = &volume.persistent_volume_claim {
        let name = &claim.claim_name;
        findings
            .below("persistentVolumeClaim.claimName")
            .require(is_object_name(name), format!("{name:?} {NAME_RULE}"));
    }
    if let Some(host) = &volume.host_path {
        let is_good = !host.path.is_empty() && !host.path.split('/').any(|step| step == "..");
        findings.below("hostPath.path").require(is_good, format!("{:?} is no path", host.path));
        let kinds =
            ["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];
        findings.below("hostPath.type").require_one_of(host.type_.as_deref(), &kinds);
    }
    if let Some(share) = &volume.nfs {
        findings.below("nfs.server").require(!share.server.is_empty(), "required");
        findings.below("nfs.path").require(share.path.starts_with('/'), "is no absolute path");
    }
    check_rest(findings, &document);
}

/// Sources that hold sources, or a whole claim: what must be there is.
fn check_rest(findings: &mut Findings<'_>, document: &Value) {
    let is_filled = |path: &str| document.pointer(path).and_then(Value::as_str).is_none_or(|text| !text.is_empty());
    findings.below("csi.driver").require(is_filled("/csi/driver"), "required");
    if let Some(claim) = document.pointer("/ephemeral") {
        let modes = claim.pointer("/volumeClaimTemplate/spec/accessModes").and_then(Value::as_array);
        let mut findings = findings.below("ephemeral.volumeClaimTemplate.spec");
        findings.below("accessModes").require(modes.is_some_and(|modes| !modes.is_empty()), "required");
        let size = claim.pointer("/volumeClaimTemplate/spec/resources/requests/storage").and_then(Value::as_str);
        let is_good = size.is_some_and(|size| {
            let size = k8s_openapi::apimachinery::pkg::api::resource::Quantity(size.into());
            quantity::bytes(&size).is_some_and(|bytes| bytes > 0)
        });
        findings.below("resources.requests.storage").require(is_good, "give a size, for example 1Gi");
    }
}

fn check_mode(findings: &mut Findings<'_>, mode: Option<i32>) {
    findings.require_within(mode.map(i64::from), 0, 0o777);
}

fn check_items(findings: &mut Findings<'_>, items: Option<&[KeyToPath]>) {
    for (index, item) in items.into_iter().flatten().enumerate() {
        let mut findings = findings.item(index);
        findings.below("key").require(is_data_key(&item.key), format!("{:?} cannot be a key", item.key));
        let is_good = !item.path.is_empty() && is_relative(&item.path) && !item.path.starts_with("..");
        findings.below("path").require(is_good, format!("{:?} is no path below the volume", item.path));
        check_mode(&mut findings.below("mode"), item.mode);
    }
}

#[cfg(test)]
#[path = "volume_tests.rs"]
mod tests;
