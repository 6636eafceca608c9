//! Caches of the other operator: taken over as they run, and changed only by who declares a change.

use serde_json::{Value, json};

use crate::harness::{Arena, Place, labels, server};

/// A cache as the other operator leaves it: its Deployment, and a status that says that it is up to date.
async fn left_by_other_operator(place: &Place<'_>, spec: Value, container: Value) {
    let cache = place.declare("sessions", spec).await;
    let owner = json!([{
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "name": "sessions",
        "uid": cache.metadata.uid, "controller": true, "blockOwnerDeletion": true,
    }]);
    let labels = labels("sessions");
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "sessions", "labels": labels, "ownerReferences": owner},
        "spec": {
            "replicas": 2, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), deployment.to_string()).unwrap();
    let path = file.path().to_str().unwrap();
    place.namespace.kubectl(&["create", "--field-manager=manager", "--filename", path]).unwrap();
    let text = json!({"status": {"observedGeneration": 1}}).to_string();
    place
        .namespace
        .kubectl(&["patch", "memcached", "sessions", "--subresource=status", "--type=merge", "--patch", &text])
        .unwrap();
}

#[tokio::test]
async fn another_operators_cache_is_taken_over_without_a_restart() {
    let arena = Arena::without_operator().await;
    let place = arena.namespace("takeover").await;
    let container = json!({"name": "memcached", "image": "memcached:1.6", "args": ["-m", "64"]});
    left_by_other_operator(&place, json!({"replicas": 2}), container).await;
    let before = place.get("deployment", "sessions").unwrap();

    arena.start_operator(&["--leader-elect=false"]);
    let cache = place.ready("sessions").await;
    assert!(cache["status"]["pendingDefaults"].is_string());
    let after = place.get("deployment", "sessions").unwrap();
    assert_eq!(after["spec"]["template"], before["spec"]["template"]);
    assert_eq!(server(&after)["args"], json!(["-m", "64"]));

    place.declare("sessions", json!({"replicas": 2, "memcached": {"threads": 2}})).await;
    let changed = place.eventually("deployment", "sessions", "our own template", |d| server(d)["args"][5] == "2").await;
    assert!(server(&changed)["securityContext"]["allowPrivilegeEscalation"] == false);
}

#[tokio::test]
async fn tls_on_11211_does_not_become_plaintext_at_the_next_change() {
    let arena = Arena::without_operator().await;
    let place = arena.namespace("takeover-tls").await;
    place.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "certs"},
        "stringData": {"tls.crt": "a certificate", "tls.key": "a key"},
    }));
    let with_threads = |threads: i32| {
        let tls = json!({"enabled": true, "certificateSecretRef": {"name": "certs"}});
        json!({"replicas": 2, "memcached": {"threads": threads}, "security": {"tls": tls}})
    };
    let args = ["-m", "64", "-t", "4", "-Z", "-o", "ssl_chain_cert=/x", "-o", "ssl_key=/y"];
    let container = json!({"name": "memcached", "image": "memcached:1.6", "args": args});
    left_by_other_operator(&place, with_threads(4), container).await;

    arena.start_operator(&["--leader-elect=false"]);
    let seen = |cache: &Value| cache["status"]["pendingDefaults"].is_string();
    place.eventually("memcached", "sessions", "taken over", seen).await;
    assert_eq!(server(&place.get("deployment", "sessions").unwrap())["args"], json!(args));
    for threads in [8, 2] {
        place.declare("sessions", with_threads(threads)).await;
        let is_built = |d: &Value| server(d)["args"][5].as_str() == Some(&threads.to_string());
        let built = place.eventually("deployment", "sessions", "a template of ours", is_built).await;
        let listeners = json!(["memcached", "-l", "notls:127.0.0.1:11213,*:11211,*:11212"]);
        assert_eq!(server(&built)["command"], listeners, "{threads}");
    }
}
