//! Kubernetes objects in YAML text, as tests compare them.

use std::collections::BTreeMap;

use serde_json::Value;

/// The objects of a text, by kind, namespace and name.
pub fn objects(text: &str) -> BTreeMap<String, Value> {
    let objects = text.split("\n---").map(|part| part.strip_prefix("---").unwrap_or(part));
    let parsed = objects
        .map(|part| -> Value { serde_saphyr::from_str(part).unwrap_or_else(|error| panic!("{error} in:\n{part}")) });
    parsed.filter(|object| !object.is_null()).map(|object| (identity(&object), whole_numbers(object))).collect()
}

/// Schemas count in floats, and some programs write these without the point: 64.0 is 64.
fn whole_numbers(value: Value) -> Value {
    match value {
        Value::Number(number) => {
            let whole = number.as_f64().filter(|float| float.fract() == 0.0).map(|float| format!("{float:.0}"));
            whole.and_then(|text| text.parse::<i64>().ok()).map_or(Value::Number(number), Value::from)
        }
        Value::Array(items) => items.into_iter().map(whole_numbers).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, field)| (name, whole_numbers(field))).collect(),
        other => other,
    }
}

/// Where two values differ, if they do.
pub fn difference(path: &str, one: &Value, other: &Value) -> Option<String> {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) if a.keys().eq(b.keys()) => {
            a.iter().find_map(|(name, field)| difference(&format!("{path}.{name}"), field, &b[name]))
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let mut pairs = a.iter().zip(b).enumerate();
            pairs.find_map(|(position, (a, b))| difference(&format!("{path}[{position}]"), a, b))
        }
        _ => (one != other).then(|| format!("{path}: {one} is not {other}").chars().take(500).collect()),
    }
}

fn identity(object: &Value) -> String {
    let part = |pointer: &str| object.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned();
    format!("{} {}/{}", part("/kind"), part("/metadata/namespace"), part("/metadata/name"))
}

/// The names of the objects of a kind.
pub fn of_kind(objects: &BTreeMap<String, Value>, kind: &str) -> Vec<String> {
    let is_kind = |object: &&Value| object["kind"] == kind;
    objects.values().filter(is_kind).map(|object| object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
}
