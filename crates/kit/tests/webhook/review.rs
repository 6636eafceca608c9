//! What clients of the API server see of a review.

use kube::client::Body;
use operator_kit::lease::Leadership;
use serde_json::Value;
use testbed::wait;

use crate::harness::{DEADLINE, Stage, config_map};
use crate::replica::Replica;

async fn staged(prefix: &str) -> (Stage, Replica) {
    let stage = Stage::new(prefix).await;
    let replica = Replica::start(&stage, Leadership::always()).await;
    stage.in_force().await;
    (stage, replica)
}

fn status(error: kube::Error) -> kube::core::Status {
    match error {
        kube::Error::Api(status) => *status,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_allowed_passes_and_what_is_denied_says_which_field() {
    let (stage, replica) = staged("verdict").await;
    let passed = stage.submit("allow").await.unwrap();
    assert_eq!(passed.data.unwrap().len(), 1, "nothing was changed");

    let refused = status(stage.submit("deny").await.unwrap_err());
    assert_eq!((refused.code, refused.reason.as_str()), (422, "Invalid"));
    assert!(refused.message.ends_with(r#"ConfigMap "one" is invalid: data.verdict: must not be deny"#), "{refused}");
    let details = refused.details.unwrap();
    assert_eq!((details.kind.as_str(), details.name.as_str()), ("ConfigMap", "one"));
    let cause = &details.causes[0];
    assert_eq!((cause.field.as_str(), cause.reason.as_str()), ("data.verdict", "FieldValueInvalid"));

    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), config_map("deny").to_string()).unwrap();
    let said = stage.namespace.kubectl(&["create", "--filename", file.path().to_str().unwrap()]).unwrap_err();
    assert!(said.to_string().contains(r#"The ConfigMap "one" is invalid: data.verdict: must not be deny"#), "{said}");

    let text = replica.metrics.encode().unwrap();
    for outcome in ["allowed", "denied"] {
        let series = format!(r#"widget_operator_webhook_requests_total{{path="/validate",outcome="{outcome}"}}"#);
        assert!(text.contains(&series), "no {series} in\n{text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reviewer_that_panics_or_hangs_refuses_and_the_next_request_passes() {
    let (stage, _replica) = staged("trouble").await;
    let refused = status(stage.submit("panic").await.unwrap_err());
    assert!(refused.code == 500 && refused.message.contains("the review failed"), "{refused}");
    let refused = status(stage.submit("sleep").await.unwrap_err());
    assert!(refused.code == 500 && refused.message.contains("the review took too long"), "{refused}");
    stage.submit("allow").await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_patch_changes_the_object() {
    let (stage, _replica) = staged("patch").await;
    stage.ship_mutating().await;
    let patched = async || match stage.submit("patch").await.map(|object| object.data.unwrap()) {
        Ok(data) if data.get("patched").is_some_and(|value| value == "yes") => Ok(()),
        // A validating webhook may not patch: there the API server refuses until the other is in force.
        other => Err(format!("{other:?}")),
    };
    stage.validating().delete(stage.name(), &kube::api::DeleteParams::default()).await.unwrap();
    wait::until("the object to be patched", DEADLINE, patched).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn clients_are_warned() {
    let (stage, _replica) = staged("warning").await;
    let path = format!("/api/v1/namespaces/{}/configmaps?dryRun=All", stage.name());
    let request = http::Request::post(path).header("content-type", "application/json");
    let request = request.body(Body::from(config_map("warn").to_string().into_bytes())).unwrap();
    let answer = stage.admin.send(request).await.unwrap();
    assert_eq!(answer.status().as_u16(), 201);
    let warnings: Vec<_> = answer.headers().get_all("warning").iter().map(|value| value.to_str().unwrap()).collect();
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].contains("careful now"), "{warnings:?}");
    assert!(warnings[1].len() < 300, "{warnings:?}");
    let body = answer.into_body().collect_bytes().await.unwrap();
    let body: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(body["data"]["verdict"], "warn");
}
