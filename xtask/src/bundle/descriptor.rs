//! How the console of OpenShift shows fields of a cache: from the schema.

use memcached_api::crd::EMBEDDED;
use serde_json::{Value, json};

const WIDGET: &str = "urn:alm:descriptor:com.tectonic.ui";

/// A descriptor for each field below `schema` that people fill in.
pub fn of(schema: &Value) -> Vec<Value> {
    let mut descriptors = Vec::new();
    collect("", schema, &mut descriptors);
    descriptors
}

fn collect(path: &str, schema: &Value, descriptors: &mut Vec<Value>) {
    let fields = schema.get("properties").and_then(Value::as_object);
    for (name, field) in fields.into_iter().flatten() {
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let is_embedded = EMBEDDED.iter().any(|(embedded, _)| embedded == name);
        if !is_embedded && field.get("properties").is_some() {
            collect(&path, field, descriptors);
            continue;
        }
        let mut descriptor = json!({
            "path": path,
            "displayName": title(name),
            "description": field.get("description").cloned().unwrap_or_default(),
        });
        if let (Some(widget), Value::Object(fields)) = (widget(name, &path, field), &mut descriptor) {
            fields.insert("x-descriptors".into(), json!([widget]));
        }
        descriptors.push(descriptor);
    }
}

fn widget(name: &str, path: &str, field: &Value) -> Option<String> {
    let kind = field.get("type").and_then(Value::as_str).unwrap_or_default();
    match (name, kind) {
        ("replicas" | "readyReplicas", _) if !path.contains('.') => Some(format!("{WIDGET}:podCount")),
        ("resources" | "exporterResources", _) => Some(format!("{WIDGET}:resourceRequirements")),
        ("conditions", _) => Some("urn:alm:descriptor:io.kubernetes.conditions".into()),
        ("name", _) if path.ends_with("SecretRef.name") => Some("urn:alm:descriptor:io.kubernetes:Secret".into()),
        (_, "boolean") => Some(format!("{WIDGET}:booleanSwitch")),
        (_, "integer") => Some(format!("{WIDGET}:number")),
        (_, "string") => Some(format!("{WIDGET}:text")),
        _ => None,
    }
}

/// `maxMemoryMB` as people write it.
fn title(name: &str) -> String {
    let mut title = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        match (title.is_empty(), letter.is_uppercase() && before.is_lowercase()) {
            (true, _) => title.extend(letter.to_uppercase()),
            (_, true) => title.extend([' ', letter]),
            _ => title.push(letter),
        }
        before = letter;
    }
    title
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_titles() {
        assert_eq!(title("maxMemoryMB"), "Max Memory MB");
        assert_eq!(title("replicas"), "Replicas");
    }

    #[test]
    fn fields_get_the_widget_of_their_type() {
        let schema = json!({"properties": {
            "replicas": {"type": "integer"},
            "security": {"properties": {"tls": {"properties": {"enabled": {"type": "boolean"}}}}},
        }});
        let descriptors = of(&schema);
        assert_eq!(descriptors[0]["x-descriptors"][0], format!("{WIDGET}:podCount"));
        assert_eq!(descriptors[1]["path"], "security.tls.enabled");
        assert_eq!(descriptors[1]["x-descriptors"][0], format!("{WIDGET}:booleanSwitch"));
    }
}
