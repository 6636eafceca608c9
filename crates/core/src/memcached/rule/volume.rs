//! Volumes that people add, and where the server sees them.

use k8s_openapi::api::core::v1::VolumeMount;
use memcached_api::memcached::spec::MemcachedSpec;

use super::source;
use crate::memcached::build::{EXTSTORE_DIRECTORY, SASL_DIRECTORY, TLS_DIRECTORY, VOLUMES};
use operator_model::name::{is_dns_label, is_relative};
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let mut errors = FieldErrors::at("spec", &mut violations);
    for (index, volume) in spec.extra_volumes.iter().enumerate() {
        let mut errors = errors.field("extraVolumes");
        let mut errors = errors.index(index);
        let name = &volume.name;
        errors.field("name").require(is_dns_label(name), format!("{name:?} cannot be the name of a volume"));
        errors
            .field("name")
            .require(!VOLUMES.contains(&name.as_str()), format!("{name:?} is the operator's own: use another"));
        let is_repeated = spec.extra_volumes.iter().take(index).any(|other| other.name == *name);
        errors.field("name").require(!is_repeated, format!("{name:?} is given twice"));
        source::check(&mut errors, volume);
    }
    for (index, mount) in spec.extra_volume_mounts.iter().enumerate() {
        let mut errors = errors.field("extraVolumeMounts");
        let mut errors = errors.index(index);
        let is_known = spec.extra_volumes.iter().any(|volume| volume.name == mount.name);
        errors.field("name").require(is_known, format!("{:?} is none of spec.extraVolumes", mount.name));
        let others = spec.extra_volume_mounts.iter().take(index);
        let is_repeated = others.map(|other| other.mount_path.as_str()).any(|other| other == mount.mount_path);
        errors.field("mountPath").require(!is_repeated, format!("{:?} is given twice", mount.mount_path));
        check_mount(&mut errors, mount);
    }
    violations
}

fn check_mount(errors: &mut FieldErrors<'_>, mount: &VolumeMount) {
    let path = mount.mount_path.as_str();
    let is_absolute = path.starts_with('/') && !path.contains(':') && !path.split('/').any(|step| step == "..");
    errors.field("mountPath").require(is_absolute, format!("{path:?} is no absolute path"));
    let own = [SASL_DIRECTORY, TLS_DIRECTORY, EXTSTORE_DIRECTORY].into_iter().find(|own| overlap(own, path));
    if let Some(own) = own {
        errors.field("mountPath").invalid(format!("{path:?} overlaps {own}, which is the operator's own: use another"));
    }
    let (fixed, computed) = (mount.sub_path.as_deref(), mount.sub_path_expr.as_deref());
    let (fixed, computed) = (fixed.unwrap_or_default(), computed.unwrap_or_default());
    errors.field("subPath").require(is_relative(fixed), format!("{fixed:?} is no path below the volume"));
    errors.field("subPathExpr").require(is_relative(computed), format!("{computed:?} is no path below the volume"));
    errors.field("subPathExpr").require(fixed.is_empty() || computed.is_empty(), "not together with subPath");
    // Bidirectional is for privileged containers, and memcached's is none.
    let propagation = mount.mount_propagation.as_deref();
    errors.field("mountPropagation").require_one_of(propagation, &["None", "HostToContainer"]);
    if let Some(recursive) = mount.recursive_read_only.as_deref() {
        errors.field("recursiveReadOnly").require_one_of(Some(recursive), &["Disabled", "IfPossible", "Enabled"]);
        let is_read_only = mount.read_only == Some(true) && matches!(propagation, None | Some("None"));
        let message = "needs readOnly and no mountPropagation";
        errors.field("recursiveReadOnly").require(recursive == "Disabled" || is_read_only, message);
    }
}

fn overlap(one: &str, other: &str) -> bool {
    let steps = |path: &str| {
        path.split('/').filter(|step| !step.is_empty() && *step != ".").map(str::to_owned).collect::<Vec<_>>()
    };
    steps(one).iter().zip(&steps(other)).all(|(one, other)| one == other)
}

#[cfg(test)]
#[path = "volume_tests.rs"]
mod tests;
