//! Several replicas of the operator, a vanished API server, one namespace alone.

use std::time::Duration;

use serde_json::json;
use testbed::{User, wait};

use crate::harness::{Arena, DEADLINE, OPERATOR, Operator, Place, is_about, manifest};
use crate::program::{eventually, free_port};

/// A replica under a name of its own, so that the audit log tells who wrote.
fn replica(arena: &Arena, name: &str) -> Operator {
    let user = User::new(name);
    let subject = format!("--user={name}");
    let bind = |kind: &str, rest: &[&str]| {
        let role = rest.first().and_then(|role| role.split('=').next_back()).unwrap();
        let binding = format!("{name}-{role}");
        arena.cluster.kubectl(&[&["create", kind, &binding, &subject], rest].concat()).unwrap();
    };
    bind("clusterrolebinding", &["--clusterrole=memcached-operator"]);
    bind("clusterrolebinding", &["--clusterrole=memcached-operator-scope"]);
    let namespace = "--namespace=memcached-operator-system";
    bind("rolebinding", &["--role=memcached-operator-leader", namespace]);
    let program = env!("CARGO_BIN_EXE_memcached-operator");
    Operator::start_as(&user, program, &arena.cluster, &["--leader-elect=true", "--resync-interval=2s"])
}

#[tokio::test]
async fn one_of_two_replicas_writes_and_the_other_takes_over_when_it_is_killed() {
    let arena = Arena::without_operator().await;
    let place = arena.namespace("leader").await;
    let mark = arena.cluster.audit().mark().unwrap();
    let first = replica(&arena, "replica-one");
    place.declare("before", json!({"replicas": 1})).await;
    place.ready("before").await;
    let mut second = replica(&arena, "replica-two");
    wait::until("the second to wait", DEADLINE, async || {
        let requests = arena.cluster.audit().requests_since(mark).unwrap();
        let has_watched = requests.iter().any(|r| r.user == "replica-two" && r.verb == "watch");
        if has_watched && second.log().contains("starting") { Ok(()) } else { Err(second.log()) }
    })
    .await
    .unwrap();
    // Something to do for whoever thinks it is theirs.
    place.declare("meanwhile", json!({"replicas": 1})).await;
    place.ready("meanwhile").await;
    place.namespace.kubectl(&["delete", "service", "before"]).unwrap();
    place.eventually("service", "before", "made again", |service| service["metadata"]["uid"].is_string()).await;
    assert!(!arena.writes_of("replica-one", mark, place.name()).is_empty());
    assert_eq!(arena.writes_of("replica-two", mark, place.name()), [""; 0], "one writes");

    drop(first);
    let mark = arena.cluster.audit().mark().unwrap();
    place.declare("after", json!({"replicas": 1})).await;
    place.ready("after").await;
    assert!(second.is_running());
    assert!(!arena.writes_of("replica-two", mark, place.name()).is_empty());
    let writes: Vec<_> = arena.writes_of("replica-two", mark, place.name());
    assert!(writes.iter().filter(|write| write.starts_with("create")).count() <= 3, "{writes:?}");
    let others: Vec<_> = writes.iter().filter(|write| !is_about(write, "after")).collect();
    assert!(others.is_empty(), "taking over writes nothing by itself: {others:?}");
}

#[tokio::test]
async fn an_api_server_that_is_gone_for_a_while_is_waited_for() {
    let mut arena = Arena::start(&["--leader-elect=true"]).await;
    let place = arena.namespace("outage").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    for number in 0..30 {
        place.declare(&format!("idle-{number}"), json!({"replicas": 0})).await;
    }
    for number in 0..30 {
        place.settled(&format!("idle-{number}")).await;
    }
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
    wait::until("work to go on", DEADLINE, async || {
        let get = ["get", "deployment", "sessions", "--namespace", &after, "--output", "name"];
        arena.cluster.kubectl(&get).map(drop).map_err(|e| e.to_string())
    })
    .await
    .unwrap();
    let writes = arena.writes_since(mark, &name);
    assert!(writes.iter().all(|write| write.contains("status")), "no storm of writes: {writes:?}");
    // A list and a watch of each kind, and what the new object takes: nothing for those that are as they were.
    let requests = arena.cluster.audit().requests_since(mark).unwrap();
    let ours: Vec<_> = requests.into_iter().filter(|r| r.user == OPERATOR && r.resource != "leases").collect();
    let of_idle: Vec<_> = ours.iter().filter(|request| request.name.starts_with("idle-")).collect();
    assert!(of_idle.is_empty(), "{of_idle:?}");
    assert!(ours.len() < 80, "{} requests: {ours:?}", ours.len());
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

#[tokio::test]
async fn a_namespace_without_rights_holds_up_itself_alone() {
    let arena = Arena::without_operator().await;
    let (here, there) = (arena.namespace("here").await, arena.namespace("there").await);
    arena.cluster.kubectl(&["delete", "clusterrolebinding", "memcached-operator"]).unwrap();
    let role = manifest("config/rbac/namespaced/role.yaml");
    here.namespace.kubectl(&["apply", "--filename", &role]).unwrap();
    let health = free_port();
    arena.start_operator(&[
        "--leader-elect=false",
        &format!("--watch-namespaces={},{}", here.name(), there.name()),
        &format!("--health-probe-bind-address=127.0.0.1:{health}"),
    ]);
    there.declare("sessions", json!({"replicas": 1})).await;
    here.declare("sessions", json!({"replicas": 1})).await;
    here.ready("sessions").await;
    // Not ready would take the webhooks of all namespaces out of service.
    eventually(health, "/readyz", "readiness", |answer| answer.starts_with("HTTP/1.1 200")).await;
    assert!(there.get("deployment", "sessions").is_none());
    there.namespace.kubectl(&["apply", "--filename", &role]).unwrap();
    there.ready("sessions").await;
}

#[tokio::test]
async fn twenty_namespaces_share_a_few_connections() {
    let arena = Arena::without_operator().await;
    let mut places = Vec::new();
    let role = manifest("config/rbac/namespaced/role.yaml");
    for number in 0..20 {
        let place = arena.namespace(&format!("shared-{number}")).await;
        place.namespace.kubectl(&["apply", "--filename", &role]).unwrap();
        places.push(place);
    }
    let names: Vec<&str> = places.iter().map(Place::name).collect();
    arena.start_operator(&["--leader-elect=true", &format!("--watch-namespaces={}", names.join(","))]);
    for place in &places {
        place.declare("sessions", json!({"replicas": 0})).await;
    }
    for place in &places {
        place.settled("sessions").await;
    }
    // More than two hundred watches, each of which would hold a connection over HTTP/1.1.
    let sockets = arena.operator.lock().unwrap().as_ref().unwrap().sockets();
    assert!(sockets <= 32, "{sockets} sockets");
}
