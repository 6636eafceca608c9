//! References to fields and resources of the pod, in variables and in files.

use k8s_openapi::api::core::v1::{DownwardAPIVolumeFile, ObjectFieldSelector, ResourceFieldSelector};

use super::volume_source::{check_mode, check_path};
use crate::name::{is_annotation_key, is_key};
use crate::violation::FieldErrors;

/// A field of the pod as the value of a variable.
pub fn check_field(errors: &mut FieldErrors<'_>, selector: &ObjectFieldSelector) {
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
    let ObjectFieldSelector { api_version, field_path } = selector;
    let is_v1 = api_version.as_deref().is_none_or(|version| version == "v1");
    errors.field("apiVersion").require(is_v1, "only v1 is known");
    let is_known = FIELDS.contains(&field_path.as_str()) || is_subscript(field_path);
    errors.field("fieldPath").require(is_known, format!("{field_path:?} is no field that a variable can have"));
}

/// Files with fields and resources of the pod in them.
pub(super) fn check_files(errors: &mut FieldErrors<'_>, files: Option<&[DownwardAPIVolumeFile]>, containers: &[&str]) {
    const FIELDS: [&str; 5] =
        ["metadata.name", "metadata.namespace", "metadata.uid", "metadata.labels", "metadata.annotations"];
    for (index, file) in files.into_iter().flatten().enumerate() {
        let mut errors = errors.index(index);
        check_path(&mut errors.field("path"), &file.path);
        check_mode(&mut errors.field("mode"), file.mode);
        let is_one = file.field_ref.is_some() != file.resource_field_ref.is_some();
        errors.require(is_one, "give one of fieldRef and resourceFieldRef");
        if let Some(field) = &file.field_ref {
            let path = field.field_path.as_str();
            let is_known = FIELDS.contains(&path) || is_subscript(path);
            errors.field("fieldRef.fieldPath").require(is_known, format!("{path:?} is no field that a file can have"));
        }
        if let Some(resource) = &file.resource_field_ref {
            // A file belongs to no container: it has to say of which.
            let is_named = resource.container_name.is_some();
            errors.field("resourceFieldRef.containerName").require(is_named, "there is no container \"\"");
            check_resource(&mut errors.field("resourceFieldRef"), resource, containers);
        }
    }
}

/// A label or an annotation: `metadata.labels['team']`.
fn is_subscript(path: &str) -> bool {
    let subscript = |name: &str| path.strip_prefix(name)?.strip_prefix("['")?.strip_suffix("']");
    subscript("metadata.labels").is_some_and(is_key) || subscript("metadata.annotations").is_some_and(is_annotation_key)
}

/// A limit or a request of one of these containers; without a name it is the container's that has the variable.
pub fn check_resource(errors: &mut FieldErrors<'_>, selector: &ResourceFieldSelector, containers: &[&str]) {
    let ResourceFieldSelector { container_name, divisor, resource } = selector;
    let kind = ["limits.", "requests."].iter().find_map(|kind| resource.strip_prefix(kind)).unwrap_or_default();
    let is_known = ["cpu", "memory", "ephemeral-storage"].contains(&kind);
    errors.field("resource").require(is_known, format!("{resource:?} is no amount of a container"));
    if let Some(container) = container_name.as_deref() {
        let is_there = containers.contains(&container);
        errors.field("containerName").require(is_there, format!("there is no container {container:?}"));
    }
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::violation::refused;

    #[test]
    fn variables_have_fields_that_a_running_pod_has() {
        let check = |path: &str| {
            let selector = ObjectFieldSelector { api_version: None, field_path: path.into() };
            refused(|errors| check_field(errors, &selector))
        };
        for good in ["status.podIP", "metadata.labels['team']", "metadata.annotations['Example.org/a']"] {
            assert_eq!(check(good), [""; 0], "{good}");
        }
        for bad in ["spec.x", "metadata.labels", "metadata.labels['a b']", "metadata.labels[team]"] {
            assert_eq!(check(bad), ["at.fieldPath"], "{bad}");
        }
    }

    fn file(source: &Value) -> Vec<String> {
        let mut file = source.clone();
        file["path"] = json!("a");
        let files: Vec<DownwardAPIVolumeFile> = serde_json::from_value(json!([file])).unwrap();
        refused(|errors| check_files(errors, Some(&files), &["server"]))
    }

    #[test]
    fn files_have_fields_of_the_pod_or_amounts_of_a_container() {
        let amount = |resource: &str, container: &str| json!({"resource": resource, "containerName": container});
        for good in [
            json!({"fieldRef": {"fieldPath": "metadata.labels"}}),
            json!({"resourceFieldRef": amount("limits.cpu", "server")}),
        ] {
            assert_eq!(file(&good), [""; 0], "{good}");
        }
        for (bad, field) in [
            (json!({}), "at[0]"),
            (json!({"fieldRef": {"fieldPath": "status.podIP"}}), "at[0].fieldRef.fieldPath"),
            (json!({"resourceFieldRef": {"resource": "limits.cpu"}}), "at[0].resourceFieldRef.containerName"),
            (json!({"resourceFieldRef": amount("limits.cpu", "other")}), "at[0].resourceFieldRef.containerName"),
            (json!({"resourceFieldRef": amount("limits.disk", "server")}), "at[0].resourceFieldRef.resource"),
        ] {
            assert_eq!(file(&bad), [field], "{bad}");
        }
    }

    #[test]
    fn amounts_are_divided_by_units() {
        let check = |resource: &str, divisor: &str| {
            let selector = serde_json::from_value(json!({"resource": resource, "divisor": divisor})).unwrap();
            refused(|errors| check_resource(errors, &selector, &["server"]))
        };
        assert_eq!(check("limits.memory", "1Mi"), [""; 0]);
        assert_eq!(check("requests.cpu", "1m"), [""; 0]);
        assert_eq!(check("requests.cpu", "1Mi"), ["at.divisor"]);
        assert_eq!(check("limits.memory", "2Mi"), ["at.divisor"]);
    }
}
