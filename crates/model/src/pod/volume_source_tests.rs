use serde_json::{Value, json};

use super::*;
use crate::violation::refused;

fn fields(kind: &str, source: &Value) -> Vec<String> {
    let volume = serde_json::from_value(json!({"name": "scratch", kind: source})).unwrap();
    refused(|errors| check_source(errors, &volume, &["server"]))
}

fn claim(modes: &[&str], size: &str) -> Value {
    json!({"volumeClaimTemplate": {"spec": {
        "accessModes": modes, "storageClassName": "fast", "resources": {"requests": {"storage": size}},
    }}})
}

#[test]
fn sources_that_kubernetes_takes_pass() {
    for (kind, source) in [
        ("ephemeral", claim(&["ReadWriteOnce", "ReadOnlyMany"], "1Gi")),
        ("hostPath", json!({"path": "/x", "type": "Directory"})),
        ("nfs", json!({"server": "files", "path": "/x"})),
        ("csi", json!({"driver": "CSI.example.org", "nodePublishSecretRef": {"name": "s"}})),
        ("downwardAPI", json!({"items": [{"path": "name", "fieldRef": {"fieldPath": "metadata.name"}}]})),
    ] {
        assert_eq!(fields(kind, &source), [""; 0], "{kind}: {source}");
    }
}

#[test]
fn sources_that_kubernetes_would_refuse_are_refused_with_their_field() {
    let spec = |field: &str| format!("at.ephemeral.volumeClaimTemplate.spec.{field}");
    let item = |path: &str| json!([{"path": path, "fieldRef": {"fieldPath": "metadata.name"}}]);
    for (kind, source, field) in [
        ("ephemeral", json!({}), "at.ephemeral.volumeClaimTemplate".to_owned()),
        ("ephemeral", claim(&[], "1Gi"), spec("accessModes")),
        ("ephemeral", claim(&["ReadWriteOncePod", "ReadWriteOnce"], "1Gi"), spec("accessModes")),
        ("ephemeral", claim(&["ReadWriteOnce"], "0"), spec("resources.requests.storage")),
        ("hostPath", json!({"path": "/x/../y"}), "at.hostPath.path".into()),
        ("hostPath", json!({"path": "/x", "type": "Any"}), "at.hostPath.type".into()),
        ("nfs", json!({"server": "", "path": "/x"}), "at.nfs.server".into()),
        ("nfs", json!({"server": "files", "path": "x"}), "at.nfs.path".into()),
        ("csi", json!({"driver": "a b"}), "at.csi.driver".into()),
        (
            "csi",
            json!({"driver": "a", "nodePublishSecretRef": {"name": "A"}}),
            "at.csi.nodePublishSecretRef.name".into(),
        ),
        ("image", json!({"reference": "a b"}), "at.image.reference".into()),
        ("configMap", json!({"name": "c", "defaultMode": 0o1000}), "at.configMap.defaultMode".into()),
        ("configMap", json!({"name": "c", "items": [{"key": "a/b", "path": "x"}]}), "at.configMap.items[0].key".into()),
        ("downwardAPI", json!({"items": item("/x")}), "at.downwardAPI.items[0].path".into()),
        ("projected", json!({"sources": [{}]}), "at.projected.sources[0]".into()),
        ("emptyDir", json!({"medium": "Disk"}), "at.emptyDir.medium".into()),
        ("iscsi", json!({"targetPortal": "a", "iqn": "b", "lun": 0}), "at".into()),
    ] {
        let mut found = fields(kind, &source);
        found.dedup();
        assert_eq!(found, [field], "{kind}: {source}");
    }
}
