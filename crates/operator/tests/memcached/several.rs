//! Several replicas of the operator, a vanished API server, one namespace alone.

use std::time::Duration;

use serde_json::json;
use testbed::wait;

use crate::harness::{Arena, OPERATOR, Operator, PATIENCE, manifest};

#[tokio::test]
async fn another_replica_takes_over_when_the_leader_is_killed() {
    let arena = Arena::start(&["--leader-elect=true"]).await;
    let place = arena.namespace("leader").await;
    place.declare("first", json!({"replicas": 1})).await;
    place.ready("first").await;
    let mut second = Operator::start(&arena.cluster, &["--leader-elect=true"]);
    wait::until("the second to wait", PATIENCE, async || {
        let log = second.log();
        if log.contains("starting") { Ok(()) } else { Err(log) }
    })
    .await
    .unwrap();
    assert!(!second.log().contains("leading"), "one leads");
    arena.stop_operator();
    place.declare("second", json!({"replicas": 1})).await;
    place.ready("second").await;
    assert!(second.log().contains("leading") && second.is_running());
}

#[tokio::test]
async fn an_api_server_that_is_gone_for_a_while_is_waited_for() {
    let mut arena = Arena::start(&["--leader-elect=true"]).await;
    let place = arena.namespace("outage").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    let other = arena.namespace("after").await;
    let (name, after) = (place.name().to_owned(), other.name().to_owned());
    // Their guards borrow the arena that is about to be changed; the whole cluster goes in the end.
    std::mem::forget((place, other));
    arena.cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(30)).await;
    arena.cluster.start_api_server().await.unwrap();
    let mark = arena.cluster.audit().mark().unwrap();
    assert!(arena.operator.lock().unwrap().as_mut().unwrap().is_running(), "no crash");
    let document = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached",
        "metadata": {"name": "sessions", "namespace": after}, "spec": {"replicas": 1},
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), document.to_string()).unwrap();
    arena.cluster.kubectl(&["create", "--filename", file.path().to_str().unwrap()]).unwrap();
    wait::until("work to go on", PATIENCE, async || {
        let get = ["get", "deployment", "sessions", "--namespace", &after, "--output", "name"];
        arena.cluster.kubectl(&get).map(drop).map_err(|e| e.to_string())
    })
    .await
    .unwrap();
    let writes = arena.writes_since(mark, &name);
    assert!(writes.iter().all(|write| write.contains("status")), "no storm of writes: {writes:?}");
}

#[tokio::test]
async fn in_one_namespace_a_role_is_enough() {
    let arena = Arena::without_operator().await;
    let (here, there) = (arena.namespace("here").await, arena.namespace("there").await);
    arena.cluster.kubectl(&["delete", "clusterrolebinding", "memcached-operator"]).unwrap();
    here.namespace.kubectl(&["apply", "--filename", &manifest("config/rbac/namespaced/role.yaml")]).unwrap();
    arena.start_operator(&["--leader-elect=true", "--watch-namespaces", here.name()]);
    let mark = arena.cluster.audit().mark().unwrap();
    there.declare("sessions", json!({"replicas": 1})).await;
    here.declare("sessions", json!({"replicas": 1})).await;
    here.ready("sessions").await;
    assert!(there.get("deployment", "sessions").is_none());
    let requests = arena.cluster.audit().requests_since(mark).unwrap();
    let elsewhere: Vec<_> = requests
        .iter()
        .filter(|r| r.user == OPERATOR && r.namespace != here.name() && r.resource != "leases")
        .filter(|r| !r.resource.starts_with('/'))
        .collect();
    assert!(elsewhere.is_empty(), "{elsewhere:?}");
}
