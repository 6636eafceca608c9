//! Environment variables that users add to a container.

use std::collections::BTreeSet;

use k8s_openapi::api::core::v1::{EnvVar, EnvVarSource};

use super::downward_api::{check_field, check_resource};
use crate::metadata::check_name;
use crate::name::{is_data_key, is_variable};
use crate::violation::FieldErrors;

/// Variables, each with one name and one source; `containers` are those that the pod may have.
pub fn check_env(errors: &mut FieldErrors<'_>, env: &[EnvVar], containers: &[&str]) {
    let mut names = BTreeSet::new();
    for (index, variable) in env.iter().enumerate() {
        let mut errors = errors.index(index);
        let message = format!("{:?} cannot be the name of a variable", variable.name);
        errors.field("name").require(is_variable(&variable.name), message);
        let is_first = names.insert(variable.name.as_str());
        errors.field("name").require(is_first, format!("{:?} is given twice", variable.name));
        if let Some(source) = &variable.value_from {
            let has_value = variable.value.as_ref().is_some_and(|value| !value.is_empty());
            errors.field("valueFrom").require(!has_value, "not together with value");
            check_source(&mut errors.field("valueFrom"), source, containers);
        }
    }
}

fn check_source(errors: &mut FieldErrors<'_>, source: &EnvVarSource, containers: &[&str]) {
    let EnvVarSource { config_map_key_ref, secret_key_ref, field_ref, resource_field_ref, file_key_ref } = source;
    let given = [
        config_map_key_ref.is_some(),
        secret_key_ref.is_some(),
        field_ref.is_some(),
        resource_field_ref.is_some(),
        file_key_ref.is_some(),
    ];
    errors.require(given.iter().filter(|is_given| **is_given).count() == 1, "give exactly one source");
    let maps = config_map_key_ref.iter().map(|map| ("configMapKeyRef", &map.name, &map.key));
    let secrets = secret_key_ref.iter().map(|secret| ("secretKeyRef", &secret.name, &secret.key));
    for (field, name, key) in maps.chain(secrets) {
        check_name(&mut errors.field(field).field("name"), name);
        errors.field(field).field("key").require(is_data_key(key), format!("{key:?} cannot be a key"));
    }
    if let Some(field) = field_ref {
        check_field(&mut errors.field("fieldRef"), field);
    }
    if let Some(resource) = resource_field_ref {
        check_resource(&mut errors.field("resourceFieldRef"), resource, containers);
    }
    // Needs a volume that the container does not mount, and few clusters know it.
    errors.field("fileKeyRef").require(file_key_ref.is_none(), "is not supported: use secretKeyRef or configMapKeyRef");
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::violation::refused;

    fn fields(env: &Value) -> Vec<String> {
        let env: Vec<EnvVar> = serde_json::from_value(env.clone()).unwrap();
        refused(|errors| check_env(errors, &env, &["server"]))
    }

    #[test]
    fn variables_that_kubernetes_takes_pass() {
        let good = json!([
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
            {"name": "C", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['team']"}}},
            {"name": "D", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory", "divisor": "1Mi"}}},
        ]);
        assert_eq!(fields(&good), [""; 0]);
    }

    #[test]
    fn variables_have_one_name_and_one_source() {
        let name = json!({"fieldRef": {"fieldPath": "metadata.name"}});
        let of_other = json!({"resourceFieldRef": {"resource": "limits.cpu", "containerName": "other"}});
        for (bad, field) in [
            (json!([{"name": "1A"}]), "at[0].name"),
            (json!([{"name": "A"}, {"name": "A"}]), "at[1].name"),
            (json!([{"name": "A", "valueFrom": {}}]), "at[0].valueFrom"),
            (json!([{"name": "A", "value": "x", "valueFrom": name}]), "at[0].valueFrom"),
            (
                json!([{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "spec.x"}}}]),
                "at[0].valueFrom.fieldRef.fieldPath",
            ),
            (
                json!([{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "C", "key": "k"}}}]),
                "at[0].valueFrom.configMapKeyRef.name",
            ),
            (json!([{"name": "A", "valueFrom": of_other}]), "at[0].valueFrom.resourceFieldRef.containerName"),
        ] {
            assert_eq!(fields(&bad), [field], "{bad}");
        }
    }
}
