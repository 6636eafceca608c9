//! What is a difference and what is none.

use proptest::prelude::*;
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

fn is_different(desired: &Value, spec: &Value, fields: &Value) -> bool {
    differs(&json!({"spec": desired}), &live(spec, &json!({"f:spec": fields})), "us")
}

#[test]
fn in_a_list_that_is_ours_as_a_whole_more_than_desired_is_a_difference() {
    let ours = json!({"f:ingress": {}});
    let desired = json!({"ingress": [{"ports": [{"port": 1}]}]});
    assert!(!is_different(&desired, &json!({"ingress": [{"ports": [{"port": 1, "protocol": "TCP"}]}]}), &ours));
    assert!(is_different(&desired, &json!({"ingress": [{"ports": [{"port": 1}], "from": [{"a": "b"}]}]}), &ours));
    assert!(is_different(&desired, &json!({"ingress": [{"ports": [{"port": 1}, {"port": 2}]}]}), &ours));
    let keyed = json!({"f:env": {r#"k:{"name":"A"}"#: {".": {}, "f:name": {}, "f:valueFrom": {"f:ref": {}}}}});
    let desired = json!({"env": [{"name": "A", "valueFrom": {"ref": {"path": "x"}}}]});
    let filled_in = json!({"env": [{"name": "A", "valueFrom": {"ref": {"path": "x", "apiVersion": "v1"}}}]});
    assert!(!is_different(&desired, &filled_in, &keyed));
    let more = json!({"env": [{"name": "A", "valueFrom": {"ref": {"path": "x", "key": "y"}}}]});
    assert!(is_different(&desired, &more, &keyed));
}

#[test]
fn defaults_and_fields_of_others_are_no_difference() {
    let desired = json!({"ports": [{"port": 11211}], "paused": false, "labels": {}});
    let there = json!({"ports": [{"port": 11211, "protocol": "TCP"}, {"port": 1}], "other": 1});
    let fields = json!({"f:ports": {"k:{\"port\":11211,\"protocol\":\"TCP\"}": {"f:port": {}}}, "f:paused": {}});
    assert!(!is_different(&desired, &there, &fields));
}

#[test]
fn an_object_from_a_list_says_not_what_it_is() {
    let mut listed = live(&json!({"a": 1}), &json!({"f:spec": {"f:a": {}}}));
    listed.types = None;
    assert!(!differs(&json!({"apiVersion": "v1", "kind": "Thing", "spec": {"a": 1}}), &listed, "us"));
}

#[test]
fn a_key_that_somebody_added_to_a_map_of_ours_is_a_difference() {
    let desired = json!({"selector": {"a": "b"}});
    let there = json!({"selector": {"a": "b", "x": "y"}});
    assert!(is_different(&desired, &there, &json!({"f:selector": {}})), "what is ours as a whole has nothing more");
    assert!(is_different(&desired, &there, &json!({"f:other": {}, "f:ports": {}})), "not ours any more");
}

#[test]
fn a_changed_value_is_a_difference() {
    assert!(is_different(&json!({"a": 1}), &json!({"a": 2}), &json!({"f:a": {}})));
    assert!(is_different(&json!({"a": 1}), &json!({}), &json!({"f:a": {}})));
}

#[test]
fn quantities_are_compared_by_value() {
    let fields = json!({"f:resources": {"f:limits": {"f:memory": {}}}});
    let limit = |amount: &str| json!({"resources": {"limits": {"memory": amount}}});
    assert!(!is_different(&limit("1024Mi"), &limit("1Gi"), &fields));
    assert!(!is_different(&limit("0.5"), &limit("500m"), &fields));
    assert!(is_different(&limit("1025Mi"), &limit("1Gi"), &fields));
    assert!(is_different(&limit("Mi"), &limit("Gi"), &fields));
    for (place, fields) in [
        (json!({"emptyDir": {"sizeLimit": "1Gi"}}), json!({"f:emptyDir": {"f:sizeLimit": {}}})),
        (json!({"target": {"averageValue": "1Gi"}}), json!({"f:target": {"f:averageValue": {}}})),
    ] {
        let other = serde_json::from_str(&place.to_string().replace("1Gi", "1024Mi")).unwrap();
        assert!(!is_different(&place, &other, &fields), "{place}");
    }
}

#[test]
fn what_we_applied_and_no_longer_desire_is_a_difference() {
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
    let unmanaged = live(&json!({"a": 1}), &json!({"f:spec": {"f:a": {}}}));
    assert!(differs(&json!({"spec": {"a": 1}}), &unmanaged, "somebody else"));
}

#[test]
fn lists_without_keys_count_by_place() {
    let fields = json!({"f:args": {}});
    assert!(!is_different(&json!({"args": ["-m", "1"]}), &json!({"args": ["-m", "1"]}), &fields));
    assert!(is_different(&json!({"args": ["-m"]}), &json!({"args": ["-m", "1"]}), &fields));
}

#[test]
fn what_only_looks_like_a_quantity_is_compared_as_text() {
    for (place, fields) in [
        (json!({"labels": {"version": "@"}}), json!({"f:labels": {"f:version": {}}})),
        (json!({"env": [{"name": "A", "value": "@"}]}), json!({"f:env": {r#"k:{"name":"A"}"#: {"f:value": {}}}})),
        (json!({"annotations": {"sizeLimit": "@"}}), json!({"f:annotations": {"f:sizeLimit": {}}})),
        (json!({"nodeSelector": {"limits": "@"}}), json!({"f:nodeSelector": {"f:limits": {}}})),
        (json!({"args": ["-m", "@"]}), json!({"f:args": {}})),
    ] {
        let with = |text: &str| serde_json::from_str(&place.to_string().replace('@', text)).unwrap();
        for (desired, live) in [("1.10", "1.1"), ("007", "7"), ("1024", "1Ki"), ("1e3", "1000")] {
            assert!(is_different(&with(desired), &with(live), &fields), "{place}: {desired} and {live}");
        }
    }
}

/// Values as objects have them: maps, lists by name, lists by place, and what is in them.
fn value() -> impl Strategy<Value = Value> {
    let text = prop::sample::select(vec!["1", "1.0", "1Gi", "1024Mi", "01", "a", "true", "1e3", "1k"]);
    let leaf = prop_oneof![text.prop_map(|text| json!(text)), (1..3i64).prop_map(|n| json!(n)), Just(json!(true))];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let key = || prop::sample::select(vec!["a", "limits", "resources", "value", "sizeLimit", "metadata", "type"]);
        prop_oneof![
            prop::collection::btree_map(key(), inner.clone(), 1..4).prop_map(|map| json!(map)),
            prop::collection::vec(inner.clone(), 1..3).prop_map(|items| json!(items)),
            prop::collection::btree_map(prop::sample::select(vec!["x", "y"]), inner, 1..3).prop_map(|named| {
                let items = named.into_iter().map(|(name, value)| json!({"name": name, "spec": value}));
                items.collect()
            }),
        ]
    })
}

/// What the API server writes down as ours when all of this was applied.
fn fields_of(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            map.iter().map(|(key, value)| (format!("f:{key}"), fields_of(value))).collect::<Map<_, _>>().into()
        }
        Value::Array(items) if items.iter().all(|item| item.get("name").is_some()) => {
            let key = |item: &Value| format!("k:{}", json!({"name": item["name"]}));
            items.iter().map(|item| (key(item), fields_of(item))).collect::<Map<_, _>>().into()
        }
        _ => json!({}),
    }
}

/// The places of all values that hold no others.
fn leaves(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Object(map) => map.iter().for_each(|(key, value)| leaves(value, &format!("{path}/{key}"), found)),
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| leaves(value, &format!("{path}/{index}"), found));
        }
        _ => found.push(path.to_owned()),
    }
}

