//! Somebody deletes, spoils or edits what the certificates hang on: it is put right again.

use std::sync::Arc;

use k8s_openapi::ByteString;
use kube::api::DeleteParams;
use operator_kit::certificate::Material;
use operator_kit::lease::Leadership;

use crate::harness::{SECRET, Stage};
use crate::load::Load;
use crate::replica::{Replica, TIMES, follower};

async fn staged(prefix: &str) -> (Arc<Stage>, Replica) {
    let stage = Arc::new(Stage::new(prefix).await);
    let replica = Replica::start(&stage, Leadership::always()).await;
    stage.in_force().await;
    (stage, replica)
}

fn unrelated() -> Material {
    Material::make(&["127.0.0.1".to_owned()], &TIMES, jiff::Timestamp::now()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_or_spoilt_secret_comes_back_as_it_was_and_no_request_fails() {
    let (stage, replica) = staged("secret").await;
    let before = stage.secret_is("there", |_| true).await;
    let load = Load::start(&stage, &[replica.port()]);
    stage.secrets().delete(SECRET, &DeleteParams::default()).await.unwrap();
    assert_eq!(stage.secret_is("made again", |_| true).await, before);
    let labels = stage.secrets().get(SECRET).await.unwrap().metadata.labels.unwrap();
    assert_eq!(labels["kept-by"], "kit");

    let other = unrelated().data();
    for (key, value) in [
        ("tls.key", ByteString(b"nonsense".to_vec())),
        ("tls.crt", ByteString(Vec::new())),
        ("ca.key", other["ca.key"].clone()),
        ("ca.crt", other["ca.crt"].clone()),
    ] {
        stage.overwrite(|data| drop(data.insert(key.to_owned(), value.clone()))).await;
        assert_eq!(stage.secret_is("sound", |_| true).await, before, "{key}");
    }
    load.passed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_spoilt_secret_that_nobody_remembers_is_replaced() {
    let stage = Stage::with_replicas("spoilt", 2).await;
    let mut spoilt = unrelated().data();
    spoilt.insert("tls.key".to_owned(), ByteString(b"nonsense".to_vec()));
    stage.keep(spoilt).await;
    let (waiting, _idle) = follower(&stage, 0).await;
    let replica = Replica::start_nth(&stage, 1, Leadership::always()).await;
    replica.ready().await;
    waiting.ready().await;
    stage.in_force().await;
    stage.secret_is("sound", |_| true).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_edited_bundle_is_repaired() {
    let (stage, _replica) = staged("bundle").await;
    let bundle = stage.bundle().await.unwrap();
    let unrelated = unrelated().bundle();
    for edit in [Some(unrelated.as_str()), None, Some(&(bundle.clone() + &unrelated))] {
        stage.edit_bundle(edit).await;
        stage.bundle_is("ours again", |now| now == bundle).await;
    }
    stage.in_force().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_configuration_is_waited_for() {
    let stage = Stage::unshipped("absent", 1).await;
    let replica = Replica::start(&stage, Leadership::always()).await;
    replica.ready().await;
    let kept = stage.secret_is("there", |_| true).await;
    for _ in 0..2 {
        stage.ship().await;
        stage.bundle_is("ours", |bundle| bundle == kept.bundle).await;
        stage.in_force().await;
        stage.validating().delete(stage.name(), &DeleteParams::default()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_is_not_ready_before_the_api_server_can_call_it() {
    let stage = Stage::unshipped("unready", 1).await;
    stage.ship_registered(&unrelated().bundle()).await;
    let (replica, _idle) = follower(&stage, 0).await;
    // It has made the Secret, serves with it, and may not write the bundle.
    let kept = stage.secret_is("there", |_| true).await;
    let serves = async || crate::load::call(replica.port(), &kept.bundle).await;
    testbed::wait::until("the replica to serve", crate::harness::DEADLINE, serves).await.unwrap();
    assert!(!replica.is_ready());
    stage.edit_bundle(Some(&kept.bundle)).await;
    replica.ready().await;
}
