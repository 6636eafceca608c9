//! What a real API server cannot be made to do: a scripted one that fails a write on purpose. A request that the
//! script does not expect fails the test.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use http::{Request, Response};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Client;
use kube::client::Body;
use operator_kit::children::{Applier, ApplyError, Desired, Operation};
use operator_kit::lease::Leadership;
use operator_model::digest::Digest;
use operator_model::problem::{Class, Problem};
use operator_model::resource::CONFIG_MAP;
use serde_json::{Value, json};
use tower_test::mock::Handle;

type ApiServer = Handle<Request<Body>, Response<Body>>;

/// A request that is expected, and the answer to it; none answers never.
struct Step(&'static str, Option<(u16, Value)>);

async fn play(server: &mut ApiServer, script: Vec<Step>) {
    for Step(expected, answer) in script {
        let (request, send) = server.next_request().await.expect("a request");
        assert_eq!(request.method().as_str(), expected, "{}", request.uri());
        match answer {
            Some((code, body)) => {
                let body = Body::from(body.to_string().into_bytes());
                send.send_response(Response::builder().status(code).body(body).unwrap());
            }
            None => std::mem::forget(send),
        }
    }
}

fn failure(code: u16, reason: &str) -> (u16, Value) {
    let body = json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "message": reason, "reason": reason, "code": code});
    (code, body)
}

fn absent() -> Step {
    Step("GET", Some(failure(404, "NotFound")))
}

/// It exists: the answer to creating it, and to reading it then.
fn exists(object: &Value) -> Vec<Step> {
    vec![Step("POST", Some(failure(409, "AlreadyExists"))), Step("GET", Some((200, object.clone())))]
}

fn and(mut steps: Vec<Step>, step: Step) -> Vec<Step> {
    steps.push(step);
    steps
}

fn owner() -> OwnerReference {
    OwnerReference {
        uid: "7".into(),
        kind: "Widget".into(),
        name: "a".into(),
        controller: Some(true),
        ..Default::default()
    }
}

fn object(data: &str, version: &str, managers: &Value) -> Value {
    json!({
        "apiVersion": "v1", "kind": "ConfigMap", "data": {"text": data},
        "metadata": {
            "name": "a", "namespace": "shop", "uid": "1", "resourceVersion": version, "ownerReferences": [owner()],
            "managedFields": managers,
        },
    })
}

fn ours() -> Value {
    json!([{"manager": "us", "operation": "Apply", "fieldsV1": {"f:metadata": {"f:name": {}}, "f:data": {"f:text": {}}}}])
}

/// Applies a ConfigMap that says "hello" against the script.
async fn apply(script: Vec<Step>) -> Result<Operation, ApplyError> {
    let (service, mut server) = tower_test::mock::pair::<Request<Body>, Response<Body>>();
    let applier =
        Applier::new(Client::new(service, "shop"), "us", &["before-us"], "example.org/sent", Leadership::always());
    let (object, owner) = (json!({"metadata": {"name": "a"}, "data": {"text": "hello"}}), owner());
    let desired =
        Desired { resource: CONFIG_MAP, namespace: "shop", name: "a", object: &object, owner: &owner, labels: &[] };
    let (written, ()) = tokio::join!(applier.apply(&desired, None), play(&mut server, script));
    written.map(|(_, operation)| operation)
}

async fn problem(script: Vec<Step>) -> Problem {
    Problem::from(&apply(script).await.unwrap_err())
}

#[tokio::test]
async fn writes_that_meet_others_or_a_busy_server_are_retried_in_silence() {
    for (code, words, reason) in [
        (429, "TooManyRequests", "APIServerUnavailable"),
        (500, "InternalError", "APIServerUnavailable"),
        (503, "ServiceUnavailable", "APIServerUnavailable"),
    ] {
        let problem = problem(vec![Step("POST", Some(failure(code, words)))]).await;
        assert_eq!((problem.reason, problem.class), (reason, Some(Class::Retry)), "{code}");
        assert!(problem.is_transient, "{code}");
    }
    // A conflict that is not about the object: a quota that others use up at the same time.
    let problem = problem(vec![Step("POST", Some(failure(409, "Conflict"))), absent()]).await;
    assert_eq!((problem.reason, problem.class, problem.is_transient), ("Conflict", Some(Class::Retry), true));
}

