//! What a store knows after events, lists and answers to our own writes.

use kube::ResourceExt;
use operator_model::resource::SERVICE;
use serde_json::json;

use super::*;

fn object(name: &str, version: u64) -> DynamicObject {
    serde_json::from_value(json!({
        "apiVersion": "v1", "kind": "Service",
        "metadata": {"namespace": "shop", "name": name, "resourceVersion": version.to_string(), "labels": {"of": "a"}},
    }))
    .unwrap()
}

fn request() -> Request {
    Request { kind: "Widget", namespace: "shop".into(), name: "a".into() }
}

fn follower() -> (Follower, Arc<Mutex<Vec<Request>>>) {
    let woken = Arc::new(Mutex::new(Vec::new()));
    let wake: Wake = {
        let woken = Arc::clone(&woken);
        Arc::new(move |request| woken.lock().unwrap().push(request))
    };
    let route: Route = Arc::new(|object| object.labels().get("of").map(|_| request()));
    let watches = Arc::new(WatchedNamespaces::new(&[]));
    let store = Store {
        resource: SERVICE,
        content: Arc::default(),
        watches,
        route,
        is_kept: Arc::new(|_| true),
        pod_annotations: Arc::new([]),
    };
    (Follower { store, namespace: None, wake, listing: None }, woken)
}

fn names(store: &Store) -> Vec<String> {
    store.of(&request()).iter().map(ResourceExt::name_any).collect()
}

#[test]
fn objects_are_found_by_whom_they_concern() {
    let (mut follower, woken) = follower();
    for event in [Event::Init, Event::InitApply(object("x", 1)), Event::InitApply(object("y", 2)), Event::InitDone] {
        follower.handle(event);
    }
    assert!(follower.store.watches().is_synced_in("shop"));
    assert_eq!(names(&follower.store), ["x", "y"]);
    assert_eq!(woken.lock().unwrap().len(), 2);
    follower.handle(Event::Delete(object("x", 3)));
    assert_eq!(names(&follower.store), ["y"]);
}

#[test]
fn the_answer_to_a_write_is_known_at_once_and_forgotten_with_the_object() {
    let (mut follower, _) = follower();
    follower.store.remember(object("x", 5));
    follower.handle(Event::Apply(object("x", 4)));
    let known = follower.store.get("shop", "x").unwrap();
    assert_eq!(known.resource_version().as_deref(), Some("5"), "an older event does not undo our own write");
    follower.handle(Event::Delete(object("x", 6)));
    assert!(follower.store.get("shop", "x").is_none());
    assert!(follower.store.content().objects.is_empty() && follower.store.content().by_request.is_empty());
}

#[test]
fn objects_that_were_deleted_while_nobody_watched_are_missed_at_the_next_list() {
    let (mut follower, woken) = follower();
    for event in [Event::Init, Event::InitApply(object("x", 1)), Event::InitApply(object("y", 2)), Event::InitDone] {
        follower.handle(event);
    }
    woken.lock().unwrap().clear();
    for event in [Event::Init, Event::InitApply(object("y", 2)), Event::InitDone] {
        follower.handle(event);
    }
    assert_eq!(names(&follower.store), ["y"]);
    assert_eq!(woken.lock().unwrap().len(), 1, "for the one that is not there any more");
}

#[test]
fn an_object_made_anew_outlives_the_deletion_of_its_predecessor() {
    let (mut follower, _) = follower();
    follower.handle(Event::Apply(object("x", 1)));
    follower.store.remember(object("x", 9));
    follower.handle(Event::Delete(object("x", 8)));
    assert!(follower.store.get("shop", "x").is_some());
}

#[test]
fn an_object_that_loses_its_owner_wakes_it() {
    let (mut follower, woken) = follower();
    follower.handle(Event::Apply(object("x", 1)));
    let mut stripped = object("x", 2);
    stripped.metadata.labels = None;
    follower.handle(Event::Apply(stripped));
    assert_eq!(*woken.lock().unwrap(), [request(), request()]);
    assert_eq!(names(&follower.store), [""; 0]);
}

#[test]
fn a_change_that_nobody_reads_wakes_nobody() {
    let (mut follower, woken) = follower();
    let with_status = |version: u64, address: &str| {
        let mut object = object("x", version);
        object.data = json!({"spec": {"clusterIP": "None"}, "status": {"loadBalancer": {"ingress": [address]}}});
        object
    };
    follower.store.remember(with_status(1, "a"));
    follower.handle(Event::Apply(with_status(1, "a")));
    follower.handle(Event::Apply(with_status(2, "b")));
    assert_eq!(*woken.lock().unwrap(), [], "our own write, and a status");
    assert_eq!(follower.store.get("shop", "x").unwrap().resource_version().as_deref(), Some("2"));
    let mut changed = with_status(3, "b");
    changed.data["spec"]["clusterIP"] = json!("10.0.0.1");
    follower.handle(Event::Apply(changed));
    assert_eq!(*woken.lock().unwrap(), [request()]);
}
