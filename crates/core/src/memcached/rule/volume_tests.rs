use serde_json::{Value, json};

use super::*;

fn fields(volume: &Value, mount: &Value) -> Vec<String> {
    let spec = json!({"extraVolumes": [volume], "extraVolumeMounts": [mount]});
    let spec = serde_json::from_value(spec).unwrap();
    check(&spec).into_iter().map(|violation| violation.field.replace("spec.", "")).collect()
}

fn scratch() -> Value {
    json!({"name": "scratch", "emptyDir": {}})
}

#[test]
fn volumes_have_one_source_and_a_free_name() {
    let mount = |name: &str| json!({"name": name, "mountPath": "/scratch"});
    for good in [
        scratch(),
        json!({"name": "scratch", "configMap": {"name": "c", "items": [{"key": "k", "path": "a/b"}]}}),
        json!({"name": "scratch", "secret": {"secretName": "s", "defaultMode": 0o400}}),
        json!({"name": "scratch", "persistentVolumeClaim": {"claimName": "c"}}),
    ] {
        assert_eq!(fields(&good, &mount("scratch")), [""; 0], "{good}");
    }
    for (bad, field) in [
        (json!({"name": "scratch"}), "extraVolumes[0]"),
        (json!({"name": "scratch", "emptyDir": {}, "hostPath": {"path": "/x"}}), "extraVolumes[0]"),
        (json!({"name": "A", "emptyDir": {}}), "extraVolumes[0].name"),
        (json!({"name": "tls-certificates", "emptyDir": {}}), "extraVolumes[0].name"),
        (json!({"name": "extstore", "emptyDir": {}}), "extraVolumes[0].name"),
        (json!({"name": "scratch", "emptyDir": {"sizeLimit": "-1"}}), "extraVolumes[0].emptyDir.sizeLimit"),
        (
            json!({"name": "scratch", "secret": {"secretName": "s", "items": [{"key": "k", "path": "../x"}]}}),
            "extraVolumes[0].secret.items[0].path",
        ),
    ] {
        let name = bad["name"].as_str().unwrap();
        assert_eq!(fields(&bad, &mount(name)), [field], "{bad}");
    }
}

#[test]
fn mounts_keep_off_the_operators_own() {
    for good in ["/scratch", "/etc/memcached-extra", "/var/lib/memcached/other"] {
        assert_eq!(fields(&scratch(), &json!({"name": "scratch", "mountPath": good})), [""; 0], "{good}");
    }
    for bad in ["/", "/etc", "/etc/memcached/tls", "/etc/memcached/tls/x", "/etc//memcached/./sasl/", "rel", "/a:b"] {
        let refused = fields(&scratch(), &json!({"name": "scratch", "mountPath": bad}));
        assert_eq!(refused, ["extraVolumeMounts[0].mountPath"], "{bad}");
    }
    let unknown = fields(&scratch(), &json!({"name": "other", "mountPath": "/x"}));
    assert_eq!(unknown, ["extraVolumeMounts[0].name"]);
    let above = fields(&scratch(), &json!({"name": "scratch", "mountPath": "/x", "subPath": "../y"}));
    assert_eq!(above, ["extraVolumeMounts[0].subPath"]);
}
