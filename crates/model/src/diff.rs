//! Whether an object differs from what is desired: in a value, or in a field that we applied and no longer desire.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use kube_core::DynamicObject;
use serde_json::{Map, Value};

use crate::managed::{applied, created};
use crate::quantity;

/// Fields by which the API server tells elements of a list apart, most telling first.
const KEYS: [&str; 8] = ["name", "containerPort", "port", "mountPath", "devicePath", "type", "uid", "topologyKey"];

/// Defaults that the API server writes into lists and maps that have one owner.
const FILLED_IN: [(&str, &str); 3] = [("apiVersion", "v1"), ("divisor", "0"), ("protocol", "TCP")];

/// What says which object is meant; nobody manages it.
const IDENTITY: [&str; 5] = ["apiVersion", "kind", "name", "namespace", "uid"];

/// Whether applying `desired` would change `live`, which we have applied before.
pub fn differs(desired: &Value, live: &DynamicObject, manager: &str) -> bool {
    applied(live, manager).is_none_or(|fields| !holds(desired, live, fields) || has_dropped(fields, desired))
}

/// The same for an object that we created and never applied.
///
/// Our entry of it has every default too, and so does not tell what we no longer desire: whoever asks has to put a
/// digest of what is desired into `desired`, which then differs from the one that was created.
pub fn differs_from_created(desired: &Value, live: &DynamicObject, manager: &str) -> bool {
    created(live, manager).is_none_or(|fields| !holds(desired, live, fields))
}

/// Whether all that is desired is there, and is still ours.
fn holds(desired: &Value, live: &DynamicObject, fields: &Value) -> bool {
    let Ok(live_value) = serde_json::to_value(live) else {
        return false;
    };
    // Items of a list do not say what they are.
    let is_same = |(key, value): (&String, &Value)| {
        ["apiVersion", "kind"].contains(&key.as_str())
            || match live_value.get(key) {
                Some(there) => is_covered(value, there, below(fields, key), Place::default().below(key)),
                None => is_nothing(value),
            }
    };
    desired.as_object().is_some_and(|fields| fields.iter().all(is_same)) && !has_lost(fields, desired)
}

/// Whether a field that we desired is not ours any more: somebody has changed the list or map it is a part of.
fn has_lost(fields: &Value, desired: &Value) -> bool {
    let Value::Object(fields) = fields else {
        return false;
    };
    // Nothing below: the list or map is ours as a whole.
    if fields.is_empty() {
        return false;
    }
    match desired {
        Value::Object(desired) => {
            desired.iter().filter(|(key, _)| !IDENTITY.contains(&key.as_str())).any(|(key, value)| {
                match fields.get(&format!("f:{key}")) {
                    Some(below) => has_lost(below, value),
                    None => !is_nothing(value),
                }
            })
        }
        Value::Array(items) => items.iter().any(|item| {
            let entry = fields.iter().find(|(step, _)| match step.strip_prefix("k:") {
                Some(key) => serde_json::from_str::<Map<String, Value>>(key).is_ok_and(|key| has_key(item, &key)),
                None => step
                    .strip_prefix("v:")
                    .is_some_and(|value| serde_json::from_str::<Value>(value).is_ok_and(|v| v == *item)),
            });
            entry.is_none_or(|(_, below)| has_lost(below, item))
        }),
        _ => false,
    }
}

/// What we applied below a field.
fn below<'a>(fields: &'a Value, key: &str) -> Option<&'a Value> {
    fields.get(format!("f:{key}"))
}

/// Whether everything desired is there. What is there beyond is somebody else's, or a default; unless the whole list
/// or map is ours, and then there is nothing beyond.
fn is_covered(desired: &Value, live: &Value, fields: Option<&Value>, place: Place<'_>) -> bool {
    // An empty map has no fields below either, but others may have some in it.
    let is_whole = !is_nothing(desired) && fields.and_then(Value::as_object).is_some_and(Map::is_empty);
    match (desired, live) {
        (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) if is_whole => {
            is_same(desired, live, place)
        }
        (Value::Object(desired), Value::Object(live)) => desired.iter().all(|(key, value)| match live.get(key) {
            Some(there) => is_covered(value, there, fields.and_then(|fields| below(fields, key)), place.below(key)),
            None => is_nothing(value),
        }),
        (Value::Array(desired), Value::Array(live)) => is_list_covered(desired, live, fields, place),
        _ => desired == live || (place.is_quantity() && is_same_quantity(desired, live)),
    }
}

