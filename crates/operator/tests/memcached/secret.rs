//! Secrets: noticed when they appear, change or vanish; never read without need.

use serde_json::{Value, json};

use crate::harness::{Arena, OPERATOR, condition};

fn with_password() -> Value {
    json!({"replicas": 1, "security": {"sasl": {"enabled": true, "credentialsSecretRef": {"name": "creds"}}}})
}

fn hash(deployment: &Value) -> Value {
    deployment["spec"]["template"]["metadata"]["annotations"]["memcached.c5c3.io/secret-hash"].clone()
}

#[tokio::test]
async fn a_secret_that_appears_changes_and_vanishes_is_noticed() {
    let arena = Arena::shared().await;
    let place = arena.namespace("secret").await;
    place.declare("sessions", with_password()).await;
    let cache = place
        .eventually("memcached", "sessions", "told", |c| condition(c, "Degraded")["reason"] == "SecretNotFound")
        .await;
    let message = condition(&cache, "Degraded")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("\"creds\"") && message.contains("password-file"), "{message}");

    let secret = |password: &str, extra: &str| {
        json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"},
            "stringData": {"password-file": password, "unrelated": extra},
        })
    };
    place.create(&secret("u:1", "x"));
    let first = place.eventually("deployment", "sessions", "a hash", |d| hash(d).is_string()).await;
    place.ready("sessions").await;
    place.eventually("memcached", "sessions", "healed", |c| condition(c, "Degraded")["reason"] == "NotDegraded").await;

    place.edit("secret", "creds", &json!({"stringData": {"unrelated": "y"}}));
    place.edit("secret", "creds", &json!({"stringData": {"password-file": "u:2"}}));
    let second = place.eventually("deployment", "sessions", "another hash", |d| hash(d) != hash(&first)).await;
    place.ready("sessions").await;
    let generation = |d: &Value| d["metadata"]["generation"].as_i64().unwrap();
    assert_eq!(generation(&second), generation(&first) + 1, "the key that is not mounted rolled nothing");

    place.namespace.kubectl(&["delete", "secret", "creds"]).unwrap();
    place
        .eventually("memcached", "sessions", "told again", |c| condition(c, "Degraded")["reason"] == "SecretNotFound")
        .await;
    let third = place.get("deployment", "sessions").unwrap();
    assert_eq!(generation(&third), generation(&second), "running pods are left alone");
}

#[tokio::test]
async fn only_referenced_secrets_are_read_each_by_its_name() {
    let arena = Arena::shared().await;
    let place = arena.namespace("unread").await;
    let mark = arena.cluster.audit().mark().unwrap();
    place.create(&json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "private"}}));
    place.declare("sessions", with_password()).await;
    place.eventually("memcached", "sessions", "told", |c| condition(c, "Degraded")["reason"] == "SecretNotFound").await;
    place.edit("secret", "private", &json!({"stringData": {"password": "hunter2"}}));
    place.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"}, "stringData": {"password-file": "u:1"},
    }));
    place.eventually("deployment", "sessions", "a hash", |d| hash(d).is_string()).await;
    let requests = arena.cluster.audit().requests_since(mark).unwrap();
    let ours = requests.iter().filter(|r| r.user == OPERATOR && r.resource == "secrets" && r.namespace == place.name());
    let ours: Vec<_> = ours.map(|request| (request.verb.as_str(), request.name.as_str())).collect();
    assert!(!ours.is_empty() && ours.iter().all(|request| *request == ("get", "creds")), "{ours:?}");
}

#[tokio::test]
async fn all_secrets_of_a_scope_are_told_of_by_one_watch() {
    let arena = Arena::start(&["--leader-elect=false"]).await;
    let place = arena.namespace("many-secrets").await;
    let mark = arena.cluster.audit().mark().unwrap();
    for number in 0..20 {
        place.create(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": format!("creds-{number}")},
            "stringData": {"password-file": "u:1"},
        }));
        let reference = json!({"name": format!("creds-{number}")});
        let sasl = json!({"enabled": true, "credentialsSecretRef": reference});
        place.declare(&format!("sessions-{number}"), json!({"replicas": 0, "security": {"sasl": sasl}})).await;
    }
    for number in 0..20 {
        place.eventually("deployment", &format!("sessions-{number}"), "a hash", |d| hash(d).is_string()).await;
    }
    let requests = arena.cluster.audit().requests_since(mark).unwrap();
    let watches = requests.iter().filter(|r| r.user == OPERATOR && r.resource == "secrets" && r.verb == "watch");
    assert!(watches.count() <= 2, "one, or one more after an interruption");
    let before = place.get("deployment", "sessions-7").unwrap();
    place.edit("secret", "creds-7", &json!({"stringData": {"password-file": "u:2"}}));
    place.eventually("deployment", "sessions-7", "another hash", |d| hash(d) != hash(&before)).await;
    // As many connections as there are requests at a time, and a few for watches.
    let sockets = arena.operator.lock().unwrap().as_ref().unwrap().sockets();
    assert!(sockets <= 24, "{sockets} sockets");
}

#[tokio::test]
async fn a_secret_that_may_not_be_read_is_told_and_keeps_nothing_else_from_being_made() {
    let arena = Arena::without_operator().await;
    let role = arena.cluster.kubectl(&["get", "clusterrole", "memcached-operator", "--output", "json"]).unwrap();
    let mut role: Value = serde_json::from_str(&role).unwrap();
    role["rules"].as_array_mut().unwrap().retain(|rule| rule["resources"] != json!(["secrets"]));
    let patch = json!({"rules": role["rules"]}).to_string();
    arena.cluster.kubectl(&["patch", "clusterrole", "memcached-operator", "--type=merge", "--patch", &patch]).unwrap();
    arena.start_operator(&["--leader-elect=false"]);
    let place = arena.namespace("forbidden").await;
    place.create(&json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"}, "stringData": {"password-file": "u:1"},
    }));
    place.declare("sessions", with_password()).await;
    let cache = place
        .eventually("memcached", "sessions", "told", |c| condition(c, "Degraded")["reason"] == "SecretUnreadable")
        .await;
    let message = condition(&cache, "Degraded")["message"].as_str().unwrap().to_owned();
    assert!(message.contains("\"creds\"") && message.contains("rights on Secrets"), "{message}");
    place.eventually("service", "sessions", "made all the same", |s| s["metadata"]["uid"].is_string()).await;
    place.eventually("deployment", "sessions", "made all the same", |d| d["metadata"]["uid"].is_string()).await;

    let file = crate::harness::manifest("config/rbac/cluster.yaml");
    let apply = ["apply", "--server-side", "--force-conflicts", "--filename", &file];
    arena.cluster.kubectl(&apply).unwrap();
    place.eventually("deployment", "sessions", "the hash of what was read", |d| hash(d).is_string()).await;
    place.eventually("memcached", "sessions", "healed", |c| condition(c, "Degraded")["reason"] == "NotDegraded").await;
}
