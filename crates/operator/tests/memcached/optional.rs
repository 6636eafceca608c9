//! Kinds that a cluster may lack: everything else works, and they are picked up when they come.

use serde_json::{Value, json};

use crate::harness::{Arena, Place, condition, optional};

fn asking_for_both() -> Value {
    json!({
        "replicas": 1,
        "monitoring": {"enabled": true, "serviceMonitor": {"additionalLabels": {"release": "x"}}},
        "security": {"tls": {"enabled": true, "issuerRef": {"name": "ca"}}},
    })
}

#[tokio::test]
async fn missing_kinds_are_told_and_picked_up_without_a_restart() {
    let arena = Arena::start(&["--leader-elect=false"]).await;
    let place = arena.namespace("optional").await;
    place.declare("sessions", asking_for_both()).await;
    let cache = place
        .eventually("memcached", "sessions", "told", |c| {
            let text = c["status"]["conditions"].to_string();
            text.contains("monitoring.coreos.com is not installed") && text.contains("cert-manager.io is not installed")
        })
        .await;
    assert_eq!(condition(&cache, "Degraded")["status"], "True");
    place.eventually("deployment", "sessions", "made all the same", |d| d["metadata"]["uid"].is_string()).await;

    for kind in optional::definitions() {
        place.create(&kind);
    }
    let monitor = place
        .eventually("servicemonitors.monitoring.coreos.com", "sessions", "made", |m| m["spec"]["endpoints"].is_array())
        .await;
    assert_eq!(monitor["spec"]["endpoints"][0], json!({"port": "metrics", "interval": "30s", "scrapeTimeout": "10s"}));
    assert_eq!(monitor["metadata"]["labels"]["release"], "x");
    let certificate = place
        .eventually("certificates.cert-manager.io", "sessions", "made", |c| c["spec"]["secretName"].is_string())
        .await;
    assert_eq!(certificate["spec"]["issuerRef"], json!({"name": "ca", "kind": "Issuer", "group": "cert-manager.io"}));

    let kind = "certificates.cert-manager.io";
    place.edit(kind, "sessions", &json!({"spec": {"secretName": "elsewhere"}}));
    place.eventually(kind, "sessions", "its own Secret", |c| c["spec"]["secretName"] == "sessions-tls").await;
    place.namespace.kubectl(&["delete", "servicemonitors.monitoring.coreos.com", "sessions"]).unwrap();
    place
        .eventually("servicemonitors.monitoring.coreos.com", "sessions", "made again", |m| {
            m["metadata"]["uid"] != monitor["metadata"]["uid"]
        })
        .await;
    unowned_objects_are_left_alone(&place).await;
}

async fn unowned_objects_are_left_alone(place: &Place<'_>) {
    let kinds = [("monitoring.coreos.com", "ServiceMonitor"), ("cert-manager.io", "Certificate")];
    for (group, kind) in kinds {
        place.create(&json!({
            "apiVersion": format!("{group}/v1"), "kind": kind, "metadata": {"name": "taken"}, "spec": {"own": true},
        }));
    }
    place.declare("taken", asking_for_both()).await;
    let cache = place
        .eventually("memcached", "taken", "told of both", |c| {
            let text = condition(c, "Degraded")["message"].to_string();
            kinds.iter().all(|(_, kind)| text.contains(&format!("{kind} \\\"taken\\\" exists")))
        })
        .await;
    assert!(condition(&cache, "Degraded")["message"].as_str().unwrap().contains("delete or rename"));
    for (_, kind) in kinds {
        let object = place.get(kind, "taken").unwrap();
        assert_eq!(object["spec"], json!({"own": true}));
        assert!(object["metadata"]["ownerReferences"].is_null());
    }
}
