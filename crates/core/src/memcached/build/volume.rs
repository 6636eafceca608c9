//! What is mounted: credentials, certificates, the disk tier, and what the user adds.

use k8s_openapi::api::core::v1::{
    EmptyDirVolumeSource, EphemeralVolumeSource, KeyToPath, PersistentVolumeClaimSpec, PersistentVolumeClaimTemplate,
    SecretVolumeSource, Volume, VolumeMount, VolumeResourceRequirements,
};

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::memcached::build::agent;
use crate::memcached::build::argument::{EXTSTORE_DIRECTORY, SASL_DIRECTORY, TLS_DIRECTORY};
use crate::memcached::secret::{AUTHORITY, CERTIFICATE, KEY, PASSWORD_FILE};
use crate::memcached::validate::Validated;
use operator_model::quantity;

const SASL: &str = "sasl-credentials";
const TLS: &str = "tls-certificates";
const EXTSTORE: &str = "extstore";

/// The names of our own volumes.
pub const VOLUMES: [&str; 6] = [SASL, TLS, EXTSTORE, agent::PROGRAM, agent::PODINFO, agent::MEMORY];

pub fn volumes(cache: &Validated) -> Vec<Volume> {
    let mut volumes = Vec::new();
    if let Some(sasl) = &cache.sasl {
        volumes.push(secret_volume(SASL, &sasl.secret, &[PASSWORD_FILE]));
    }
    if let Some(tls) = &cache.tls {
        let keys: &[&str] = if tls.client_certificates { &[CERTIFICATE, KEY, AUTHORITY] } else { &[CERTIFICATE, KEY] };
        volumes.push(secret_volume(TLS, &tls.secret, keys));
    }
    volumes.extend(extstore_volume(cache));
    if cache.has_agent() {
        volumes.extend(agent::volumes(cache));
    }
    volumes.extend(cache.spec.extra_volumes.iter().cloned());
    volumes
}

pub fn mounts(cache: &Validated) -> Vec<VolumeMount> {
    let mut mounts = Vec::new();
    mounts.extend(credentials_mount(cache));
    mounts.extend(cache.tls.as_ref().map(|_| mount(TLS, TLS_DIRECTORY, true)));
    mounts.extend(cache.spec.extstore.as_ref().map(|_| mount(EXTSTORE, EXTSTORE_DIRECTORY, false)));
    if cache.has_agent() {
        mounts.extend(agent::mounts(cache));
    }
    mounts.extend(cache.spec.extra_volume_mounts.iter().cloned());
    mounts
}

/// Where the password file is, for whoever has to know it.
pub fn credentials_mount(cache: &Validated) -> Option<VolumeMount> {
    cache.sasl.as_ref().map(|_| mount(SASL, SASL_DIRECTORY, true))
}

fn mount(volume: &str, path: &str, read_only: bool) -> VolumeMount {
    VolumeMount {
        name: volume.into(),
        mount_path: path.into(),
        read_only: read_only.then_some(true),
        ..VolumeMount::default()
    }
}

fn secret_volume(name: &str, secret: &str, keys: &[&str]) -> Volume {
    let item = |key: &&str| KeyToPath { key: (*key).into(), path: (*key).into(), mode: None };
    Volume {
        name: name.into(),
        secret: Some(SecretVolumeSource {
            secret_name: Some(secret.into()),
            items: Some(keys.iter().map(item).collect()),
            ..SecretVolumeSource::default()
        }),
        ..Volume::default()
    }
}

/// The file takes all that was asked for: on a disk of that very size the file system would leave too little for it,
/// and the kubelet would evict a pod that fills its limit.
fn with_headroom(size: &Quantity) -> Quantity {
    let file = quantity::bytes(size).unwrap_or(0) >> 20;
    let disk = file + (file / 16).max(64);
    quantity::mebibytes(i64::try_from(disk).unwrap_or(i64::MAX))
}

/// A claim that lives and dies with its pod, or the node's own disk: either way as short-lived as the cache.
fn extstore_volume(cache: &Validated) -> Option<Volume> {
    let extstore = cache.spec.extstore.as_ref()?;
    let size = with_headroom(&extstore.size);
    let mut volume = Volume { name: EXTSTORE.into(), ..Volume::default() };
    let Some(claim) = &extstore.volume_claim else {
        volume.empty_dir = Some(EmptyDirVolumeSource { size_limit: Some(size), medium: None });
        return Some(volume);
    };
    let requests = [("storage".to_owned(), size)].into();
    let spec = PersistentVolumeClaimSpec {
        access_modes: Some(vec!["ReadWriteOnce".into()]),
        storage_class_name: claim.storage_class_name.clone(),
        resources: Some(VolumeResourceRequirements { requests: Some(requests), limits: None }),
        ..PersistentVolumeClaimSpec::default()
    };
    let template = PersistentVolumeClaimTemplate { metadata: None, spec };
    volume.ephemeral = Some(EphemeralVolumeSource { volume_claim_template: Some(template) });
    Some(volume)
}
