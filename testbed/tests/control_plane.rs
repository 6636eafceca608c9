//! The control plane is a real one: controllers act, RBAC refuses, every request is counted.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod processes;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::{Deployment, ReplicaSet};
use k8s_openapi::api::core::v1::{ConfigMap, Pod, Secret};
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::Api;
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams};
use processes::processes_of;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testbed::{ControlPlane, User, wait};

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn config_map(name: &str) -> ConfigMap {
    object(json!({"metadata": {"name": name}, "data": {"key": "value"}}))
}

fn status_code(error: &kube::Error) -> u16 {
    match error {
        kube::Error::Api(status) => status.code,
        other => panic!("no answer of the API server: {other}"),
    }
}

#[tokio::test]
async fn two_run_at_once_and_know_nothing_of_each_other() {
    let (one, two) = tokio::join!(ControlPlane::start(), ControlPlane::start());
    let (one, two) = (one.unwrap(), two.unwrap());
    assert_ne!(one.url(), two.url());
    let here: Api<ConfigMap> = Api::namespaced(one.client().await.unwrap(), "default");
    let there: Api<ConfigMap> = Api::namespaced(two.client().await.unwrap(), "default");
    here.create(&PostParams::default(), &config_map("only-here")).await.unwrap();
    assert!(here.get_opt("only-here").await.unwrap().is_some());
    assert!(there.get_opt("only-here").await.unwrap().is_none());
}

#[tokio::test]
async fn controllers_make_a_replica_set_and_garbage_collection_takes_it_away() {
    let cluster = ControlPlane::start().await.unwrap();
    let namespace = cluster.namespace("gc").await.unwrap();
    let deployments = namespace.api::<Deployment>();
    let replica_sets = namespace.api::<ReplicaSet>();
    let deployment = object(json!({
        "metadata": {"name": "cache"},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "cache"}},
            "template": {
                "metadata": {"labels": {"app": "cache"}},
                "spec": {"containers": [{"name": "memcached", "image": "memcached:1.6"}]},
            },
        },
    }));
    deployments.create(&PostParams::default(), &deployment).await.unwrap();
    let pods = namespace.api::<Pod>();
    let count = async || {
        let all = ListParams::default();
        let sets = replica_sets.list(&all).await.map_or(usize::MAX, |list| list.items.len());
        (sets, pods.list(&all).await.map_or(usize::MAX, |list| list.items.len()))
    };
    wait::until("one ReplicaSet with two pods", 60, async || match count().await {
        (1, 2) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .unwrap();
    deployments.delete("cache", &DeleteParams::background()).await.unwrap();
    wait::until("garbage collection", 60, async || match count().await {
        (0, 0) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn a_user_may_do_what_rbac_says_and_nothing_else() {
    let cluster = ControlPlane::start().await.unwrap();
    let user = User::service_account("default", "reader");
    let client = cluster.client_as(&user).await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    let refused = maps.list(&ListParams::default()).await.unwrap_err();
    assert_eq!(status_code(&refused), 403, "{refused}");

    let admin = cluster.client().await.unwrap();
    let role: Role = object(json!({
        "metadata": {"name": "reader"},
        "rules": [{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["list"]}],
    }));
    let binding: RoleBinding = object(json!({
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "reader"},
        "subjects": [{"kind": "ServiceAccount", "name": "reader", "namespace": "default"}],
    }));
    Api::namespaced(admin.clone(), "default").create(&PostParams::default(), &role).await.unwrap();
    Api::namespaced(admin, "default").create(&PostParams::default(), &binding).await.unwrap();
    wait::until("the binding to take effect", 60, async || {
        maps.list(&ListParams::default()).await.map(drop).map_err(|e| e.to_string())
    })
    .await
    .unwrap();
    let refused = maps.create(&PostParams::default(), &config_map("no")).await.unwrap_err();
    assert_eq!(status_code(&refused), 403, "{refused}");
    let secrets: Api<Secret> = Api::namespaced(client, "default");
    assert_eq!(status_code(&secrets.list(&ListParams::default()).await.unwrap_err()), 403);
}

#[tokio::test]
async fn groups_of_a_user_count_for_rbac() {
    let cluster = ControlPlane::start().await.unwrap();
    for user in [User::new("a").group("system:masters").group("b"), User::new("a").group("b").group("system:masters")] {
        let maps: Api<ConfigMap> = Api::namespaced(cluster.client_as(&user).await.unwrap(), "default");
        maps.list(&ListParams::default()).await.unwrap();
    }
}

#[tokio::test]
async fn the_counter_counts_exactly_what_a_script_did() {
    let cluster = ControlPlane::start().await.unwrap();
    let user = User::new("counted").group("system:masters");
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client_as(&user).await.unwrap(), "default");
    maps.create(&PostParams::default(), &config_map("before")).await.unwrap();
    let mark = cluster.audit().mark().unwrap();

    for number in 0..5 {
        maps.create(&PostParams::default(), &config_map(&format!("map-{number}"))).await.unwrap();
    }
    for _ in 0..3 {
        maps.list(&ListParams::default()).await.unwrap();
    }
    let patch = Patch::Merge(json!({"data": {"key": "other"}}));
    maps.patch("map-0", &PatchParams::default(), &patch).await.unwrap();
    maps.get("map-0").await.unwrap();
    maps.get_opt("not-there").await.unwrap();
    maps.delete("map-1", &DeleteParams::default()).await.unwrap();

    let counts = cluster.audit().count_by("counted", mark).unwrap();
    let expected = [("create", 5), ("list", 3), ("patch", 1), ("get", 2), ("delete", 1)];
    let expected: BTreeMap<_, _> =
        expected.into_iter().map(|(verb, count)| ((verb.to_owned(), "configmaps".to_owned()), count)).collect();
    assert_eq!(counts, expected);
    let writes = cluster.audit().requests_since(mark).unwrap();
    let writes = writes.iter().filter(|r| r.user == "counted" && r.is_write()).count();
    assert_eq!(writes, 7);
}

#[tokio::test]
async fn data_survives_a_crash_of_the_api_server() {
    let mut cluster = ControlPlane::start().await.unwrap();
    let maps: Api<ConfigMap> = Api::namespaced(cluster.client().await.unwrap(), "default");
    maps.create(&PostParams::default(), &config_map("kept")).await.unwrap();
    cluster.stop_api_server();
    tokio::net::TcpStream::connect(cluster.url().trim_start_matches("https://"))
        .await
        .expect_err("nobody listens any more");
    cluster.start_api_server().await.unwrap();
    assert!(maps.get_opt("kept").await.unwrap().is_some());
}

#[tokio::test]
async fn a_control_plane_dies_with_its_guard() {
    let cluster = ControlPlane::start().await.unwrap();
    let dir = cluster.state().dir.clone();
    let address = cluster.url().trim_start_matches("https://").to_owned();
    assert!(!processes_of(&dir).is_empty());
    drop(cluster);
    assert_eq!(processes_of(&dir), []);
    assert!(!dir.exists());
    tokio::net::TcpStream::connect(address).await.expect_err("nobody listens any more");
}
