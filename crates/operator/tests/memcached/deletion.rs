//! A cache that goes takes its children with it, and nobody brings them back on the way.

use serde_json::json;

use crate::drift::everything;
use crate::harness::Arena;

async fn children_go(how: &str) {
    let arena = Arena::shared().await;
    let place = arena.namespace("delete").await;
    place.declare("sessions", everything()).await;
    place.ready("sessions").await;
    let mark = arena.cluster.audit().mark().unwrap();
    place.namespace.kubectl(&["delete", "memcached", "sessions", &format!("--cascade={how}"), "--wait=false"]).unwrap();
    for kind in ["memcached", "deployment", "service", "poddisruptionbudget", "networkpolicy"] {
        place.gone(kind, "sessions").await;
    }
    let writes = arena.writes_since(mark, place.name());
    let created: Vec<_> = writes.iter().filter(|write| !write.contains("status")).collect();
    assert!(created.is_empty(), "nothing is made while it goes: {created:?}");
}

#[tokio::test]
async fn in_the_background() {
    children_go("background").await;
}

#[tokio::test]
async fn in_the_foreground() {
    children_go("foreground").await;
}

#[tokio::test]
async fn orphans_are_adopted_by_the_next_of_that_name() {
    let arena = Arena::shared().await;
    let place = arena.namespace("orphan").await;
    place.declare("sessions", everything()).await;
    place.ready("sessions").await;
    let before = place.get("deployment", "sessions").unwrap();
    place.namespace.kubectl(&["delete", "memcached", "sessions", "--cascade=orphan"]).unwrap();
    place.eventually("deployment", "sessions", "orphaned", |d| d["metadata"]["ownerReferences"].is_null()).await;
    let cache = place.declare("sessions", everything()).await;
    let uid = cache.metadata.uid.unwrap();
    for kind in ["deployment", "service", "poddisruptionbudget", "networkpolicy"] {
        place
            .eventually(kind, "sessions", "adopted", |o| o["metadata"]["ownerReferences"][0]["uid"] == json!(uid))
            .await;
    }
    let revisions = place.namespace.kubectl(&["get", "controllerrevisions", "--output", "json"]).unwrap();
    assert!(revisions.contains(&uid), "the kept template is adopted too: {revisions}");
    let after = place.get("deployment", "sessions").unwrap();
    assert_eq!(after["metadata"]["uid"], before["metadata"]["uid"]);
    assert_eq!(after["spec"]["template"], before["spec"]["template"], "no pod is restarted for it");
}
