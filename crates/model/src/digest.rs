//! A digest of what was sent for an object, to be kept with it.
//!
//! The managed fields of an object that was created name every default beside what was sent. The digest tells the two
//! apart: whether something else is desired by now, and whether a field that was sent is no longer desired.

use std::fmt;
use std::str::FromStr;

use kube_core::{DynamicObject, ResourceExt};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// What was sent: which fields, and with which values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Digest {
    fields: u64,
    values: u64,
}

impl Digest {
    /// The digest of an object as it is desired.
    pub fn of(desired: &Value) -> Self {
        let mut fields = Sha256::new();
        hash_fields(desired, &mut fields);
        Self { fields: first(fields), values: first(Sha256::new_with_prefix(desired.to_string())) }
    }

    /// The digest that an object carries. In a label: another annotation makes a new generation of a Deployment, and
    /// people compare annotations of Services.
    pub fn in_label(object: &DynamicObject, label: &str) -> Option<Self> {
        object.labels().get(label)?.parse().ok()
    }

    /// Whether the same fields were sent, whatever their values: then none has to be removed.
    pub fn has_fields_of(self, other: Self) -> bool {
        self.fields == other.fields
    }

    /// An object as it is desired, with its digest.
    pub fn label(self, desired: &Value, label: &str) -> Value {
        let mut object = desired.clone();
        let labels = object.get_mut("metadata").and_then(Value::as_object_mut).map(|metadata| {
            let labels = metadata.entry("labels").or_insert_with(|| json!({}));
            if labels.is_null() {
                *labels = json!({});
            }
            labels
        });
        if let Some(labels) = labels.and_then(Value::as_object_mut) {
            labels.insert(label.to_owned(), self.to_string().into());
        }
        object
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}-{:016x}", self.fields, self.values)
    }
}

impl FromStr for Digest {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (fields, values) = text.split_once('-').unwrap_or_default();
        Ok(Self { fields: u64::from_str_radix(fields, 16)?, values: u64::from_str_radix(values, 16)? })
    }
}

/// Every field by which the API server tells elements of some list apart. Some lists have two: a spread constraint with
/// another `whenUnsatisfiable` is another element, and the old one would stay.
const KEYS: [&str; 11] = [
    "containerPort",
    "devicePath",
    "ip",
    "mountPath",
    "name",
    "port",
    "protocol",
    "topologyKey",
    "type",
    "uid",
    "whenUnsatisfiable",
];

/// The fields that the field manager would have for an object: names, and the keys of elements of lists. The elements
/// of other lists belong together, but for finalizers, which are a set.
fn hash_fields(value: &Value, hash: &mut Sha256) {
    match value {
        Value::Object(map) => {
            hash.update(b"{");
            for (key, value) in map {
                hash.update(key.as_bytes());
                hash.update(b":");
                hash_fields(value, hash);
                if key == "finalizers" {
                    hash.update(value.to_string());
                }
            }
            hash.update(b"}");
        }
        Value::Array(items) => {
            hash.update(b"[");
            for item in items.iter().filter(|item| item.is_object()) {
                for key in KEYS {
                    if let Some(value) = item.get(key) {
                        hash.update(key);
                        hash.update(value.to_string());
                    }
                }
                hash_fields(item, hash);
            }
            hash.update(b"]");
        }
        // A field that was null was not sent.
        Value::Null => hash.update(b"-"),
        _ => hash.update(b"."),
    }
}

fn first(hash: Sha256) -> u64 {
    hash.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAME: &str = "example.org/sent";

    fn deployment(environment: &Value, arguments: &Value) -> Value {
        let container = json!({"name": "server", "image": "x:1", "env": environment, "args": arguments});
        json!({"metadata": {"name": "a"}, "spec": {"replicas": 3, "template": {"spec": {"containers": [container]}}}})
    }

    #[test]
    fn a_digest_is_read_as_it_was_written() {
        let desired = deployment(&json!([]), &json!(["-v"]));
        let digest = Digest::of(&desired);
        let object: DynamicObject = serde_json::from_value(digest.label(&desired, NAME)).unwrap();
        assert_eq!(Digest::in_label(&object, NAME), Some(digest));
        for bad in ["", "-", "1", "1-", "x-y", "1-2-3", "ffffffffffffffffff-1"] {
            assert!(bad.parse::<Digest>().is_err(), "{bad}");
        }
        // It stays the same from version to version, or every upgrade would write to every object.
        assert_eq!(digest.to_string(), "8114632d1b453888-3f46f3760f0253a3");
    }

    #[test]
    fn another_value_is_another_digest_of_the_same_fields() {
        let one = Digest::of(&deployment(&json!([{"name": "A", "value": "1"}]), &json!(["-c", "1"])));
        let two = Digest::of(&deployment(&json!([{"name": "A", "value": "2"}]), &json!(["-c", "2", "-v"])));
        assert!(one != two && one.has_fields_of(two));
    }

    #[test]
    fn a_field_or_an_element_that_is_not_sent_any_more_is_noticed() {
        let both = json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}]);
        let one = Digest::of(&deployment(&both, &json!([])));
        for other in [json!([{"name": "A", "value": "1"}]), json!([{"name": "A", "value": "1"}, {"name": "C"}])] {
            assert!(!one.has_fields_of(Digest::of(&deployment(&other, &json!([])))), "{other}");
        }
        let spread = |when: &str| json!({"spread": [{"topologyKey": "zone", "whenUnsatisfiable": when}]});
        assert!(!Digest::of(&spread("DoNotSchedule")).has_fields_of(Digest::of(&spread("ScheduleAnyway"))));
        let mut without = deployment(&both, &json!([]));
        without["spec"].as_object_mut().unwrap().remove("replicas");
        assert!(!one.has_fields_of(Digest::of(&without)));
    }
}
