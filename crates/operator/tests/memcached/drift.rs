//! What somebody changes by hand comes back; what is not ours survives.

use serde_json::{Value, json};

use crate::harness::{Arena, Place, server};

/// A cache with every child that needs no optional kind.
pub fn everything() -> Value {
    json!({
        "replicas": 2,
        "highAvailability": {"podDisruptionBudget": {"enabled": true, "minAvailable": 1}},
        "security": {"networkPolicy": {"enabled": true}},
        "service": {"type": "ClusterIP", "annotations": {"a": "b"}},
    })
}

const CHILDREN: [(&str, &str); 5] = [
    ("deployment", "sessions"),
    ("service", "sessions"),
    ("service", "sessions-client"),
    ("poddisruptionbudget", "sessions"),
    ("networkpolicy", "sessions"),
];

async fn ready(place: &Place<'_>) {
    place.declare("sessions", everything()).await;
    place.ready("sessions").await;
}

#[tokio::test]
async fn a_deleted_child_is_made_again() {
    let arena = Arena::shared().await;
    let place = arena.namespace("deleted").await;
    ready(&place).await;
    for (kind, name) in CHILDREN {
        let before = place.get(kind, name).unwrap();
        place.namespace.kubectl(&["delete", kind, name, "--wait=false"]).unwrap();
        let uid = before["metadata"]["uid"].clone();
        place.eventually(kind, name, "made again", |object| object["metadata"]["uid"] != uid).await;
    }
    place.ready("sessions").await;
}

#[tokio::test]
async fn an_edited_child_is_repaired() {
    let arena = Arena::shared().await;
    let place = arena.namespace("edited").await;
    ready(&place).await;
    place.edit("deployment", "sessions", &json!({"spec": {"replicas": 5}}));
    place.eventually("deployment", "sessions", "two again", |d| d["spec"]["replicas"] == 2).await;
    place.edit("service", "sessions", &json!({"spec": {"selector": {"app.kubernetes.io/instance": "other"}}}));
    place
        .eventually("service", "sessions", "selecting its own", |s| {
            s["spec"]["selector"]["app.kubernetes.io/instance"] == "sessions"
        })
        .await;
    place.edit("service", "sessions", &json!({"spec": {"selector": {"more": "x"}}}));
    place
        .eventually("service", "sessions", "without an unmanaged selector", |s| s["spec"]["selector"]["more"].is_null())
        .await;
    place.edit("poddisruptionbudget", "sessions", &json!({"spec": {"minAvailable": 2}}));
    place.eventually("poddisruptionbudget", "sessions", "one again", |b| b["spec"]["minAvailable"] == 1).await;
    place.edit("networkpolicy", "sessions", &json!({"spec": {"ingress": []}}));
    place
        .eventually("networkpolicy", "sessions", "open for its port", |p| {
            p["spec"]["ingress"][0]["ports"][0]["port"] == 11211
        })
        .await;
    let args = json!({"spec": {"template": {"spec": {"containers": [{"name": "memcached", "args": ["-m", "1"]}]}}}});
    place
        .namespace
        .kubectl(&["patch", "deployment", "sessions", "--type=strategic", "--patch", &args.to_string()])
        .unwrap();
    place.eventually("deployment", "sessions", "its own arguments", |d| server(d)["args"][1] == "64").await;
}

#[tokio::test]
async fn an_edited_autoscaler_is_repaired() {
    let arena = Arena::shared().await;
    let place = arena.namespace("edited-hpa").await;
    let spec = json!({
        "resources": {"requests": {"cpu": "10m"}},
        "autoscaling": {"enabled": true, "minReplicas": 2, "maxReplicas": 4},
    });
    place.declare("sessions", spec).await;
    place.ready("sessions").await;
    place.edit("hpa", "sessions", &json!({"spec": {"maxReplicas": 9}}));
    place.eventually("hpa", "sessions", "four again", |h| h["spec"]["maxReplicas"] == 4).await;
    place.namespace.kubectl(&["delete", "hpa", "sessions"]).unwrap();
    place.eventually("hpa", "sessions", "made again", |h| h["spec"]["maxReplicas"] == 4).await;
}

#[tokio::test]
async fn what_others_add_survives() {
    let arena = Arena::shared().await;
    let place = arena.namespace("added").await;
    ready(&place).await;
    place.edit("service", "sessions", &json!({"metadata": {"annotations": {"mesh": "yes"}, "labels": {"team": "x"}}}));
    place.namespace.kubectl(&["rollout", "restart", "deployment/sessions"]).unwrap();
    let restarted =
        |d: &Value| d["spec"]["template"]["metadata"]["annotations"]["kubectl.kubernetes.io/restartedAt"].is_string();
    assert!(restarted(&place.get("deployment", "sessions").unwrap()));
    place
        .declare("sessions", {
            let mut spec = everything();
            spec["replicas"] = json!(3);
            spec["service"]["annotations"] = json!({"c": "d"});
            spec
        })
        .await;
    let service = place
        .eventually("service", "sessions", "the new annotation", |s| s["metadata"]["annotations"]["c"] == "d")
        .await;
    assert_eq!(service["metadata"]["annotations"], json!({"c": "d", "mesh": "yes"}));
    assert_eq!(service["metadata"]["labels"]["team"], "x");
    let deployment = place.eventually("deployment", "sessions", "three", |d| d["spec"]["replicas"] == 3).await;
    assert!(restarted(&deployment), "the restart that somebody asked for is not undone");
    place.ready("sessions").await;
}

#[tokio::test]
async fn children_that_are_no_longer_wanted_go() {
    let arena = Arena::shared().await;
    let place = arena.namespace("unwanted").await;
    ready(&place).await;
    place.declare("sessions", json!({"replicas": 2})).await;
    place.gone("poddisruptionbudget", "sessions").await;
    place.gone("networkpolicy", "sessions").await;
    place.gone("service", "sessions-client").await;
    let service =
        place.eventually("service", "sessions", "plain", |s| s["metadata"]["annotations"]["a"].is_null()).await;
    assert_eq!(service["spec"]["clusterIP"], "None");
}

/// Seen once: "1.10" was taken for the quantity 1.1, and the change never applied while Ready was True.
#[tokio::test]
async fn a_value_that_only_looks_like_the_old_one_is_applied() {
    let arena = Arena::shared().await;
    let place = arena.namespace("alike").await;
    let spec = |label: &str, value: &str| json!({"replicas": 1, "podLabels": {"release": label}, "env": [{"name": "COUNT", "value": value}]});
    place.declare("sessions", spec("1.1", "7")).await;
    place.ready("sessions").await;
    place.declare("sessions", spec("1.10", "007")).await;
    place
        .eventually("deployment", "sessions", "the new label and variable", |deployment| {
            deployment["spec"]["template"]["metadata"]["labels"]["release"] == "1.10"
                && server(deployment)["env"][0]["value"] == "007"
        })
        .await;
    place.ready("sessions").await;
}
