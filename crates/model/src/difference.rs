//! In what two templates differ, in words a person can check.

use std::borrow::Cow;
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::image::default_pull_policy;

/// What would become different if `there` became `wanted`, one line a field.
///
/// With `is_defaulted`, `there` comes from the API server, which has added its own defaults: they are no difference.
pub fn differences(there: &Value, wanted: &Value, is_defaulted: bool) -> Vec<String> {
    let mut found = Vec::new();
    Walk { is_defaulted, found: &mut found }.compare("", Some(there), Some(wanted));
    found
}

struct Walk<'a> {
    is_defaulted: bool,
    found: &'a mut Vec<String>,
}

impl Walk<'_> {
    fn compare(&mut self, path: &str, there: Option<&Value>, wanted: Option<&Value>) {
        match (there, wanted) {
            (Some(Value::Object(old)), Some(Value::Object(new))) => {
                let (old, new) = (&with_pull_policy(old), &with_pull_policy(new));
                let gone = old.keys().filter(|_| !self.is_defaulted);
                let keys: BTreeSet<&String> = new.keys().chain(gone).collect();
                for key in keys {
                    self.compare(&join(path, key), old.get(key), new.get(key));
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) if are_named(old) && are_named(new) => {
                let names: BTreeSet<&str> = old.iter().chain(new).filter_map(name).collect();
                let find = |all: &'_ [Value], wanted: &str| all.iter().find(|one| name(one) == Some(wanted)).cloned();
                for name in names {
                    self.compare(&join(path, name), find(old, name).as_ref(), find(new, name).as_ref());
                }
            }
            (Some(Value::Array(old)), Some(Value::Array(new))) if self.is_defaulted && old.len() == new.len() => {
                for (number, (old, new)) in old.iter().zip(new).enumerate() {
                    self.compare(&join(path, &number.to_string()), Some(old), Some(new));
                }
            }
            (old, new) if old == new => {}
            (old, new) => self.found.push(format!("{path}: {} → {}", shown(old), shown(new))),
        }
    }
}

/// A container's pull policy is there whether or not it is written: the API server chooses one by the image.
fn with_pull_policy(object: &Map<String, Value>) -> Cow<'_, Map<String, Value>> {
    const FIELD: &str = "imagePullPolicy";
    match object.get("image").and_then(Value::as_str) {
        Some(image) if object.contains_key("name") && !object.contains_key(FIELD) => {
            let mut object = object.clone();
            object.insert(FIELD.into(), default_pull_policy(image).into());
            Cow::Owned(object)
        }
        _ => Cow::Borrowed(object),
    }
}

fn join(path: &str, key: &str) -> String {
    if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") }
}

fn name(value: &Value) -> Option<&str> {
    value.get("name").and_then(Value::as_str)
}

fn are_named(all: &[Value]) -> bool {
    all.iter().all(|one| name(one).is_some())
}

fn shown(value: Option<&Value>) -> String {
    match value {
        None => "none".into(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Object(_) | Value::Array(_)) => "…".into(),
        Some(other) => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn containers_are_told_apart_by_name_not_by_place() {
        let old = json!({"containers": [{"name": "a", "image": "x:1"}, {"name": "b", "image": "y:1"}]});
        let new = json!({"containers": [{"name": "b", "image": "y:1"}, {"name": "a", "image": "x:2"}]});
        assert_eq!(differences(&old, &new, false), ["containers.a.image: x:1 → x:2"]);
    }

    #[test]
    fn what_the_api_server_added_is_no_difference_in_a_template_that_was_found() {
        let found = json!({"dnsPolicy": "ClusterFirst", "containers": [{"name": "a", "image": "x:1"}]});
        let built = json!({"containers": [{"name": "a", "image": "x:1"}]});
        assert_eq!(differences(&found, &built, true), [""; 0]);
        assert_eq!(differences(&found, &built, false), ["dnsPolicy: ClusterFirst → none"]);
    }

    #[test]
    fn a_pull_policy_that_is_not_written_is_the_api_servers_choice() {
        let container = |image: &str, policy: Option<&str>| {
            let mut container = json!({"name": "a", "image": image});
            if let Some(policy) = policy {
                container["imagePullPolicy"] = policy.into();
            }
            json!({"containers": [container]})
        };
        let compare = |old: &Value, new: &Value| differences(old, new, false);
        let (silent, explicit) = (container("x:1", None), container("x:1", Some("IfNotPresent")));
        assert_eq!(compare(&silent, &explicit), [""; 0]);
        assert_eq!(compare(&explicit, &silent), [""; 0]);
        let always = container("x:1", Some("Always"));
        assert_eq!(compare(&silent, &always), ["containers.a.imagePullPolicy: IfNotPresent → Always"]);
        let latest = container("x:latest", Some("Always"));
        let both = ["containers.a.image: x:1 → x:latest", "containers.a.imagePullPolicy: IfNotPresent → Always"];
        assert_eq!(compare(&silent, &latest), both);
    }

    #[test]
    fn a_container_that_would_go_or_come_is_a_difference() {
        let two = json!({"containers": [{"name": "a"}, {"name": "b"}]});
        let one = json!({"containers": [{"name": "a"}]});
        assert_eq!(differences(&two, &one, true), ["containers.b: … → none"]);
        assert_eq!(differences(&one, &two, true), ["containers.b: none → …"]);
    }

    #[test]
    fn lists_without_names_differ_as_a_whole() {
        let (old, new) = (json!({"args": ["-m", "64"]}), json!({"args": ["-m", "128"]}));
        assert_eq!(differences(&old, &new, false), ["args: … → …"]);
        assert_eq!(differences(&old, &new, true), ["args.1: 64 → 128"]);
    }
}