#[tokio::test]
async fn what_the_server_refuses_is_told_at_once() {
    for (code, words) in [(403, "exceeded quota"), (422, "Invalid")] {
        let problem = problem(vec![Step("POST", Some(failure(code, words))), absent()]).await;
        assert_eq!((problem.reason, problem.class), ("Refused", Some(Class::Retry)), "{code}");
        assert!(!problem.is_transient && problem.message.contains(words), "{}", problem.message);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_costs_one_timeout() {
    let problem = problem(vec![Step("POST", None)]).await;
    assert!(problem.is_transient && problem.message.contains("no answer within"), "{}", problem.message);
}

#[tokio::test]
async fn taking_over_fields_that_somebody_changed_meanwhile_is_a_conflict() {
    let before = json!([{"manager": "before-us", "operation": "Update", "fieldsV1": {"f:metadata": {"f:name": {}}, "f:data": {"f:text": {}}}}]);
    let live = object("hello", "5", &before);
    // What the API server answers when the test of a JSON patch fails.
    let mut script = exists(&live);
    for _ in 0..5 {
        script.push(Step("GET", Some((200, live.clone()))));
        script.push(Step("PATCH", Some(failure(422, "Invalid"))));
    }
    let problem = problem(script).await;
    assert_eq!((problem.reason, problem.is_transient), ("Conflict", true));
}

#[tokio::test]
async fn an_object_that_is_missing_costs_one_request() {
    let created = Step("POST", Some((201, object("hello", "5", &json!([])))));
    assert_eq!(apply(vec![created]).await.unwrap(), Operation::Created);
}

#[tokio::test]
async fn an_object_that_exists_is_mended_where_creating_is_refused() {
    // Somebody took our label away, so that the store lacks it; the quota is used up.
    let refused = Step("POST", Some(failure(403, "exceeded quota")));
    let live = Step("GET", Some((200, object("other", "5", &ours()))));
    let written = Step("PATCH", Some((200, object("hello", "6", &ours()))));
    assert_eq!(apply(vec![refused, live, written]).await.unwrap(), Operation::Updated);
}

#[tokio::test]
async fn an_apply_is_tried_once_and_not_when_nothing_differs() {
    assert_eq!(apply(exists(&object("hello", "5", &ours()))).await.unwrap(), Operation::Unchanged);
    let written = Step("PATCH", Some((200, object("hello", "6", &ours()))));
    let script = and(exists(&object("other", "5", &ours())), written);
    assert_eq!(apply(script).await.unwrap(), Operation::Updated);
}

/// An object that was created with the digest of `sent`, by us.
fn created(text: &str, sent: &Value) -> Value {
    let fields = json!({"f:metadata": {"f:name": {}, "f:labels": {".": {}, "f:example.org/sent": {}}},
        "f:data": {".": {}, "f:text": {}}, "f:immutable": {}});
    let mut object = object(text, "5", &json!([{"manager": "us", "operation": "Update", "fieldsV1": fields}]));
    object["metadata"]["labels"] = json!({"example.org/sent": Digest::of(sent).to_string()});
    object
}

#[tokio::test]
async fn an_object_that_was_created_is_compared_by_the_digest_of_what_was_sent() {
    let same = json!({"metadata": {"name": "a"}, "data": {"text": "hello"}});
    assert_eq!(apply(exists(&created("hello", &same))).await.unwrap(), Operation::Unchanged);
    let written = || Step("PATCH", Some((200, object("hello", "6", &ours()))));
    let drifted = created("changed by hand", &same);
    assert_eq!(apply(and(exists(&drifted), written())).await.unwrap(), Operation::Updated);
    let another = json!({"metadata": {"name": "a"}, "data": {"text": "another"}});
    let changed = created("another", &another);
    assert_eq!(apply(and(exists(&changed), written())).await.unwrap(), Operation::Updated);
}

#[tokio::test]
async fn a_field_that_was_created_and_is_no_longer_desired_is_taken_over_to_be_removed() {
    let more = json!({"metadata": {"name": "a"}, "data": {"text": "hello"}, "immutable": false});
    let live = created("hello", &more);
    let mut script = exists(&live);
    script.push(Step("GET", Some((200, live.clone()))));
    // First the managed fields, then the apply.
    script.push(Step("PATCH", Some((200, live))));
    script.push(Step("PATCH", Some((200, object("hello", "7", &ours())))));
    assert_eq!(apply(script).await.unwrap(), Operation::Updated);
}

#[tokio::test]
async fn an_object_with_another_owner_gets_no_write() {
    let mut theirs = object("other", "5", &json!([]));
    theirs["metadata"]["ownerReferences"][0]["uid"] = json!("8");
    theirs["metadata"]["ownerReferences"][0]["name"] = json!("b");
    let error = apply(exists(&theirs)).await.unwrap_err();
    assert_eq!((error.reason(), error.class(), error.is_transient()), ("NameTaken", Some(Class::Wait), false));
}

#[tokio::test]
async fn a_child_of_a_deleted_object_of_this_name_is_waited_for_in_silence() {
    let mut left = object("other", "5", &json!([]));
    left["metadata"]["ownerReferences"][0]["uid"] = json!("8");
    let error = apply(exists(&left)).await.unwrap_err();
    assert_eq!((error.class(), error.is_transient()), (Some(Class::Retry), true), "{error}");
}
