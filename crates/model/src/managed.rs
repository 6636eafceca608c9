//! Managed fields: which are ours, and how a predecessor's become ours.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube_core::{DynamicObject, ResourceExt};
use serde_json::{Map, Value, json};

/// Our entry: what we applied to the object itself.
pub fn applied<'a>(object: &'a DynamicObject, manager: &str) -> Option<&'a Value> {
    written(object, manager, "Apply")
}

/// Our entry of an object that we created: what we sent, and every default beside it.
pub fn created<'a>(object: &'a DynamicObject, manager: &str) -> Option<&'a Value> {
    written(object, manager, "Update")
}

fn written<'a>(object: &'a DynamicObject, manager: &str, operation: &str) -> Option<&'a Value> {
    let entry = object.managed_fields().iter().find(|entry| is_entry(entry, manager, operation))?;
    entry.fields_v1.as_ref().map(|fields| &fields.0)
}

/// Whether an entry tells of writes to the object itself, by this manager and in this way.
pub fn is_entry(entry: &ManagedFieldsEntry, manager: &str, operation: &str) -> bool {
    entry.manager.as_deref() == Some(manager)
        && entry.operation.as_deref() == Some(operation)
        && entry.subresource.as_deref().unwrap_or_default().is_empty()
}

/// Whether predecessors wrote to the object by update.
pub fn has_predecessor(object: &DynamicObject, predecessors: &[String]) -> bool {
    let is_theirs = |entry: &ManagedFieldsEntry| predecessors.iter().any(|name| is_entry(entry, name, "Update"));
    object.managed_fields().iter().any(is_theirs)
}

/// Whether we applied a field, by its path (`["spec", "replicas"]`).
pub fn owns_field(object: &DynamicObject, manager: &str, path: &[&str]) -> bool {
    has_field(applied(object, manager), path)
}

/// Whether we created a field, perhaps by leaving it to its default, and nobody has changed it since.
pub fn created_field(object: &DynamicObject, manager: &str, path: &[&str]) -> bool {
    has_field(created(object, manager), path)
}

fn has_field(fields: Option<&Value>, path: &[&str]) -> bool {
    path.iter().fold(fields, |fields, step| fields?.get(format!("f:{step}"))).is_some()
}

/// Whether anybody owns a field, by its path. What an admission webhook wrote has no owner.
pub fn is_owned(managers: &[ManagedFieldsEntry], path: &[&str]) -> bool {
    managers.iter().any(|entry| has_field(entry.fields_v1.as_ref().map(|fields| &fields.0), path))
}

/// The patch that turns what predecessors wrote by update into what we applied; none if there is nothing to turn.
pub fn take_over(object: &DynamicObject, manager: &str, predecessors: &[String]) -> Option<json_patch::Patch> {
    let is_theirs = |entry: &ManagedFieldsEntry| predecessors.iter().any(|name| is_entry(entry, name, "Update"));
    let (theirs, mut rest): (Vec<_>, Vec<_>) = object.managed_fields().iter().cloned().partition(is_theirs);
    let first = theirs.first()?.clone();
    let mut fields = Value::Object(Map::new());
    for entry in theirs.iter().filter_map(|entry| entry.fields_v1.as_ref()) {
        merge(&mut fields, &entry.0);
    }
    let own = rest.iter().position(|entry| is_entry(entry, manager, "Apply"));
    if let Some(entry) = own.map(|index| rest.remove(index)) {
        merge(&mut fields, &entry.fields_v1.map(|fields| fields.0).unwrap_or_default());
    }
    let mut entry = serde_json::to_value(first).ok()?;
    if let Some(map) = entry.as_object_mut() {
        map.insert("manager".into(), json!(manager));
        map.insert("operation".into(), json!("Apply"));
        map.insert("fieldsV1".into(), fields);
    }
    let mut entries: Vec<Value> = rest.iter().filter_map(|entry| serde_json::to_value(entry).ok()).collect();
    entries.push(entry);
    let patch = json!([
        {"op": "test", "path": "/metadata/resourceVersion", "value": object.resource_version()},
        {"op": "replace", "path": "/metadata/managedFields", "value": entries},
    ]);
    serde_json::from_value(patch).ok()
}

fn merge(into: &mut Value, from: &Value) {
    if let (Value::Object(into), Value::Object(from)) = (into, from) {
        for (key, value) in from {
            merge(into.entry(key).or_insert_with(|| Value::Object(Map::new())), value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(entries: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Service",
            "metadata": {"name": "a", "resourceVersion": "7", "managedFields": entries},
        }))
        .unwrap()
    }

    #[test]
    fn a_field_is_ours_if_we_applied_it() {
        let object = object(&json!([
            {"manager": "us", "operation": "Apply", "fieldsV1": {"f:spec": {"f:replicas": {}}}},
            {"manager": "hpa", "operation": "Update", "subresource": "scale", "fieldsV1": {"f:spec": {"f:other": {}}}},
        ]));
        assert!(owns_field(&object, "us", &["spec", "replicas"]));
        assert!(!owns_field(&object, "us", &["spec", "other"]));
        assert!(!owns_field(&object, "hpa", &["spec", "other"]));
    }

    #[test]
    fn a_predecessors_update_becomes_our_apply_and_others_stay() {
        let object = object(&json!([
            {"manager": "old", "operation": "Update", "fieldsV1": {"f:spec": {"f:a": {}}}},
            {"manager": "kubectl", "operation": "Update", "fieldsV1": {"f:metadata": {}}},
            {"manager": "old", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]));
        let patch = serde_json::to_value(take_over(&object, "us", &["old".into()]).unwrap()).unwrap();
        assert_eq!(patch[0]["value"], "7");
        let entries = patch[1]["value"].as_array().unwrap();
        assert_eq!(entries.len(), 3);
        assert_eq!(entries[2]["manager"], "us");
        assert_eq!(entries[2]["operation"], "Apply");
        assert_eq!(entries[2]["fieldsV1"], json!({"f:spec": {"f:a": {}}}));
        assert!(take_over(&object, "us", &["nobody".into()]).is_none());
    }
}
