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
    let name = {
        let place = arena.namespace("outage").await;
        place.declare("sessions", json!({"replicas": 1})).await;
        place.ready("sessions").await;
        let name = place.name().to_owned();
        std::mem::forget(place);
        name
    };
    arena.cluster.stop_api_server();
    tokio::time::sleep(Duration::from_secs(30)).await;
    arena.cluster.start_api_server().await.unwrap();
    let mark = arena.cluster.audit().mark().unwrap();
    assert!(arena.operator.lock().unwrap().as_mut().unwrap().is_running(), "no crash");
    let place = arena.namespace("after").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    assert_eq!(arena.writes_since(mark, &name), [""; 0], "no storm of writes");
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
