//! What is known of Secrets after events, lists and reads.

use kube::client::Body;
use serde_json::json;

use super::*;

fn request(name: &str) -> Request {
    Request { kind: "Widget", namespace: "shop".into(), name: name.into() }
}

fn metadata(name: &str, version: &str) -> PartialObjectMeta<Secret> {
    let metadata = json!({
        "namespace": "shop", "name": name, "resourceVersion": version,
        "annotations": {"note": "the password is hunter2"},
    });
    serde_json::from_value(json!({"metadata": metadata})).unwrap()
}

/// Secrets whose watch is played by the test, and who was woken.
fn secrets() -> (Secrets, Arc<Mutex<Vec<String>>>) {
    let woken = Arc::new(Mutex::new(Vec::new()));
    let wake: Wake = {
        let woken = Arc::clone(&woken);
        Arc::new(move |request| woken.lock().unwrap().push(request.name.to_string()))
    };
    let (service, server) = tower_test::mock::pair::<http::Request<Body>, http::Response<Body>>();
    std::mem::forget(server);
    let (tasks, failures) = crate::task::tasks();
    std::mem::forget(failures);
    let client = Client::new(service, "shop");
    (Secrets::new(Clients::sharing(client), &[], ["password"].into(), wake, tasks, Metrics::unregistered()), woken)
}

fn names(names: &[&str]) -> BTreeSet<String> {
    names.iter().map(ToString::to_string).collect()
}

fn presence(secrets: &Secrets, name: &str) -> Option<Presence> {
    secrets.content().entries.get(&("shop".into(), name.into())).map(|entry| entry.presence.clone())
}

#[tokio::test]
async fn of_other_secrets_nothing_is_kept() {
    let (secrets, woken) = secrets();
    secrets.track(&request("a"), &names(&["password"]));
    for event in [
        Event::Init,
        Event::InitApply(metadata("password", "1")),
        Event::InitApply(metadata("private", "2")),
        Event::InitDone,
        Event::Apply(metadata("private", "3")),
        Event::Delete(metadata("private", "4")),
    ] {
        secrets.handle(None, event);
    }
    assert_eq!(secrets.content().entries.len(), 1);
    assert_eq!(presence(&secrets, "password"), Some(Presence::Present("1".into())));
    assert_eq!(*woken.lock().unwrap(), ["a"]);
}

#[tokio::test]
async fn who_refers_to_a_secret_is_woken_when_it_appears_changes_or_vanishes() {
    let (secrets, woken) = secrets();
    secrets.track(&request("a"), &names(&["password"]));
    secrets.track(&request("b"), &names(&["password"]));
    secrets.handle(None, Event::Init);
    secrets.handle(None, Event::InitDone);
    assert_eq!(presence(&secrets, "password"), Some(Presence::Absent));
    let count = || std::mem::take(&mut *woken.lock().unwrap()).len();
    assert_eq!(count(), 2, "it is not there");
    for (event, expected) in [
        (Event::Apply(metadata("password", "1")), 2),
        (Event::Apply(metadata("password", "1")), 0),
        (Event::Apply(metadata("password", "2")), 2),
        (Event::Delete(metadata("password", "3")), 2),
    ] {
        secrets.handle(None, event);
        assert_eq!(count(), expected);
    }
    secrets.handle(None, Event::Init);
    secrets.handle(None, Event::InitApply(metadata("password", "9")));
    secrets.handle(None, Event::InitDone);
    assert_eq!(count(), 2, "it came back while nobody watched");
}

#[tokio::test]
async fn a_secret_that_is_referred_to_during_a_list_is_not_taken_for_absent() {
    let (secrets, woken) = secrets();
    secrets.handle(None, Event::Init);
    secrets.track(&request("a"), &names(&["password"]));
    secrets.handle(None, Event::InitDone);
    assert_eq!(presence(&secrets, "password"), Some(Presence::Unknown), "it is read to find out");
    assert_eq!(*woken.lock().unwrap(), ["a"], "it may have been deleted before the list");
}

#[tokio::test]
async fn who_has_read_an_older_version_than_somebody_else_reads_again() {
    let secret = |version: &str| -> Secret {
        serde_json::from_value(json!({"metadata": {"name": "password", "resourceVersion": version}})).unwrap()
    };
    let (secrets, woken) = secrets();
    secrets.handle(None, Event::Init);
    secrets.handle(None, Event::InitDone);
    for name in ["a", "b"] {
        secrets.track(&request(name), &names(&["password"]));
    }
    let key: Key = ("shop".into(), "password".into());
    secrets.remember(&key, Some(secret("6")));
    assert_eq!(*woken.lock().unwrap(), [""; 0]);
    secrets.remember(&key, None);
    secrets.handle(None, Event::Apply(metadata("password", "6")));
    assert_eq!(woken.lock().unwrap().len(), 2, "the event alone would have been no news");
}