/// Elements with a key are found by it, wherever they are; others count by their place.
fn is_list_covered(desired: &[Value], live: &[Value], fields: Option<&Value>, place: Place<'_>) -> bool {
    let entry = |item: &Value| {
        let mut entries = fields?.as_object()?.iter();
        entries.find_map(|(step, below)| {
            let key: Map<String, Value> = serde_json::from_str(step.strip_prefix("k:")?).ok()?;
            has_key(item, &key).then_some(below)
        })
    };
    let key = KEYS.into_iter().find(|key| !desired.is_empty() && desired.iter().all(|item| item.get(key).is_some()));
    let Some(key) = key else {
        return desired.len() == live.len()
            && desired.iter().zip(live).all(|(desired, live)| is_covered(desired, live, None, place));
    };
    desired.iter().all(|item| {
        live.iter().any(|there| there.get(key) == item.get(key) && is_covered(item, there, entry(item), place))
    })
}

/// Whether a list or map that is ours as a whole is exactly as desired, but for what the API server fills in.
fn is_same(desired: &Value, live: &Value, place: Place<'_>) -> bool {
    match (desired, live) {
        (Value::Object(desired), Value::Object(live)) => {
            let is_filled_in =
                |key: &str, value: &Value| FILLED_IN.contains(&(key, value.as_str().unwrap_or_default()));
            desired.iter().all(|(key, value)| {
                live.get(key).map_or_else(|| is_nothing(value), |there| is_same(value, there, place.below(key)))
            }) && live
                .iter()
                .all(|(key, value)| desired.contains_key(key) || is_nothing(value) || is_filled_in(key, value))
        }
        (Value::Array(desired), Value::Array(live)) => {
            desired.len() == live.len() && desired.iter().zip(live).all(|(desired, live)| is_same(desired, live, place))
        }
        _ => is_covered(desired, live, None, place),
    }
}

/// The API server leaves out what says nothing.
fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(value) => !value,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.values().all(is_nothing),
        Value::Number(number) => number.as_f64() == Some(0.0),
    }
}

/// The fields that hold quantities, below which field they stand, and below which that one does, if that matters.
/// Everywhere else a string is a string: the label `1.1` is not the label `1.10`.
const QUANTITIES: [(&str, &[&str], &str); 6] = [
    ("resources", &["limits", "requests"], "*"),
    ("", &["emptyDir"], "sizeLimit"),
    ("", &["resourceFieldRef"], "divisor"),
    ("", &["target"], "averageValue"),
    ("", &["target"], "value"),
    ("", &["scaleUp", "scaleDown"], "tolerance"),
];

/// Where in an object a value stands, as far as that says what it is.
#[derive(Clone, Copy, Default)]
struct Place<'a> {
    grandparent: &'a str,
    parent: &'a str,
    key: &'a str,
}

impl<'a> Place<'a> {
    fn below(self, key: &'a str) -> Self {
        Self { grandparent: self.parent, parent: self.key, key }
    }

    fn is_quantity(self) -> bool {
        QUANTITIES.iter().any(|(grandparent, parents, key)| {
            (grandparent.is_empty() || *grandparent == self.grandparent)
                && parents.contains(&self.parent)
                && (*key == "*" || *key == self.key)
        })
    }
}

/// `1024Mi` is stored as `1Gi`.
fn is_same_quantity(desired: &Value, live: &Value) -> bool {
    let text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    let value = |value: &Value| quantity::billionths(&Quantity(text(value)));
    value(desired).is_some() && value(desired) == value(live)
}

/// Whether we once applied something that we no longer desired: it would be removed.
fn has_dropped(fields: &Value, desired: &Value) -> bool {
    let Value::Object(fields) = fields else {
        return false;
    };
    fields.iter().any(|(step, below)| is_dropped(step, below, desired))
}

fn is_dropped(step: &str, below: &Value, desired: &Value) -> bool {
    if let Some(name) = step.strip_prefix("f:") {
        return match desired.get(name) {
            // What says nothing was perhaps never stored, but the field manager remembers that we sent it.
            Some(value) => !value.is_null() && has_dropped(below, value),
            None => true,
        };
    }
    if let Some(key) = step.strip_prefix("k:") {
        let Ok(Value::Object(key)) = serde_json::from_str(key) else {
            return false;
        };
        let items = desired.as_array().map(Vec::as_slice).unwrap_or_default();
        return match items.iter().find(|item| has_key(item, &key)) {
            Some(item) => has_dropped(below, item),
            None => true,
        };
    }
    if let Some(value) = step.strip_prefix("v:") {
        let items = desired.as_array().map(Vec::as_slice).unwrap_or_default();
        return serde_json::from_str::<Value>(value).is_ok_and(|value| !items.contains(&value));
    }
    false
}

/// Keys may have been completed by defaults (`protocol`): what the desired leaves out does not count.
fn has_key(item: &Value, key: &Map<String, Value>) -> bool {
    key.iter().all(|(name, value)| item.get(name).is_none_or(|own| own == value))
}

#[cfg(test)]
#[path = "diff_tests.rs"]
mod tests;
