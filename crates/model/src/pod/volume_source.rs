//! What volumes are made of, as Kubernetes takes it. Kinds of disks that Kubernetes itself has given up are left out.

use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, EphemeralVolumeSource, KeyToPath, ProjectedVolumeSource, Volume, VolumeProjection,
};

use super::downward_api::check_files;
use crate::image;
use crate::metadata::check_name;
use crate::name::{is_data_key, is_relative};
use crate::quantity;
use crate::violation::FieldErrors;

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

/// The one source of a volume; `containers` are those that the pod may have.
pub(super) fn check_source(errors: &mut FieldErrors<'_>, volume: &Volume, containers: &[&str]) {
    let document = serde_json::to_value(volume).unwrap_or_default();
    let sources = document.as_object().into_iter().flatten().map(|(name, _)| name.as_str());
    let sources: Vec<&str> = sources.filter(|name| *name != "name").collect();
    let is_one = matches!(sources.as_slice(), [source] if KNOWN.contains(source));
    errors.require(is_one, format!("give exactly one source for the volume, of {}", KNOWN.join(", ")));
    volume.empty_dir.iter().for_each(|directory| check_directory(&mut errors.field("emptyDir"), directory));
    volume.projected.iter().for_each(|source| check_projected(&mut errors.field("projected"), source, containers));
    volume.ephemeral.iter().for_each(|claim| check_claim(&mut errors.field("ephemeral.volumeClaimTemplate"), claim));
    if let Some(secret) = &volume.secret {
        check_name(&mut errors.field("secret.secretName"), secret.secret_name.as_deref().unwrap_or_default());
        check_mode(&mut errors.field("secret.defaultMode"), secret.default_mode);
        check_items(&mut errors.field("secret.items"), secret.items.as_deref());
    }
    if let Some(map) = &volume.config_map {
        check_name(&mut errors.field("configMap.name"), &map.name);
        check_mode(&mut errors.field("configMap.defaultMode"), map.default_mode);
        check_items(&mut errors.field("configMap.items"), map.items.as_deref());
    }
    if let Some(downward) = &volume.downward_api {
        check_mode(&mut errors.field("downwardAPI.defaultMode"), downward.default_mode);
        check_files(&mut errors.field("downwardAPI.items"), downward.items.as_deref(), containers);
    }
    check_elsewhere(errors, volume);
}

/// Volumes that are somewhere else already.
fn check_elsewhere(errors: &mut FieldErrors<'_>, volume: &Volume) {
    if let Some(claim) = &volume.persistent_volume_claim {
        check_name(&mut errors.field("persistentVolumeClaim.claimName"), &claim.claim_name);
    }
    if let Some(host) = &volume.host_path {
        let is_good = !host.path.is_empty() && !host.path.split('/').any(|step| step == "..");
        errors.field("hostPath.path").require(is_good, format!("{:?} is no path", host.path));
        let kinds =
            ["", "DirectoryOrCreate", "Directory", "FileOrCreate", "File", "Socket", "CharDevice", "BlockDevice"];
        errors.field("hostPath.type").require_one_of(host.type_.as_deref(), &kinds);
    }
    if let Some(share) = &volume.nfs {
        errors.field("nfs.server").require(!share.server.is_empty(), "required");
        errors.field("nfs.path").require(share.path.starts_with('/'), "is no absolute path");
    }
    if let Some(csi) = &volume.csi {
        let driver = csi.driver.to_ascii_lowercase();
        check_name(&mut errors.field("csi.driver"), &driver);
        errors.field("csi.driver").require(driver.len() <= 63, "is longer than 63 letters");
        if let Some(secret) = &csi.node_publish_secret_ref {
            check_name(&mut errors.field("csi.nodePublishSecretRef.name"), &secret.name);
        }
    }
    if let Some(source) = &volume.image {
        let reference = source.reference.as_deref().unwrap_or_default();
        let message = format!("{reference:?} is no image");
        errors.field("image.reference").require(image::is_reference(reference), message);
        let policy = source.pull_policy.as_deref();
        errors.field("image.pullPolicy").require_one_of(policy, &image::PULL_POLICIES);
    }
}

fn check_directory(errors: &mut FieldErrors<'_>, directory: &EmptyDirVolumeSource) {
    let is_good = directory.size_limit.as_ref().is_none_or(|size| quantity::bytes(size).is_some());
    errors.field("sizeLimit").require(is_good, "is no size: give for example 1Gi");
    errors.field("medium").require_one_of(directory.medium.as_deref(), &["", "Memory"]);
}

