//! A derived CustomResourceDefinition made fit for the API server, with rules and without what nobody reads.

use serde_json::Value;

use crate::rule::Rule;

/// Puts every rule where it belongs in the schema of a version (`openAPIV3Schema`). Placeholders are those of
/// [`Rule::validation`].
pub fn add_rules(schema: &mut Value, rules: &[&Rule], placeholders: &[(&str, &str)]) {
    for rule in rules {
        let mut steps = rule.at.split('.').filter(|step| !step.is_empty());
        let part = steps.try_fold(&mut *schema, |part, step| part.get_mut("properties")?.get_mut(step));
        if let Some(Value::Object(part)) = part {
            let rules = part.entry("x-kubernetes-validations").or_insert_with(|| Value::Array(Vec::new()));
            if let Value::Array(rules) = rules {
                rules.push(rule.validation(placeholders));
            }
        }
    }
}

/// Makes a definition fit for the API server and short enough to read.
///
/// `embedded` are fields of Kubernetes' own types: what is below them is described in Kubernetes' documentation, and
/// loses its descriptions here.
pub fn clean(definition: &mut Value, embedded: &[&str]) {
    match definition {
        Value::Object(map) => {
            // With a default, an explicit null would stay null instead of being defaulted.
            map.remove("nullable");
            if let Some(Value::Array(values)) = map.get_mut("enum") {
                values.retain(|value| !value.is_null());
            }
            if let Some(Value::Object(properties)) = map.get_mut("properties") {
                for name in embedded {
                    if let Some(field) = properties.get_mut(*name) {
                        strip_below(field);
                    }
                }
            }
            if let Some(Value::String(text)) = map.get_mut("description") {
                *text = unwrap_lines(text);
            }
            map.values_mut().for_each(|value| clean(value, embedded));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| clean(item, embedded)),
        _ => {}
    }
}

/// Removes descriptions below a field, but not its own.
fn strip_below(field: &mut Value) {
    let own = field.get("description").cloned();
    strip(field);
    if let (Some(own), Value::Object(map)) = (own, field) {
        map.insert("description".into(), own);
    }
}

fn strip(value: &mut Value) {
    match value {
        Value::Object(map) => {
            // A property may itself be called `description`; only texts are descriptions.
            if map.get("description").is_some_and(Value::is_string) {
                map.remove("description");
            }
            map.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

/// Lines of source become one paragraph.
fn unwrap_lines(text: &str) -> String {
    text.split("\n\n").map(|paragraph| paragraph.replace('\n', " ")).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rules_are_added_to_the_part_they_look_at() {
        const SPEC: Rule = Rule::invalid("spec", ".size", "self.size > 0", "give more");
        const WHOLE: Rule = Rule::invalid("", ".metadata.name", "true", "give another");
        const NOWHERE: Rule = Rule::invalid("spec.absent", "", "true", "never");
        let mut schema = json!({"properties": {"spec": {"type": "object"}}});
        add_rules(&mut schema, &[&SPEC, &SPEC, &WHOLE, &NOWHERE], &[]);
        let of = |part: &Value| part["x-kubernetes-validations"].as_array().unwrap().len();
        assert_eq!((of(&schema["properties"]["spec"]), of(&schema)), (2, 1));
        assert_eq!(schema["properties"].as_object().unwrap().len(), 1);
    }

    #[test]
    fn embedded_types_keep_their_own_description_only() {
        let mut schema = json!({"properties": {"env": {
            "description": "More\nvariables.\n\nOf the container.",
            "items": {"description": "An EnvVar.", "properties": {"description": {"description": "Text."}}},
        }}});
        clean(&mut schema, &["env"]);
        let expected = json!({"properties": {"env": {
            "description": "More variables.\nOf the container.", "items": {"properties": {"description": {}}},
        }}});
        assert_eq!(schema, expected);
    }

    #[test]
    fn nothing_is_nullable() {
        let mut schema = json!([{"nullable": true, "enum": ["A", null], "default": "A"}]);
        clean(&mut schema, &[]);
        assert_eq!(schema, json!([{"enum": ["A"], "default": "A"}]));
    }
}
