//! Whether an object differs from what we wish: in a value, or in a field that we applied and no longer wish.

use kube::api::DynamicObject;
use serde_json::{Map, Value};

use super::managed::applied;

/// Fields by which the API server tells elements of a list apart, most telling first.
const KEYS: [&str; 8] = ["name", "containerPort", "port", "mountPath", "devicePath", "type", "uid", "topologyKey"];

/// Defaults that the API server writes into lists and maps that have one owner.
const FILLED_IN: [(&str, &str); 3] = [("apiVersion", "v1"), ("divisor", "0"), ("protocol", "TCP")];

/// What says which object is meant; nobody manages it.
const IDENTITY: [&str; 5] = ["apiVersion", "kind", "name", "namespace", "uid"];

/// Whether applying `wish` would change `live`.
pub fn differs(wish: &Value, live: &DynamicObject, manager: &str) -> bool {
    let Ok(live_value) = serde_json::to_value(live) else {
        return true;
    };
    let Some(fields) = applied(live, manager) else {
        return true;
    };
    // Items of a list do not say what they are.
    let is_same = |(key, value): (&String, &Value)| {
        ["apiVersion", "kind"].contains(&key.as_str())
            || match live_value.get(key) {
                Some(there) => is_covered(value, there, below(fields, key)),
                None => is_nothing(value),
            }
    };
    !wish.as_object().is_some_and(|fields| fields.iter().all(is_same))
        || has_dropped(fields, wish)
        || has_lost(fields, wish)
}