fn check_claim(errors: &mut FieldErrors<'_>, claim: &EphemeralVolumeSource) {
    let Some(template) = &claim.volume_claim_template else {
        return errors.invalid("required");
    };
    let mut errors = errors.field("spec");
    let modes = template.spec.access_modes.as_deref().unwrap_or_default();
    errors.field("accessModes").require(!modes.is_empty(), "required");
    for mode in modes {
        let known = ["ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod"];
        errors.field("accessModes").require_one_of(Some(mode), &known);
    }
    let alone = modes.len() == 1 || !modes.iter().any(|mode| mode == "ReadWriteOncePod");
    errors.field("accessModes").require(alone, "ReadWriteOncePod goes with no other");
    let requests = template.spec.resources.as_ref().and_then(|resources| resources.requests.as_ref());
    let size = requests.and_then(|requests| requests.get("storage"));
    let is_good = size.and_then(quantity::bytes).is_some_and(|bytes| bytes > 0);
    errors.field("resources.requests.storage").require(is_good, "give a size, for example 1Gi");
    if let Some(class) = template.spec.storage_class_name.as_deref().filter(|class| !class.is_empty()) {
        check_name(&mut errors.field("storageClassName"), class);
    }
}

fn check_projected(errors: &mut FieldErrors<'_>, projected: &ProjectedVolumeSource, containers: &[&str]) {
    check_mode(&mut errors.field("defaultMode"), projected.default_mode);
    let mut paths: Vec<&str> = Vec::new();
    for (index, source) in projected.sources.iter().flatten().enumerate() {
        let mut errors = errors.field("sources");
        let mut errors = errors.index(index);
        let VolumeProjection { config_map, downward_api, secret, service_account_token, .. } = source;
        let count = serde_json::to_value(source).ok().and_then(|source| source.as_object().map(serde_json::Map::len));
        errors.require(count == Some(1), "give exactly one source");
        let is_known =
            config_map.is_some() || downward_api.is_some() || secret.is_some() || service_account_token.is_some();
        errors.require(is_known, "give a configMap, secret, downwardAPI or serviceAccountToken");
        let maps = config_map.iter().map(|map| ("configMap", &map.name, &map.items));
        let secrets = secret.iter().map(|secret| ("secret", &secret.name, &secret.items));
        for (field, name, items) in maps.chain(secrets) {
            check_name(&mut errors.field(field).field("name"), name);
            check_items(&mut errors.field(field).field("items"), items.as_deref());
            paths.extend(items.iter().flatten().map(|item| item.path.as_str()));
        }
        if let Some(token) = service_account_token {
            check_path(&mut errors.field("serviceAccountToken.path"), &token.path);
            let seconds = token.expiration_seconds;
            errors.field("serviceAccountToken.expirationSeconds").require_within(seconds, 600, 1 << 32);
            paths.push(&token.path);
        }
        if let Some(downward) = downward_api {
            check_files(&mut errors.field("downwardAPI.items"), downward.items.as_deref(), containers);
            paths.extend(downward.items.iter().flatten().map(|item| item.path.as_str()));
        }
    }
    paths.sort_unstable();
    let is_repeated = paths.windows(2).any(|pair| matches!(pair, [one, other] if one == other));
    errors.field("sources").require(!is_repeated, "two sources have the same path");
}

pub(super) fn check_mode(errors: &mut FieldErrors<'_>, mode: Option<i32>) {
    errors.require_within(mode.map(i64::from), 0, 0o777);
}

pub(super) fn check_path(errors: &mut FieldErrors<'_>, path: &str) {
    let is_good = !path.is_empty() && is_relative(path) && !path.starts_with("..");
    errors.require(is_good, format!("{path:?} is no path below the volume"));
}

fn check_items(errors: &mut FieldErrors<'_>, items: Option<&[KeyToPath]>) {
    for (index, item) in items.into_iter().flatten().enumerate() {
        let mut errors = errors.index(index);
        errors.field("key").require(is_data_key(&item.key), format!("{:?} cannot be a key", item.key));
        check_path(&mut errors.field("path"), &item.path);
        check_mode(&mut errors.field("mode"), item.mode);
    }
}

#[cfg(test)]
#[path = "volume_source_tests.rs"]
mod tests;
