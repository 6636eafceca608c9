//! What volumes are made of, as Kubernetes takes it. Kinds of disks that Kubernetes itself has given up are left out.

use k8s_openapi::api::core::v1::{
    DownwardAPIVolumeFile, EmptyDirVolumeSource, EphemeralVolumeSource, KeyToPath, ProjectedVolumeSource, Volume,
    VolumeProjection,
};

use super::finding::Findings;
use operator_model::name::{NAME_RULE, is_data_key, is_key, is_object_name, is_relative};
use operator_model::quantity;

const KNOWN: [&str; 11] = [
    "emptyDir",
    "configMap",
    "secret",
    "projected",
    "downwardAPI",
    "persistentVolumeClaim",
    "ephemeral",
    "csi",
    "nfs",
    "hostPath",
    "image",
];

pub fn check(findings: &mut Findings<'_>, volume: &Volume) {
    let document = serde_json::to_value(volume).unwrap_or_default();
    let sources = document.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let sources: Vec<&str> = sources.filter(|name| *name != "name").collect();
    let is_one = matches!(sources.as_slice(), [source] if KNOWN.contains(source));
    findings.require(is_one, format!("give exactly one source for the volume, of {}", KNOWN.join(", ")));
    volume.empty_dir.iter().for_each(|directory| check_directory(&mut findings.below("emptyDir"), directory));
    volume.projected.iter().for_each(|source| check_projected(&mut findings.below("projected"), source));
    volume.ephemeral.iter().for_each(|claim| check_claim(&mut findings.below("ephemeral.volumeClaimTemplate"), claim));
    if let Some(secret) = &volume.secret {
        check_name(&mut findings.below("secret.secretName"), secret.secret_name.as_deref());
        check_mode(&mut findings.below("secret.defaultMode"), secret.default_mode);
        check_items(&mut findings.below("secret.items"), secret.items.as_deref());
    }
    if let Some(map) = &volume.config_map {
        check_name(&mut findings.below("configMap.name"), Some(&map.name));
        check_mode(&mut findings.below("configMap.defaultMode"), map.default_mode);
        check_items(&mut findings.below("configMap.items"), map.items.as_deref());
    }
    if let Some(downward) = &volume.downward_api {
        check_mode(&mut findings.below("downwardAPI.defaultMode"), downward.default_mode);
        check_files(&mut findings.below("downwardAPI.items"), downward.items.as_deref());
    }
    check_elsewhere(findings, volume);
}

