use serde_json::{Value, json};

use super::super::LAYOUT;
use super::*;
use crate::violation::refused;

fn volumes(volumes: &Value) -> Vec<String> {
    let volumes: Vec<Volume> = serde_json::from_value(volumes.clone()).unwrap();
    refused(|errors| check_volumes(errors, &volumes, &LAYOUT))
}

fn mounts(mounts: &Value) -> Vec<String> {
    let mounts: Vec<VolumeMount> = serde_json::from_value(mounts.clone()).unwrap();
    let volumes: Vec<Volume> = serde_json::from_value(json!([{"name": "scratch", "emptyDir": {}}])).unwrap();
    refused(|errors| check_volume_mounts(errors, &mounts, ("spec.volumes", &volumes), &LAYOUT))
}

#[test]
fn volumes_have_one_source_and_a_free_name() {
    let token = json!({"serviceAccountToken": {"path": "token", "expirationSeconds": 600}});
    for good in [
        json!({"name": "scratch", "emptyDir": {}}),
        json!({"name": "scratch", "configMap": {"name": "c", "items": [{"key": "k", "path": "a/b"}]}}),
        json!({"name": "scratch", "secret": {"secretName": "s", "defaultMode": 0o400}}),
        json!({"name": "scratch", "persistentVolumeClaim": {"claimName": "c"}}),
        json!({"name": "scratch", "image": {"reference": "example.org/data:1", "pullPolicy": "Always"}}),
        json!({"name": "scratch", "projected": {"sources": [token]}}),
    ] {
        assert_eq!(volumes(&json!([good])), [""; 0], "{good}");
    }
    for (bad, field) in [
        (json!({"name": "scratch"}), "at[0]"),
        (json!({"name": "scratch", "emptyDir": {}, "hostPath": {"path": "/x"}}), "at[0]"),
        (json!({"name": "A", "emptyDir": {}}), "at[0].name"),
        (json!({"name": "credentials", "emptyDir": {}}), "at[0].name"),
        (json!({"name": "scratch", "emptyDir": {"sizeLimit": "-1"}}), "at[0].emptyDir.sizeLimit"),
        (json!({"name": "scratch", "secret": {}}), "at[0].secret.secretName"),
        (
            json!({"name": "scratch", "secret": {"secretName": "s", "items": [{"key": "k", "path": "../x"}]}}),
            "at[0].secret.items[0].path",
        ),
        (json!({"name": "scratch", "projected": {"sources": [token, token]}}), "at[0].projected.sources"),
    ] {
        assert_eq!(volumes(&json!([bad])), [field], "{bad}");
    }
}

#[test]
fn a_volume_is_given_once() {
    let volume = |name: &str| json!({"name": name, "emptyDir": {}});
    assert_eq!(volumes(&json!([volume("a"), volume("b")])), [""; 0]);
    assert_eq!(volumes(&json!([volume("a"), volume("b"), volume("a")])), ["at[2].name"]);
}

#[test]
fn mounts_keep_off_the_operators_own() {
    for good in ["/scratch", "/etc/server-extra", "/etc/server/other"] {
        assert_eq!(mounts(&json!([{"name": "scratch", "mountPath": good}])), [""; 0], "{good}");
    }
    for bad in ["/", "/etc", "/etc/server/tls", "/etc/server/tls/x", "/etc//server/./tls/", "rel", "/a:b"] {
        assert_eq!(mounts(&json!([{"name": "scratch", "mountPath": bad}])), ["at[0].mountPath"], "{bad}");
    }
}

#[test]
fn mounts_are_of_a_volume_that_there_is_and_each_at_a_path_of_its_own() {
    assert_eq!(mounts(&json!([{"name": "other", "mountPath": "/x"}])), ["at[0].name"]);
    let x = json!({"name": "scratch", "mountPath": "/x"});
    assert_eq!(mounts(&json!([x, x])), ["at[1].mountPath"]);
}

#[test]
fn mounts_stay_below_their_volume() {
    let with = |field: &str, value: Value| {
        let mut mount = json!({"name": "scratch", "mountPath": "/x", "subPath": "y"});
        mount[field] = value;
        mounts(&json!([mount]))
    };
    assert_eq!(with("subPath", json!("../y")), ["at[0].subPath"]);
    assert_eq!(with("subPathExpr", json!("$(POD)")), ["at[0].subPathExpr"]);
    assert_eq!(with("mountPropagation", json!("Bidirectional")), ["at[0].mountPropagation"]);
    assert_eq!(with("recursiveReadOnly", json!("Enabled")), ["at[0].recursiveReadOnly"]);
}
