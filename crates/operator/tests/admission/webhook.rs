//! The operator's own answers: every example of the table through the API server, and by a posted review.

use std::time::Instant;

use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, PropagationPolicy};
use serde_json::{Value, json};

use crate::cel::{check, create};
use crate::example::{self, By, Example};
use crate::guarded::{Guarded, MUTATE, VALIDATE};

#[tokio::test]
async fn the_webhook_refuses_what_the_api_server_alone_cannot() {
    let guarded = Guarded::shared().await;
    let place = guarded.arena.namespace("webhook").await;
    let mut wrong = Vec::new();
    for version in ["v1alpha1", "v1beta1"] {
        let api = guarded.caches(place.name(), version).await;
        // A type that is left out of a change is filled in before anybody checks.
        let is_healed = |example: &Example| example.old.is_some() && example.spec["workload"].is_null();
        for example in example::all().into_iter().filter(|example| !is_healed(example)) {
            wrong.extend(check(&api, version, &example, |_| true).await.err());
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn a_posted_review_is_answered_like_the_api_server_would() {
    let guarded = Guarded::shared().await;
    let mut wrong = Vec::new();
    for example in example::all() {
        // What the schema refuses never gets here.
        if example.refusal.as_ref().is_some_and(|refusal| refusal.by == By::Schema) {
            continue;
        }
        let old = example.old_object("v1beta1");
        match (guarded.review(&example.object("v1beta1"), old.as_ref()).await, &example.refusal) {
            (Ok(()), Some(_)) => wrong.push(format!("{} is allowed", example.spec)),
            (Err(answer), None) => wrong.push(format!("{} is refused: {answer}", example.spec)),
            (Err(answer), Some(_)) if !example.is_told_by(&answer) => {
                wrong.push(format!("{} is refused in other words: {answer}", example.spec));
            }
            (Ok(()), None) | (Err(_), Some(_)) => {}
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[tokio::test]
async fn every_mistake_is_told_at_once_with_its_value() {
    let guarded = Guarded::shared().await;
    let object = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "sessions"},
        "spec": {
            "memcached": {"extraArgs": ["--port=1"], "maxConnections": 10},
            "security": {"tls": {"enabled": true}},
        },
    });
    let answer = guarded.review(&object, None).await.unwrap_err();
    for words in [
        "Memcached.memcached.c5c3.io \"sessions\" is invalid",
        "spec.memcached.extraArgs[0]: Invalid value: \"--port=1\"",
        "spec.memcached.maxConnections: Invalid value: 10",
        "spec.security.tls.certificateSecretRef",
    ] {
        assert!(answer.contains(words), "{words} is missing in: {answer}");
    }
}

#[tokio::test]
async fn what_will_hurt_is_warned_of() {
    let guarded = Guarded::shared().await;
    let place = guarded.arena.namespace("warned").await;
    let object = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "sessions"},
        "spec": {
            "image": "memcached:latest",
            "memcached": {"maxMemoryMB": 1024},
            "resources": {"limits": {"memory": "1060Mi"}},
        },
    });
    let path = format!("/apis/memcached.c5c3.io/v1beta1/namespaces/{}/memcacheds", place.name());
    let request = http::Request::post(path).header("content-type", "application/json");
    let answer =
        guarded.client().await.send(request.body(object.to_string().into_bytes().into()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), 201);
    // Clients print these.
    let warnings: String = answer.headers().get_all("warning").iter().map(|value| value.to_str().unwrap()).collect();
    for words in ["spec.resources.limits.memory", "it needs about", "spec.image"] {
        assert!(warnings.contains(words), "{words} is missing in:\n{warnings}");
    }
}

#[tokio::test]
async fn nonsense_is_turned_away_and_the_next_review_is_answered() {
    let guarded = Guarded::shared().await;
    let review = |object: Value| {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "1", "operation": "CREATE", "name": "x", "namespace": "default",
                "kind": {"group": "memcached.c5c3.io", "version": "v1beta1", "kind": "Memcached"},
                "resource": {"group": "memcached.c5c3.io", "version": "v1beta1", "resource": "memcacheds"},
                "userInfo": {}, "object": object,
            },
        })
    };
    let whole = |spec: Value| {
        review(json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "x"}, "spec": spec,
        }))
    };
    for path in [VALIDATE, MUTATE] {
        for body in ["", "null", "[]", "{", "{}", "\u{0}", "{\"kind\": \"Pod\"}", "{\"apiVersion\": 7}"] {
            let (status, answer) = guarded.post(path, body.as_bytes()).await;
            assert!((400..500).contains(&status), "{path} {body:?}: {status} {answer}");
        }
        for odd in [
            whole(Value::Null),
            whole(json!(7)),
            whole(json!({"replicas": "many"})),
            whole(json!({"memcached": []})),
            whole(json!({"no": {"such": "field"}})),
            whole(json!({"memcached": {"maxItemSize": "\u{1F4BE}"}})),
            whole(json!({"autoscaling": {"enabled": true, "metrics": [{"type": "Resource"}]}})),
            review(json!({"metadata": {"name": "x"}})),
            review(Value::Null),
        ] {
            let (status, answer) = guarded.post(path, odd.to_string().as_bytes()).await;
            assert!(status == 200 || (400..500).contains(&status), "{path} {odd}: {status} {answer}");
        }
    }
    assert!(!guarded.log().contains("panicked"), "{}", guarded.log());
    guarded
        .review(
            &json!({
                "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "x"}, "spec": {},
            }),
            None,
        )
        .await
        .unwrap();
}