/// Whether a field that we wish is not ours any more: somebody has changed the list or map it is a part of.
fn has_lost(fields: &Value, wish: &Value) -> bool {
    let Value::Object(fields) = fields else {
        return false;
    };
    // Nothing below: the list or map is ours as a whole.
    if fields.is_empty() {
        return false;
    }
    match wish {
        Value::Object(wish) => wish.iter().filter(|(key, _)| !IDENTITY.contains(&key.as_str())).any(|(key, value)| {
            match fields.get(&format!("f:{key}")) {
                Some(below) => has_lost(below, value),
                None => !is_nothing(value),
            }
        }),
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

/// Whether everything wished is there. What is there beyond is somebody else's, or a default; unless the whole list
/// or map is ours, and then there is nothing beyond.
fn is_covered(wish: &Value, live: &Value, fields: Option<&Value>) -> bool {
    // An empty map has no fields below either, but others may have some in it.
    let is_whole = !is_nothing(wish) && fields.and_then(Value::as_object).is_some_and(Map::is_empty);
    match (wish, live) {
        (Value::Object(_), Value::Object(_)) | (Value::Array(_), Value::Array(_)) if is_whole => is_same(wish, live),
        (Value::Object(wish), Value::Object(live)) => wish.iter().all(|(key, value)| match live.get(key) {
            Some(there) => is_covered(value, there, fields.and_then(|fields| below(fields, key))),
            None => is_nothing(value),
        }),
        (Value::Array(wish), Value::Array(live)) => is_list_covered(wish, live, fields),
        (Value::String(wish), Value::String(live)) => wish == live || is_same_quantity(wish, live),
        (Value::Number(_), Value::String(live)) => is_same_quantity(&wish.to_string(), live),
        _ => wish == live,
    }
}

/// Elements with a key are found by it, wherever they are; others count by their place.
fn is_list_covered(wish: &[Value], live: &[Value], fields: Option<&Value>) -> bool {
    let entry = |item: &Value| {
        let mut entries = fields?.as_object()?.iter();
        entries.find_map(|(step, below)| {
            let key: Map<String, Value> = serde_json::from_str(step.strip_prefix("k:")?).ok()?;
            has_key(item, &key).then_some(below)
        })
    };
    let key = KEYS.into_iter().find(|key| !wish.is_empty() && wish.iter().all(|item| item.get(key).is_some()));
    let Some(key) = key else {
        return wish.len() == live.len() && wish.iter().zip(live).all(|(wish, live)| is_covered(wish, live, None));
    };
    wish.iter()
        .all(|item| live.iter().any(|there| there.get(key) == item.get(key) && is_covered(item, there, entry(item))))
}

/// Whether a list or map that is ours as a whole is exactly as wished, but for what the API server fills in.
fn is_same(wish: &Value, live: &Value) -> bool {
    match (wish, live) {
        (Value::Object(wish), Value::Object(live)) => {
            let is_filled_in =
                |key: &str, value: &Value| FILLED_IN.contains(&(key, value.as_str().unwrap_or_default()));
            wish.iter()
                .all(|(key, value)| live.get(key).map_or_else(|| is_nothing(value), |there| is_same(value, there)))
                && live
                    .iter()
                    .all(|(key, value)| wish.contains_key(key) || is_nothing(value) || is_filled_in(key, value))
        }
        (Value::Array(wish), Value::Array(live)) => {
            wish.len() == live.len() && wish.iter().zip(live).all(|(wish, live)| is_same(wish, live))
        }
        _ => is_covered(wish, live, None),
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

/// `1024Mi` is stored as `1Gi`.
fn is_same_quantity(one: &str, other: &str) -> bool {
    match (quantity(one), quantity(other)) {
        (Some(one), Some(other)) => (one - other).abs() <= f64::EPSILON * one.abs(),
        _ => false,
    }
}

fn quantity(text: &str) -> Option<f64> {
    const SUFFIXES: [(&str, f64); 15] = [
        ("Ki", 1024.0),
        ("Mi", 1_048_576.0),
        ("Gi", 1_073_741_824.0),
        ("Ti", 1_099_511_627_776.0),
        ("Pi", 1_125_899_906_842_624.0),
        ("Ei", 1_152_921_504_606_846_976.0),
        ("n", 1e-9),
        ("u", 1e-6),
        ("m", 1e-3),
        ("k", 1e3),
        ("M", 1e6),
        ("G", 1e9),
        ("T", 1e12),
        ("P", 1e15),
        ("E", 1e18),
    ];
    let suffixed = SUFFIXES.iter().find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)));
    let (number, factor) = suffixed.unwrap_or((text, 1.0));
    if !number.starts_with(|c: char| c.is_ascii_digit() || matches!(c, '+' | '-' | '.')) {
        return None;
    }
    Some(number.parse::<f64>().ok()? * factor)
}

/// Whether we once applied something that we no longer wish: it would be removed.
fn has_dropped(fields: &Value, wish: &Value) -> bool {
    let Value::Object(fields) = fields else {
        return false;
    };
    fields.iter().any(|(step, below)| is_dropped(step, below, wish))
}

fn is_dropped(step: &str, below: &Value, wish: &Value) -> bool {
    if let Some(name) = step.strip_prefix("f:") {
        return match wish.get(name) {
            // What says nothing was perhaps never stored, but the field manager remembers that we sent it.
            Some(value) => !value.is_null() && has_dropped(below, value),
            None => true,
        };
    }
    if let Some(key) = step.strip_prefix("k:") {
        let Ok(Value::Object(key)) = serde_json::from_str(key) else {
            return false;
        };
        let items = wish.as_array().map(Vec::as_slice).unwrap_or_default();
        return match items.iter().find(|item| has_key(item, &key)) {
            Some(item) => has_dropped(below, item),
            None => true,
        };
    }
    if let Some(value) = step.strip_prefix("v:") {
        let items = wish.as_array().map(Vec::as_slice).unwrap_or_default();
        return serde_json::from_str::<Value>(value).is_ok_and(|value| !items.contains(&value));
    }
    false
}

/// Keys may have been completed by defaults (`protocol`): what the wish leaves out does not count.
fn has_key(item: &Value, key: &Map<String, Value>) -> bool {
    key.iter().all(|(name, value)| item.get(name).is_none_or(|own| own == value))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn live(spec: &Value, fields: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "Thing", "spec": spec,
            "metadata": {"name": "a", "managedFields": [
                {"manager": "us", "operation": "Apply", "fieldsV1": fields},
            ]},
        }))
        .unwrap()
    }

    fn is_different(wish: &Value, spec: &Value, fields: &Value) -> bool {
        differs(&json!({"spec": wish}), &live(spec, &json!({"f:spec": fields})), "us")
    }

    #[test]
    fn in_a_list_that_is_ours_as_a_whole_more_than_wished_is_a_difference() {
        let ours = json!({"f:ingress": {}});
        let wish = json!({"ingress": [{"ports": [{"port": 1}]}]});
        assert!(!is_different(&wish, &json!({"ingress": [{"ports": [{"port": 1, "protocol": "TCP"}]}]}), &ours));
        assert!(is_different(&wish, &json!({"ingress": [{"ports": [{"port": 1}], "from": [{"a": "b"}]}]}), &ours));
        assert!(is_different(&wish, &json!({"ingress": [{"ports": [{"port": 1}, {"port": 2}]}]}), &ours));
        let keyed = json!({"f:env": {r#"k:{"name":"A"}"#: {".": {}, "f:name": {}, "f:valueFrom": {"f:ref": {}}}}});
        let wish = json!({"env": [{"name": "A", "valueFrom": {"ref": {"path": "x"}}}]});
        let filled_in = json!({"env": [{"name": "A", "valueFrom": {"ref": {"path": "x", "apiVersion": "v1"}}}]});
        assert!(!is_different(&wish, &filled_in, &keyed));
        let more = json!({"env": [{"name": "A", "valueFrom": {"ref": {"path": "x", "key": "y"}}}]});
        assert!(is_different(&wish, &more, &keyed));
    }

    #[test]
    fn defaults_and_strangers_fields_are_no_difference() {
        let wish = json!({"ports": [{"port": 11211}], "paused": false, "labels": {}});
        let there = json!({"ports": [{"port": 11211, "protocol": "TCP"}, {"port": 1}], "other": 1});
        let fields = json!({"f:ports": {"k:{\"port\":11211,\"protocol\":\"TCP\"}": {"f:port": {}}}, "f:paused": {}});
        assert!(!is_different(&wish, &there, &fields));
    }

    #[test]
    fn an_object_from_a_list_says_not_what_it_is() {
        let mut listed = live(&json!({"a": 1}), &json!({"f:spec": {"f:a": {}}}));
        listed.types = None;
        assert!(!differs(&json!({"apiVersion": "v1", "kind": "Thing", "spec": {"a": 1}}), &listed, "us"));
    }

    #[test]
    fn a_key_that_somebody_added_to_a_map_of_ours_is_a_difference() {
        let wish = json!({"selector": {"a": "b"}});
        let there = json!({"selector": {"a": "b", "x": "y"}});
        assert!(is_different(&wish, &there, &json!({"f:selector": {}})), "what is ours as a whole has nothing more");
        assert!(is_different(&wish, &there, &json!({"f:other": {}, "f:ports": {}})), "not ours any more");
    }

    #[test]
    fn a_changed_value_is_a_difference() {
        assert!(is_different(&json!({"a": 1}), &json!({"a": 2}), &json!({"f:a": {}})));
        assert!(is_different(&json!({"a": 1}), &json!({}), &json!({"f:a": {}})));
    }

    #[test]
    fn quantities_are_compared_by_value() {
        let fields = json!({"f:memory": {}});
        assert!(!is_different(&json!({"memory": "1024Mi"}), &json!({"memory": "1Gi"}), &fields));
        assert!(!is_different(&json!({"memory": "0.5"}), &json!({"memory": "500m"}), &fields));
        assert!(is_different(&json!({"memory": "1025Mi"}), &json!({"memory": "1Gi"}), &fields));
        assert!(is_different(&json!({"memory": "Mi"}), &json!({"memory": "Gi"}), &fields));
    }

    #[test]
    fn what_we_applied_and_no_longer_wish_is_a_difference() {
        let fields = json!({"f:a": {}, "f:b": {}});
        assert!(is_different(&json!({"a": 1}), &json!({"a": 1, "b": 2}), &fields));
        let fields = json!({"f:list": {"k:{\"name\":\"x\"}": {"f:name": {}}, "k:{\"name\":\"y\"}": {"f:name": {}}}});
        let there = json!({"list": [{"name": "x"}, {"name": "y"}]});
        assert!(is_different(&json!({"list": [{"name": "x"}]}), &there, &fields));
        let fields = json!({"f:set": {"v:\"x\"": {}, "v:\"y\"": {}}});
        assert!(is_different(&json!({"set": ["x"]}), &json!({"set": ["x"]}), &fields));
    }

    #[test]
    fn what_we_never_applied_is_applied() {
        let stranger = live(&json!({"a": 1}), &json!({"f:spec": {"f:a": {}}}));
        assert!(differs(&json!({"spec": {"a": 1}}), &stranger, "somebody else"));
    }

    #[test]
    fn lists_without_keys_count_by_place() {
        let fields = json!({"f:args": {}});
        assert!(!is_different(&json!({"args": ["-m", "1"]}), &json!({"args": ["-m", "1"]}), &fields));
        assert!(is_different(&json!({"args": ["-m"]}), &json!({"args": ["-m", "1"]}), &fields));
    }
}
