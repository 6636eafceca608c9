//! Certificates near their end are replaced under load, and not one request fails.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use operator_kit::certificate::{Material, Times};
use operator_kit::lease::Leadership;
use operator_kit::shutdown;

use crate::harness::Stage;
use crate::load::Load;
use crate::replica::{Replica, TIMES, follower};

const DAY: Duration = Duration::from_secs(24 * 3600);

/// What was made so many days ago that it is time for another, though it is good for twenty more.
fn aged(days: u32) -> Material {
    let names = ["127.0.0.1".to_owned(), "widgets.operators.svc".to_owned()];
    let times = Times { serving: (days + 20) * DAY, ..TIMES };
    Material::make(&names, &times, Timestamp::now() - days * DAY).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn both_authority_and_certificate_are_followed_by_others_without_a_refused_request() {
    let stage = Arc::new(Stage::unshipped("rotation", 2).await);
    let old = aged(2500);
    stage.keep(old.data()).await;
    let (one, election) = follower(&stage, 0).await;
    let (two, successor) = follower(&stage, 1).await;
    let ports = [one.port(), two.port()];
    stage.ship_registered(&old.bundle()).await;
    stage.in_force().await;
    one.ready().await;
    two.ready().await;
    let load = Load::start(&stage, &ports);

    // Nobody rotates before somebody leads.
    let (resign, token) = shutdown::channel();
    tokio::spawn(election.run(token));
    stage.bundle_is("both authorities", |bundle| bundle.contains(&old.bundle()) && bundle != old.bundle()).await;
    // What one leader began another goes on with.
    resign.fire();
    let (_resign, token) = shutdown::channel();
    tokio::spawn(successor.run(token));
    let rotated = stage
        .secret_is("another authority alone", |kept| kept.authority != old.bundle() && kept.previous.is_none())
        .await;
    stage.bundle_is("the new authority alone", |bundle| bundle == rotated.authority).await;

    // A backup is restored: another authority, which is due as well.
    let backup = aged(2600);
    stage.overwrite(|data| *data = backup.data()).await;
    let rotated = stage
        .secret_is("an authority that is neither", |kept| {
            kept.previous.is_none() && ![&rotated.authority, &backup.bundle()].contains(&&kept.authority)
        })
        .await;
    stage.bundle_is("that authority alone", |bundle| bundle == rotated.authority).await;
    load.passed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_renewed_by_its_authority_and_nobody_has_to_be_told() {
    let stage = Arc::new(Stage::unshipped("renewal", 1).await);
    let old = aged(70);
    stage.keep(old.data()).await;
    let (replica, election) = follower(&stage, 0).await;
    stage.ship_registered(&old.bundle()).await;
    stage.in_force().await;
    let load = Load::start(&stage, &[replica.port()]);
    let mark = stage.cluster.audit().mark().unwrap();
    let (_resign, token) = shutdown::channel();
    tokio::spawn(election.run(token));
    let serving = String::from_utf8(old.data()["tls.crt"].0.clone()).unwrap();
    stage.secret_is("another certificate", |kept| kept.serving != serving && kept.authority == old.bundle()).await;
    load.passed().await;
    assert_eq!(stage.writes_since(mark), ["update secrets webhook-certificates"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn replicas_that_start_together_agree_on_one_authority() {
    let stage = Stage::with_replicas("agreement", 3).await;
    let (one, _idle) = follower(&stage, 0).await;
    let two = Replica::start_nth(&stage, 1, Leadership::always()).await;
    let (three, _idle) = follower(&stage, 2).await;
    for replica in [&one, &two, &three] {
        replica.ready().await;
    }
    stage.in_force().await;
    stage.submit("allow").await.unwrap();
    let kept = stage.secret_is("there", |_| true).await;
    for replica in [&one, &two, &three] {
        crate::load::call(replica.port(), &kept.authority).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn idle_replicas_write_nothing_and_a_restart_keeps_everything() {
    let stage = Arc::new(Stage::with_replicas("idle", 2).await);
    let first = Replica::start_nth(&stage, 1, Leadership::always()).await;
    let (second, _idle) = follower(&stage, 0).await;
    first.ready().await;
    second.ready().await;
    stage.in_force().await;
    let kept = stage.secret_is("there", |_| true).await;

    let mark = stage.cluster.audit().mark().unwrap();
    let load = Load::start(&stage, &[second.port()]);
    for turn in 0..3 {
        // Everybody is woken by something that is none of their business.
        let note = format!("turn={turn}");
        let configuration = format!("validatingwebhookconfiguration/{}", stage.name());
        stage.namespace.kubectl(&["annotate", "--overwrite", &configuration, &note]).unwrap();
        stage.namespace.kubectl(&["annotate", "--overwrite", "secret/webhook-certificates", &note]).unwrap();
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    // Here every replica is called by its port, also while it is not ready: what a Service would spare the API server.
    load.passed().await;
    first.end().await;
    let third = Replica::start_nth(&stage, 1, Leadership::always()).await;
    third.ready().await;
    crate::load::call(third.port(), &kept.bundle).await.unwrap();
    stage.submit("allow").await.unwrap();
    assert_eq!(stage.secret_is("there", |_| true).await, kept);
    assert_eq!(stage.writes_since(mark), Vec::<String>::new());
}