#[tokio::test]
async fn secrets_that_may_not_be_watched_are_told_of() {
    let (secrets, woken) = secrets();
    secrets.track(&request("a"), &names(&["password"]));
    secrets.unwatched(None);
    assert_eq!(*woken.lock().unwrap(), ["a"]);
    assert_eq!(secrets.content().state("shop"), WatchState::Refused);
    secrets.unwatched(None);
    assert_eq!(woken.lock().unwrap().len(), 1, "once");
}

#[tokio::test]
async fn what_nobody_refers_to_any_more_is_forgotten() {
    let (secrets, _) = secrets();
    secrets.track(&request("a"), &names(&["one", "two"]));
    secrets.track(&request("b"), &names(&["two"]));
    secrets.track(&request("a"), &names(&["three"]));
    let mut known: Vec<String> = secrets.content().entries.keys().map(|(_, name)| name.to_string()).collect();
    known.sort();
    assert_eq!(known, ["three", "two"]);
    secrets.forget(&request("a"));
    secrets.forget(&request("b"));
    let content = secrets.content();
    assert!(content.entries.is_empty() && content.references.is_empty());
}

#[tokio::test]
async fn a_read_tells_of_presence_only_while_a_watch_would_tell_of_a_change() {
    let (secrets, _) = secrets();
    secrets.track(&request("a"), &names(&["password"]));
    let key: Key = ("shop".into(), "password".into());
    assert_eq!(secrets.remember(&key, None), None);
    assert_eq!(presence(&secrets, "password"), Some(Presence::Unknown), "not watched yet");
    secrets.handle(None, Event::Init);
    secrets.handle(None, Event::InitDone);
    secrets.track(&request("a"), &names(&["other"]));
    let key: Key = ("shop".into(), "other".into());
    secrets.remember(&key, None);
    assert_eq!(presence(&secrets, "other"), Some(Presence::Absent));
    secrets.unwatched(None);
    assert_eq!(presence(&secrets, "other"), Some(Presence::Unknown));
}

#[tokio::test]
async fn values_are_not_even_asked_for() {
    let (service, mut server) = tower_test::mock::pair::<http::Request<Body>, http::Response<Body>>();
    let (tasks, _failures) = crate::task::tasks();
    let clients = Clients::sharing(Client::new(service, "shop"));
    let namespaces = ["shop".to_owned(), "office".to_owned()];
    let secrets = Secrets::new(clients, &namespaces, BTreeSet::new(), Arc::new(|_| {}), tasks, Metrics::unregistered());
    secrets.track(&request("a"), &names(&["password"]));
    let (list, _send) = server.next_request().await.unwrap();
    assert_eq!(list.uri().path(), "/api/v1/namespaces/shop/secrets", "a namespace is watched when it is needed");
    let accepted = list.headers()[http::header::ACCEPT].to_str().unwrap();
    assert!(accepted.contains("as=PartialObjectMetadataList"), "{accepted}");
}

fn secret(name: &str, version: &str, data: &[(&str, usize)]) -> Secret {
    let value = |length: &usize| k8s_openapi::ByteString(vec![b'x'; *length]);
    let data = data.iter().map(|(key, length)| ((*key).to_owned(), value(length))).collect();
    let metadata = metadata(name, version).metadata;
    Secret { metadata, data: Some(data), ..Secret::default() }
}

#[tokio::test]
async fn of_a_secret_only_what_is_asked_for_is_kept_and_not_much_of_it() {
    let (secrets, _) = secrets();
    secrets.track(&request("a"), &names(&["small", "large"]));
    let key = |name: &str| -> Key { ("shop".into(), name.into()) };
    let kept = |name: &str| secrets.content().entries[&key(name)].data.clone().map(|(_, data)| data);
    let read = secrets.remember(&key("small"), Some(secret("small", "1", &[("password", 9), ("other", 1 << 20)])));
    assert_eq!(read.unwrap().into_keys().collect::<Vec<_>>(), ["password"]);
    assert_eq!(kept("small").unwrap().into_values().map(|value| value.len()).sum::<usize>(), 9);
    let read = secrets.remember(&key("large"), Some(secret("large", "1", &[("password", 1 << 20)])));
    assert_eq!(read.unwrap()["password"].len(), 1 << 20);
    assert_eq!(kept("large"), None);
}

#[tokio::test]
async fn what_was_read_while_a_list_came_in_is_not_read_again() {
    let (secrets, woken) = secrets();
    secrets.track(&request("early"), &names(&["first"]));
    secrets.handle(None, Event::Init);
    secrets.handle(None, Event::InitApply(metadata("first", "1")));
    woken.lock().unwrap().clear();
    secrets.track(&request("late"), &names(&["second", "third", "none"]));
    for (name, found) in [("second", true), ("none", false)] {
        secrets.remember(&("shop".into(), name.into()), found.then(|| secret(name, "2", &[])));
    }
    secrets.handle(None, Event::InitDone);
    assert_eq!(presence(&secrets, "second"), Some(Presence::Present("2".into())));
    assert_eq!(presence(&secrets, "none"), Some(Presence::Absent));
    assert_eq!(*woken.lock().unwrap(), ["late"], "for the third, which nobody has read yet");
}