#[tokio::test]
async fn while_the_operator_is_away_caches_can_go_and_nothing_else_is_held_up() {
    let guarded = Guarded::start().await;
    let place = guarded.arena.namespace("away").await;
    let api = guarded.caches(place.name(), "v1beta1").await;
    let object = |name: &str| {
        serde_json::from_value(json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": name}, "spec": {},
        }))
        .unwrap()
    };
    let ways = [PropagationPolicy::Background, PropagationPolicy::Foreground, PropagationPolicy::Orphan];
    for (number, _) in ways.iter().enumerate() {
        api.create(&PostParams::default(), &object(&format!("going-{number}"))).await.unwrap();
    }
    place.ready("going-0").await;
    guarded.arena.stop_operator();

    let refused = api.create(&PostParams::default(), &object("new")).await.unwrap_err().to_string();
    assert!(refused.contains("failed calling webhook") && refused.contains("memcached.c5c3.io"), "{refused}");
    let status = Patch::Merge(json!({"status": {"phase": "Patched"}}));
    api.patch_status("going-0", &PatchParams::default(), &status).await.unwrap();
    let labels = Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}}));
    api.patch("going-0", &PatchParams::default(), &labels).await.unwrap();
    let changed = Patch::Merge(json!({"spec": {"paused": true}}));
    assert!(api.patch("going-0", &PatchParams::default(), &changed).await.is_err(), "a new spec is not let in unseen");
    place.create(&json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "other"}}));
    for (number, way) in ways.into_iter().enumerate() {
        let name = format!("going-{number}");
        let how = DeleteParams { propagation_policy: Some(way), ..DeleteParams::default() };
        api.delete(&name, &how).await.unwrap();
        place.gone("memcached", &name).await;
    }
}

#[tokio::test]
async fn a_restarted_operator_serves_with_the_same_authority() {
    let guarded = Guarded::start().await;
    let before = guarded.authority().await;
    guarded.arena.stop_operator();
    guarded.start_operator().await;
    assert_eq!(guarded.authority().await, before);
    guarded
        .arena
        .cluster
        .kubectl(&["delete", "secret", "memcached-operator-webhook-cert", "--namespace", "memcached-operator-system"])
        .unwrap();
    testbed::wait::until("the Secret to be back", crate::harness::DEADLINE, async || {
        let get = ["get", "secret", "memcached-operator-webhook-cert", "--namespace", "memcached-operator-system"];
        guarded.arena.cluster.kubectl(&get).map_err(|error| error.to_string())
    })
    .await
    .unwrap();
    assert_eq!(guarded.authority().await, before, "what is still in use is kept");
}

/// Prints how long admission takes, for people: `make bench-admission`.
#[tokio::test]
#[ignore = "a measurement"]
async fn latency() {
    let guarded = Guarded::start().await;
    let api = guarded.caches("default", "v1beta1").await;
    let object = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached",
        "metadata": {"name": "sessions"}, "spec": {"replicas": 3, "monitoring": {"enabled": true}},
    });
    let with = measure(&api, &object).await;
    guarded.unship();
    tokio::time::sleep(std::time::Duration::from_secs(3)).await;
    let without = measure(&api, &object).await;
    println!("a create with both webhooks: p50 {} µs, p99 {} µs", with.0, with.1);
    println!("the same with CEL alone:     p50 {} µs, p99 {} µs", without.0, without.1);
    println!("ratio: p50 {:.2}, p99 {:.2}", ratio(with.0, without.0), ratio(with.1, without.1));
}

/// The median and the 99th percentile of a thousand requests, in microseconds.
async fn measure(api: &Api<DynamicObject>, object: &Value) -> (u128, u128) {
    let mut micros = Vec::new();
    for _ in 0..1000 {
        let began = Instant::now();
        create(api, object).await.unwrap();
        micros.push(began.elapsed().as_micros());
    }
    micros.sort_unstable();
    (micros[500], micros[990])
}

#[allow(clippy::cast_precision_loss, reason = "two digits are enough")]
fn ratio(one: u128, other: u128) -> f64 {
    one as f64 / other as f64
}
