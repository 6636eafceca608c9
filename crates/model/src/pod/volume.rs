//! Volumes that users add, and where a container has them.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{Volume, VolumeMount};

use super::Layout;
use super::volume_source::check_source;
use crate::name::{is_dns_label, is_relative};
use crate::violation::FieldErrors;

/// Volumes with a name of their own and one source each.
pub fn check_volumes(errors: &mut FieldErrors<'_>, volumes: &[Volume], layout: &Layout<'_>) {
    let mut names = BTreeSet::new();
    for (index, volume) in volumes.iter().enumerate() {
        let mut errors = errors.index(index);
        let name = volume.name.as_str();
        errors.field("name").require(is_dns_label(name), format!("{name:?} cannot be the name of a volume"));
        let is_free = !layout.volumes.contains(&name);
        errors.field("name").require(is_free, format!("{name:?} is the operator's own: use another"));
        errors.field("name").require(names.insert(name), format!("{name:?} is given twice"));
        check_source(&mut errors, volume, layout.containers);
    }
}

/// Mounts of such volumes, which are in the field `known`, at paths that are free.
pub fn check_volume_mounts(
    errors: &mut FieldErrors<'_>,
    mounts: &[VolumeMount],
    (known, volumes): (&str, &[Volume]),
    layout: &Layout<'_>,
) {
    let names: BTreeSet<&str> = volumes.iter().map(|volume| volume.name.as_str()).collect();
    let mut paths = BTreeSet::new();
    for (index, mount) in mounts.iter().enumerate() {
        let mut errors = errors.index(index);
        let is_known = names.contains(mount.name.as_str());
        errors.field("name").require(is_known, format!("{:?} is none of {known}", mount.name));
        let is_first = paths.insert(mount.mount_path.as_str());
        errors.field("mountPath").require(is_first, format!("{:?} is given twice", mount.mount_path));
        check_mount(&mut errors, mount, layout);
    }
}

fn check_mount(errors: &mut FieldErrors<'_>, mount: &VolumeMount, layout: &Layout<'_>) {
    let path = mount.mount_path.as_str();
    let is_absolute = path.starts_with('/') && !path.contains(':') && !path.split('/').any(|step| step == "..");
    errors.field("mountPath").require(is_absolute, format!("{path:?} is no absolute path"));
    let own = layout.mount_paths.iter().find(|own| overlap(own, path));
    if let Some(own) = own {
        errors.field("mountPath").invalid(format!("{path:?} overlaps {own}, which is the operator's own: use another"));
    }
    let (fixed, computed) = (mount.sub_path.as_deref(), mount.sub_path_expr.as_deref());
    let (fixed, computed) = (fixed.unwrap_or_default(), computed.unwrap_or_default());
    errors.field("subPath").require(is_relative(fixed), format!("{fixed:?} is no path below the volume"));
    errors.field("subPathExpr").require(is_relative(computed), format!("{computed:?} is no path below the volume"));
    errors.field("subPathExpr").require(fixed.is_empty() || computed.is_empty(), "not together with subPath");
    // Bidirectional is for privileged containers, which share their mounts with the node.
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