proptest! {
    #[test]
    fn every_changed_leaf_is_a_difference(spec in value(), pick in any::<prop::sample::Index>(), new in "[a-z0-9.]{1,4}") {
        let desired = json!({"spec": spec});
        let fields = fields_of(&desired);
        let object = |value: &Value| live(&value["spec"], &fields);
        prop_assert!(!differs(&desired, &object(&desired), "us"), "what was applied is no difference: {desired}");
        let mut paths = Vec::new();
        leaves(&desired, "", &mut paths);
        let path = pick.get(&paths);
        let mut changed = desired.clone();
        let leaf = changed.pointer_mut(path).unwrap();
        let as_text = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let keys = path.split('/').skip(1).filter(|step| step.parse::<usize>().is_err());
        let place = keys.fold(Place::default(), Place::below);
        // The one exception: the same quantity, written in another way, where Kubernetes has quantities.
        let is_same_amount = place.is_quantity() && is_same_quantity(leaf, &json!(new));
        prop_assume!(as_text(leaf) != new && !is_same_amount);
        *leaf = json!(new);
        prop_assert!(differs(&desired, &object(&changed), "us"), "{path}: {desired} and {changed}");
        prop_assert!(differs(&changed, &object(&desired), "us"), "{path}: {changed} and {desired}");
    }
}
