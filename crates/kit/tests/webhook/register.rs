//! Configurations are shipped without entries: the leader applies them once it serves, and keeps what is others'.

use std::sync::Arc;

use kube::api::{DeleteParams, Patch, PatchParams};
use operator_kit::lease::Leadership;
use operator_kit::shutdown;
use serde_json::{Value, json};
use testbed::wait;

use crate::harness::{DEADLINE, SECRET, Stage};
use crate::load::Load;
use crate::replica::{Replica, follower};

async fn registered(prefix: &str) -> (Arc<Stage>, Replica) {
    let stage = Arc::new(Stage::new(prefix).await);
    let replica = Replica::start(&stage, Leadership::always()).await;
    stage.in_force().await;
    (stage, replica)
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_appear_once_a_leader_serves_and_until_then_nobody_is_refused() {
    let stage = Stage::with_replicas("appear", 2).await;
    stage.allow_secrets(false).await;
    let mark = stage.cluster.audit().mark().unwrap();
    let unable = Replica::start(&stage, Leadership::always()).await;
    let asked = async || {
        let requests = stage.cluster.audit().requests_since(mark).unwrap();
        let tries = requests.iter().filter(|r| r.resource == "secrets" && r.namespace == stage.name()).count();
        if tries >= 3 { Ok(()) } else { Err(format!("{tries} tries")) }
    };
    wait::until("the replica to try again", DEADLINE, asked).await.unwrap();
    assert!(!unable.is_ready());
    assert_eq!(stage.entries().await, Vec::<Value>::new(), "it leads, but has no certificate");
    stage.submit("deny").await.expect("nobody is asked");
    unable.end().await;

    stage.allow_secrets(true).await;
    let (one, election) = follower(&stage, 0).await;
    let (two, _idle) = follower(&stage, 1).await;
    one.ready().await;
    two.ready().await;
    assert_eq!(stage.entries().await, Vec::<Value>::new(), "they serve, but nobody leads");
    stage.submit("deny").await.expect("nobody is asked");
    let (_resign, token) = shutdown::channel();
    tokio::spawn(election.run(token));
    stage.in_force().await;
    assert_eq!(stage.entries().await.len(), 2);
    let writes = stage.writes_since(mark).into_iter().filter(|write| write.starts_with("patch")).count();
    assert_eq!(writes, 1, "all entries at once");
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_others_stay_and_ours_are_put_back() {
    let (stage, replica) = registered("shared").await;
    let condition = json!({"name": "not-mine", "expression": "request.userInfo.username != 'nobody'"});
    let selector = json!({"matchExpressions": [{"key": "control-plane", "operator": "DoesNotExist"}]});
    let before = stage.entries().await;
    let mark = stage.cluster.audit().mark().unwrap();
    let load = Load::start(&stage, &[replica.port()]);
    stage.edit("/namespaceSelector", selector.clone()).await;
    stage.edit("/matchConditions/-", condition.clone()).await;
    for (field, value) in [
        ("/timeoutSeconds", json!(30)),
        ("/failurePolicy", json!("Ignore")),
        ("/rules/0/operations", json!(["*"])),
        ("/clientConfig/url", json!("https://127.0.0.1:1/validate")),
    ] {
        stage.edit(field, value).await;
    }
    let mut wanted = before.clone();
    wanted[0]["namespaceSelector"] = selector;
    // A field that we do not apply is whoever's sets it.
    wanted[0]["failurePolicy"] = json!("Ignore");
    wanted[0]["matchConditions"].as_array_mut().unwrap().push(condition);
    wait::until("our fields to be back", DEADLINE, async || {
        let entries = stage.entries().await;
        if entries == wanted { Ok(()) } else { Err(format!("{entries:#?}")) }
    })
    .await
    .unwrap();
    load.passed().await;
    let writes = stage.writes_since(mark);
    assert!(writes.len() <= 3, "no more than one for each of our fields: {writes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn applying_the_shipped_configuration_again_changes_nothing() {
    let (stage, replica) = registered("again").await;
    let shipped = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": stage.name(), "labels": {"shipped-by": "a-package"}},
    });
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), shipped.to_string()).unwrap();
    let entries = stage.entries().await;
    let load = Load::start(&stage, &[replica.port()]);
    let mark = stage.cluster.audit().mark().unwrap();
    let file = file.path().to_str().unwrap();
    for how in [&["apply"][..], &["apply", "--server-side"], &["apply", "--server-side", "--force-conflicts"]] {
        for _ in 0..2 {
            stage.namespace.kubectl(&[how, &["--filename", file]].concat()).unwrap();
            assert_eq!(stage.entries().await, entries, "{how:?}");
        }
        let difference = [&["diff"][..], &how[1..], &["--filename", file]].concat();
        assert_eq!(stage.namespace.kubectl(&difference).unwrap(), "", "nothing to do for who compares");
    }
    load.passed().await;
    assert_eq!(stage.writes_since(mark), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_that_somebody_removes_come_back() {
    let (stage, _replica) = registered("removed").await;
    let none = Patch::Merge(json!({"webhooks": []}));
    stage.validating().patch(stage.name(), &PatchParams::default(), &none).await.unwrap();
    // The API server goes by what it knew for a moment.
    wait::until("the entry to come back", DEADLINE, async || match stage.entries().await.len() {
        1 => Ok(()),
        entries => Err(format!("{entries} entries")),
    })
    .await
    .unwrap();
    stage.in_force().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replica_that_outlives_its_package_registers_nothing_for_the_next_install() {
    let (stage, replica) = registered("outlived").await;
    stage.validating().delete(stage.name(), &DeleteParams::default()).await.unwrap();
    stage.ship().await;
    let mark = stage.cluster.audit().mark().unwrap();
    // It has seen both, for it writes what it then sees: its Secret.
    let secrets = stage.secrets();
    secrets.delete(SECRET, &DeleteParams::default()).await.unwrap();
    stage.secret_is("made again", |_| true).await;
    replica.end().await;
    assert_eq!(stage.writes_since(mark), ["create secrets"]);
    assert_eq!(stage.entries().await, Vec::<Value>::new());
    stage.submit("deny").await.expect("nobody is asked");
}
