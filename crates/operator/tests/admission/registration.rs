//! The shipped configurations have no entries: the operator applies its own once it serves, and nobody is locked out
//! before, by a deletion, or by a change that is none of the spec.

use kube::api::{Patch, PatchParams, PostParams};
use serde_json::{Value, json};
use testbed::wait;

use crate::guarded::{Guarded, KINDS, MUTATE, VALIDATE};
use crate::harness::DEADLINE;

fn cache(name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": name}, "spec": spec,
    })
}

/// The only entry of a configuration.
fn entry(guarded: &Guarded, kind: &str) -> Value {
    let entries = guarded.configuration(kind)["webhooks"].as_array().cloned().unwrap_or_default();
    assert_eq!(entries.len(), 1, "{kind}: {entries:#?}");
    entries[0].clone()
}

#[tokio::test]
async fn an_operator_that_did_not_come_up_locks_nobody_out_and_one_that_does_guards() {
    let guarded = Guarded::without_operator().await;
    let place = guarded.arena.namespace("unguarded").await;
    let api = guarded.caches(place.name(), "v1beta1").await;
    let create = async |object: Value| {
        api.create(&PostParams::default(), &serde_json::from_value(object).unwrap()).await.map_err(|e| e.to_string())
    };
    create(cache("sessions", &json!({}))).await.unwrap();
    let more = Patch::Merge(json!({"spec": {"replicas": 2}}));
    api.patch("sessions", &PatchParams::default(), &more).await.unwrap();
    let refused = create(cache("bad", &json!({"memcached": {"maxConnections": 10}}))).await.unwrap_err();
    assert!(refused.contains("maxConnections"), "the CustomResourceDefinition protects: {refused}");

    guarded.start_operator().await;
    place.ready("sessions").await;
    for (kind, path) in [(KINDS[0], VALIDATE), (KINDS[1], MUTATE)] {
        let entry = entry(&guarded, kind);
        assert_eq!(entry["failurePolicy"], "Fail");
        assert_eq!(entry["clientConfig"]["url"], format!("https://localhost:{}{path}", guarded.port));
        assert_eq!(entry["rules"][0]["operations"], json!(["CREATE", "UPDATE"]), "deletions are not asked about");
    }
}

