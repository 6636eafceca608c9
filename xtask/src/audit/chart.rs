//! Every value of the chart is commented, and the schema knows it and nothing else.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::repository::Repository;

const VALUES: &str = "charts/memcached-operator/values.yaml";
const SCHEMA: &str = "charts/memcached-operator/values.schema.json";

pub fn audit(repository: &Repository) -> Result<Vec<String>> {
    let text = repository.read(VALUES)?;
    let values: Value = serde_saphyr::from_str(&text).map_err(Error::generate(VALUES))?;
    let schema: Value = serde_json::from_str(&repository.read(SCHEMA)?).map_err(Error::generate(SCHEMA))?;
    let mut complaints = uncommented(&text);
    compare("", &values, &schema, &mut complaints);
    Ok(complaints)
}

/// Values at the margin, and those one step in, say in a comment above what they are.
fn uncommented(text: &str) -> Vec<String> {
    let mut complaints = Vec::new();
    let mut before = "";
    for line in text.lines() {
        let step = line.len() - line.trim_start().len();
        let is_key = step <= 2 && line.trim_start().starts_with(|c: char| c.is_ascii_lowercase());
        let is_section = line.ends_with(':');
        // What is below a commented value belongs to it.
        let is_below =
            step == 2 && !before.is_empty() && !before.trim_start().starts_with('#') && !before.ends_with(": {}");
        if is_key && !is_section && !is_below && !before.trim_start().starts_with('#') {
            complaints.push(format!("{VALUES}: {} has no comment", line.trim()));
        }
        before = line;
    }
    complaints
}

fn compare(path: &str, values: &Value, schema: &Value, complaints: &mut Vec<String>) {
    let known = schema.get("properties").and_then(Value::as_object);
    let (Some(known), Some(values)) = (known, values.as_object()) else { return };
    for (name, value) in values {
        match known.get(name) {
            Some(schema) => compare(&format!("{path}.{name}"), value, schema, complaints),
            None => complaints.push(format!("{SCHEMA}: {path}.{name} is not in it")),
        }
    }
    // Helm hands `global` down from a parent; the rest would be a value that nobody can know of.
    let optional = ["global", "claims", "name", "kind", "group", "requests", "limits"];
    for name in known.keys().filter(|name| !values.contains_key(*name) && !optional.contains(&name.as_str())) {
        complaints.push(format!("{VALUES}: {path}.{name} is in the schema alone"));
    }
    if schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        complaints.push(format!("{SCHEMA}: {path} lets unknown values pass"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_and_schema_have_to_know_each_other() {
        let mut complaints = Vec::new();
        let schema = json!({"additionalProperties": false, "properties": {"a": {}, "b": {}}});
        compare("", &json!({"a": 1, "c": 2}), &schema, &mut complaints);
        assert_eq!(complaints.len(), 2, "{complaints:?}");
        assert!(complaints[0].contains(".c is not in it") && complaints[1].contains(".b is in the schema alone"));
    }

    #[test]
    fn a_value_without_a_comment_is_found() {
        assert_eq!(uncommented("# -- Good\na: 1\n\nb: 2\n").len(), 1);
        assert_eq!(uncommented("# -- Good\na:\n  x: 1\n  y: 2\n"), [""; 0]);
    }
}