/// Volumes that are somewhere else already.
fn check_elsewhere(findings: &mut Findings<'_>, volume: &Volume) {
    if let Some(claim) = &volume.persistent_volume_claim {
        check_name(&mut findings.below("persistentVolumeClaim.claimName"), Some(&claim.claim_name));
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
    if let Some(csi) = &volume.csi {
        let driver = csi.driver.to_ascii_lowercase();
        check_name(&mut findings.below("csi.driver"), Some(&driver));
        findings.below("csi.driver").require(driver.len() <= 63, "is longer than 63 letters");
        if let Some(secret) = &csi.node_publish_secret_ref {
            check_name(&mut findings.below("csi.nodePublishSecretRef.name"), Some(&secret.name));
        }
    }
    if let Some(image) = &volume.image {
        let reference = image.reference.as_deref().unwrap_or_default();
        let message = format!("{reference:?} is no image");
        findings.below("image.reference").require(operator_model::image::is_reference(reference), message);
        let policy = image.pull_policy.as_deref();
        findings.below("image.pullPolicy").require_one_of(policy, &["Always", "IfNotPresent", "Never"]);
    }
}

fn check_directory(findings: &mut Findings<'_>, directory: &EmptyDirVolumeSource) {
    let is_good = directory.size_limit.as_ref().is_none_or(|size| quantity::bytes(size).is_some());
    findings.below("sizeLimit").require(is_good, "is no size: give for example 1Gi");
    findings.below("medium").require_one_of(directory.medium.as_deref(), &["", "Memory"]);
}

fn check_claim(findings: &mut Findings<'_>, claim: &EphemeralVolumeSource) {
    let Some(template) = &claim.volume_claim_template else {
        return findings.refuse("required");
    };
    let mut findings = findings.below("spec");
    let modes = template.spec.access_modes.as_deref().unwrap_or_default();
    findings.below("accessModes").require(!modes.is_empty(), "required");
    for mode in modes {
        let known = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
        findings.below("accessModes").require_one_of(Some(mode), &known);
    }
    let alone = modes.len() == 1 || !modes.iter().any(|mode| mode == "ReadWriteOncePod");
    findings.below("accessModes").require(alone, "ReadWriteOncePod goes with no other");
    let requests = template.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage"));
    let is_good = size.and_then(quantity::bytes).is_some_and(|bytes| bytes > 0);
    findings.below("resources.requests.storage").require(is_good, "give a size, for example 1Gi");
    if let Some(class) = template.spec.storage_class_name.as_deref().filter(|class| !class.is_empty()) {
        check_name(&mut findings.below("storageClassName"), Some(class));
    }
}

fn check_projected(findings: &mut Findings<'_>, projected: &ProjectedVolumeSource) {
    check_mode(&mut findings.below("defaultMode"), projected.default_mode);
    let mut paths: Vec<&str> = Vec::new();
    for (index, source) in projected.sources.iter().flatten().enumerate() {
        let mut findings = findings.below("sources");
        let mut findings = findings.item(index);
        let VolumeProjection { config_map, downward_api, secret, service_account_token, .. } = source;
        let count = serde_json::to_value(source).ok().and_then(|source| source.as_object().map(serde_json::Map::len));
        findings.require(count == Some(1), "give exactly one source");
        let is_known =
            config_map.is_some() || downward_api.is_some() || secret.is_some() || service_account_token.is_some();
        findings.require(is_known, "give a configMap, secret, downwardAPI or serviceAccountToken");
        let maps = config_map.iter().map(|map| ("configMap", &map.name, &map.items));
        let secrets = secret.iter().map(|secret| ("secret", &secret.name, &secret.items));
        for (field, name, items) in maps.chain(secrets) {
            check_name(&mut findings.below(field).below("name"), Some(name));
            check_items(&mut findings.below(field).below("items"), items.as_deref());
            paths.extend(items.iter().flatten().map(|item| item.path.as_str()));
        }
        if let Some(token) = service_account_token {
            check_path(&mut findings.below("serviceAccountToken.path"), &token.path);
            let seconds = token.expiration_seconds;
            findings.below("serviceAccountToken.expirationSeconds").require_within(seconds, 600, 1 << 32);
            paths.push(&token.path);
        }
        if let Some(downward) = downward_api {
            check_files(&mut findings.below("downwardAPI.items"), downward.items.as_deref());
            paths.extend(downward.items.iter().flatten().map(|item| item.path.as_str()));
        }
    }
    paths.sort_unstable();
    let is_repeated = paths.windows(2).any(|pair| matches!(pair, [one, other] if one == other));
    findings.below("sources").require(!is_repeated, "two sources have the same path");
}

fn check_files(findings: &mut Findings<'_>, files: Option<&[DownwardAPIVolumeFile]>) {
    for (index, file) in files.into_iter().flatten().enumerate() {
        let mut findings = findings.item(index);
        check_path(&mut findings.below("path"), &file.path);
        check_mode(&mut findings.below("mode"), file.mode);
        let is_one = file.field_ref.is_some() != file.resource_field_ref.is_some();
        findings.require(is_one, "give one of fieldRef and resourceFieldRef");
        if let Some(field) = &file.field_ref {
            let path = field.field_path.as_str();
            let known =
                ["metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"];
            let subscript = |name: &str| path.strip_prefix(name)?.strip_prefix("['")?.strip_suffix("']");
            let is_known = known.contains(&path)
                || subscript("metadata.labels").is_some_and(is_key)
                || subscript("metadata.annotations").is_some_and(|key| is_key(&key.to_ascii_lowercase()));
            findings
                .below("fieldRef.fieldPath")
                .require(is_known, format!("{path:?} is no field that a file can have"));
        }
        if let Some(resource) = &file.resource_field_ref {
            super::pod::check_resource(&mut findings.below("resourceFieldRef"), resource, true);
        }
    }
}

fn check_name(findings: &mut Findings<'_>, name: Option<&str>) {
    let name = name.unwrap_or_default();
    findings.require(is_object_name(name), format!("{name:?} {NAME_RULE}"));
}

fn check_mode(findings: &mut Findings<'_>, mode: Option<i32>) {
    findings.require_within(mode.map(i64::from), 0, 0o777);
}

fn check_path(findings: &mut Findings<'_>, path: &str) {
    let is_good = !path.is_empty() && is_relative(path) && !path.starts_with("..");
    findings.require(is_good, format!("{path:?} is no path below the volume"));
}

fn check_items(findings: &mut Findings<'_>, items: Option<&[KeyToPath]>) {
    for (index, item) in items.into_iter().flatten().enumerate() {
        let mut findings = findings.item(index);
        findings.below("key").require(is_data_key(&item.key), format!("{:?} cannot be a key", item.key));
        check_path(&mut findings.below("path"), &item.path);
        check_mode(&mut findings.below("mode"), item.mode);
    }
}