#[tokio::test]
async fn a_restart_and_the_package_applied_again_write_nothing_and_leave_what_others_added() {
    let guarded = Guarded::start().await;
    let selector = json!({"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]});
    let add = json!([{"op": "add", "path": "/webhooks/0/namespaceSelector", "value": selector}]);
    for kind in KINDS {
        let patch = ["patch", kind, "memcached-operator", "--type=json", "--patch", &add.to_string()];
        guarded.arena.cluster.kubectl(&patch).unwrap();
    }
    let before = KINDS.map(|kind| guarded.configuration(kind));
    let mark = guarded.arena.cluster.audit().mark().unwrap();
    guarded.ship();
    guarded.arena.stop_operator();
    guarded.ship();
    guarded.start_operator().await;
    guarded.ship();
    assert_eq!(guarded.arena.writes_since(mark, ""), Vec::<String>::new());
    assert_eq!(KINDS.map(|kind| guarded.configuration(kind)), before, "not one version further");

    // What is the operator's is put back, and what is not stays.
    let place = guarded.arena.namespace("drift").await;
    let change = r#"[{"op": "replace", "path": "/webhooks/0/rules/0/operations", "value": ["*"]}]"#;
    let patch = ["patch", KINDS[0], "memcached-operator", "--type=json", "--patch", change];
    guarded.arena.cluster.kubectl(&patch).unwrap();
    let is_repaired = |live: &Value| {
        let entry = &live["webhooks"][0];
        entry["rules"][0]["operations"] == json!(["CREATE", "UPDATE"]) && entry["namespaceSelector"] == selector
    };
    place.eventually(KINDS[0], "memcached-operator", "repaired", is_repaired).await;
}

#[tokio::test]
async fn the_policy_is_the_flags_and_ignore_lets_changes_pass_while_the_operator_is_away() {
    let guarded = Guarded::without_operator().await;
    let place = guarded.arena.namespace("ignored").await;
    let arguments = ["--webhook-failure-policy=Ignore", "--webhook-timeout-seconds=3"];
    guarded.start_operator_with(&arguments).await;
    for kind in KINDS {
        let entry = entry(&guarded, kind);
        assert_eq!((&entry["failurePolicy"], &entry["timeoutSeconds"]), (&json!("Ignore"), &json!(3)));
    }
    guarded.arena.stop_operator();
    place.create(&cache("sessions", &json!({})));
    guarded.start_operator_with(&[&format!("--watch-namespaces={},default", place.name())]).await;
    wait::until("the entries to follow the flags", DEADLINE, async || {
        let entry = entry(&guarded, KINDS[0]);
        let condition = &entry["matchConditions"][2]["expression"];
        let is_so = entry["failurePolicy"] == "Fail"
            && *condition == json!(format!("request.namespace in ['{}', 'default']", place.name()));
        if is_so { Ok(()) } else { Err(format!("{entry:#}")) }
    })
    .await
    .unwrap();
    let elsewhere = guarded.arena.namespace("elsewhere").await;
    elsewhere.create(&cache("plain", &json!({})));
    let plain = elsewhere.get("memcached", "plain").unwrap();
    assert!(plain["spec"].get("replicas").is_none(), "nobody is asked about that namespace: {plain:#}");
}

#[tokio::test]
async fn without_a_configuration_of_its_own_the_operator_registers_nothing() {
    let guarded = Guarded::without_operator().await;
    let mark = guarded.arena.cluster.audit().mark().unwrap();
    let health = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let address = format!("--webhook-bind-address=127.0.0.1:{}", guarded.port);
    let health_address = format!("--health-probe-bind-address={health}");
    let words = ["--leader-elect=false", &address, "--webhook-configuration=", &health_address];
    guarded.arena.start_operator(&words);
    wait::until("the operator to serve its webhooks", DEADLINE, async || {
        let requests = guarded.arena.writes_since(mark, "memcached-operator-system");
        if requests.is_empty() { Err("no Secret yet".to_owned()) } else { Ok(()) }
    })
    .await
    .unwrap();
    let place = guarded.arena.namespace("olm").await;
    place.create(&cache("sessions", &json!({"replicas": 1})));
    place.ready("sessions").await;
    assert_eq!(guarded.arena.writes_since(mark, ""), Vec::<String>::new());
    assert!(guarded.configuration(KINDS[0]).get("webhooks").is_none());
}

#[tokio::test]
async fn deletions_and_unchanged_specs_pass_a_review_whatever_they_break() {
    let guarded = Guarded::shared().await;
    // Admitted before a rule was there.
    let old = cache("sessions", &json!({"memcached": {"maxConnections": 10}}));
    let mut labelled = old.clone();
    labelled["metadata"]["labels"] = json!({"a": "b"});
    let mut terminating = cache("sessions", &json!({"memcached": {"maxConnections": 11}}));
    terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
    let changed = cache("sessions", &json!({"memcached": {"maxConnections": 11}}));
    for path in [VALIDATE, MUTATE] {
        for (what, operation, object, old) in [
            ("a label", "UPDATE", Some(&labelled), Some(&old)),
            ("nothing", "UPDATE", Some(&old), Some(&old)),
            ("a finalizer that goes", "UPDATE", Some(&terminating), Some(&old)),
            ("a deletion", "DELETE", None, Some(&old)),
        ] {
            let response = guarded.ask(path, operation, object, old).await;
            assert_eq!(response["allowed"], true, "{path} {what}: {response:#}");
            assert!(response.get("patch").is_none(), "{path} {what}: {response:#}");
        }
    }
    let refused = guarded.ask(VALIDATE, "UPDATE", Some(&changed), Some(&old)).await;
    assert_eq!(refused["allowed"], false, "a new spec is checked: {refused:#}");
}
