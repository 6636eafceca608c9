//! What a field changes in the children, one line a change, and nothing left out.

use std::collections::{BTreeMap, BTreeSet};

use memcached_core::memcached::Validated;
use memcached_core::memcached::build::Child;
use serde_json::{Value, json};

use crate::fixture::{accepted, children, merged};

/// Long paths that tests would repeat, and what they are called.
const SHORT: [(&str, &str); 3] = [
    ("Deployment.spec.template.spec.containers[memcached].", "server."),
    ("Deployment.spec.template.spec.containers[exporter].", "exporter."),
    ("Deployment.spec.template.", "template."),
];

/// What a declaration changes against an empty one.
pub fn changes(spec: &Value) -> Vec<String> {
    changes_on(&json!({}), spec)
}

/// What a declaration changes on top of another.
pub fn changes_on(base: &Value, over: &Value) -> Vec<String> {
    changes_between(&accepted(base), &accepted(&merged(base, over)))
}

pub fn changes_between(before: &Validated, after: &Validated) -> Vec<String> {
    let (before, after) = (flattened(before), flattened(after));
    let paths: BTreeSet<&String> = before.keys().chain(after.keys()).collect();
    let line = |path: &String| match (before.get(path), after.get(path)) {
        (Some(old), Some(new)) => (old != new).then(|| format!("{path}: {old} → {new}")),
        (None, Some(new)) => Some(format!("+ {path}: {new}")),
        (Some(old), None) => Some(format!("- {path}: {old}")),
        (None, None) => None,
    };
    paths.into_iter().filter_map(line).map(|line| line.replace(": whole", "")).collect()
}

/// Every value of every child by its path. Revisions only repeat the template.
fn flattened(cache: &Validated) -> BTreeMap<String, String> {
    let mut flat = BTreeMap::new();
    for (kind, object) in children(cache) {
        match kind {
            Child::Revision => {}
            // These two are always there: what is inside them matters. Of others it matters that they are.
            Child::Deployment | Child::Service => flatten(format!("{kind:?}"), &object, &mut flat),
            _ => {
                flat.insert(format!("{kind:?}"), "whole".into());
                flatten(format!("{kind:?}"), &object, &mut flat);
            }
        }
    }
    flat.into_iter().map(|(path, value)| (shortened(&path), value)).collect()
}

fn shortened(path: &str) -> String {
    let short = SHORT.iter().find_map(|(long, short)| path.strip_prefix(long).map(|rest| format!("{short}{rest}")));
    short.unwrap_or_else(|| path.to_owned())
}

fn flatten(path: String, value: &Value, flat: &mut BTreeMap<String, String>) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                flatten(format!("{path}.{key}"), value, flat);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (index, item) in items.iter().enumerate() {
                let name = item["name"].as_str().map_or_else(|| index.to_string(), str::to_owned);
                flatten(format!("{path}[{name}]"), item, flat);
            }
        }
        Value::Array(words) => {
            let words: Vec<String> = words.iter().map(plain).collect();
            flat.insert(path, words.join(" "));
        }
        _ => {
            flat.insert(path, plain(value));
        }
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The children that a change adds, without what is in them: snapshots show that.
pub fn without_insides_of(kind: Child, mut lines: Vec<String>) -> Vec<String> {
    let inside = format!("{kind:?}.");
    lines.retain(|line| !line.trim_start_matches(['+', '-', ' ']).starts_with(&inside));
    lines
}
