//! A certificate that somebody else mounts, the way the kubelet does: by swapping a symlink.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use operator_kit::certificate::Material;
use testbed::wait;

use crate::harness::{DEADLINE, Stage};
use crate::load::{Load, call};
use crate::replica::{Replica, TIMES, registrations};

/// Longer than files are left alone.
const LOOK: Duration = Duration::from_secs(40);

fn made() -> Material {
    Material::make(&["127.0.0.1".to_owned()], &TIMES, jiff::Timestamp::now()).unwrap()
}

/// Replaces the mounted files at once: each comes from one of the two.
fn mount(directory: &Path, version: &str, pair: &Material, authority: &Material, key: &Material) {
    let content = directory.join(version);
    fs::create_dir(&content).unwrap();
    for (file, made) in [("tls.crt", pair), ("tls.key", key), ("ca.crt", authority)] {
        fs::write(content.join(file), &made.data()[file].0).unwrap();
        symlink(format!("..data/{file}"), directory.join(file)).ok();
    }
    symlink(version, directory.join("..next")).unwrap();
    fs::rename(directory.join("..next"), directory.join("..data")).unwrap();
}

fn mount_all(directory: &Path, version: &str, made: &Material) {
    mount(directory, version, made, made, made);
}

#[tokio::test(flavor = "multi_thread")]
async fn where_somebody_else_registers_a_mounted_certificate_is_reloaded_and_nothing_is_written() {
    let stage = Arc::new(Stage::unshipped("olm", 1).await);
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (made(), made());
    mount_all(directory.path(), "..1", &old);
    let replica = Replica::start_mounted(&stage, directory.path(), Vec::new()).await;
    let port = replica.port();
    assert!(replica.is_ready(), "who registers tells the API server whom to trust");
    let both = old.bundle() + &new.bundle();
    stage.ship_registered(&both).await;
    stage.in_force().await;
    let load = Load::start(&stage, &[port]);
    let mark = stage.cluster.audit().mark().unwrap();

    mount(directory.path(), "..2", &new, &new, &old);
    tokio::time::sleep(LOOK).await;
    call(port, &old.bundle()).await.expect("a pair that does not fit is not served");
    mount_all(directory.path(), "..3", &new);
    wait::until("the new certificate", DEADLINE, async || call(port, &new.bundle()).await).await.unwrap();
    load.passed().await;
    assert_eq!(stage.writes_since(mark), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_authority_is_registered_and_followed_by_another_without_a_refused_request() {
    let stage = Arc::new(Stage::new("mounted").await);
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (made(), made());
    mount_all(directory.path(), "..1", &old);
    let replica = Replica::start_mounted(&stage, directory.path(), registrations(&stage)).await;
    stage.in_force().await;
    stage.bundle_is("the mounted authority", |bundle| bundle == old.bundle()).await;
    let load = Load::start(&stage, &[replica.port()]);
    mount_all(directory.path(), "..2", &new);
    stage.bundle_is("both authorities", |bundle| bundle == new.bundle() + &old.bundle()).await;
    wait::until("the new certificate", DEADLINE, async || call(replica.port(), &new.bundle()).await).await.unwrap();
    stage.bundle_is("the new authority alone", |bundle| bundle == new.bundle()).await;
    load.passed().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_api_server_would_refuse_is_not_registered_and_locks_nobody_out() {
    let stage = Arc::new(Stage::new("unvouched").await);
    let directory = tempfile::tempdir().unwrap();
    let (one, other) = (made(), made());
    mount(directory.path(), "..1", &one, &other, &one);
    let replica = Replica::start_mounted(&stage, directory.path(), registrations(&stage)).await;
    replica.ready().await;
    // By then it would have registered.
    tokio::time::sleep(LOOK).await;
    assert_eq!(stage.entries().await, Vec::<serde_json::Value>::new());
    stage.submit("deny").await.expect("nobody is asked");
    mount_all(directory.path(), "..2", &one);
    stage.in_force().await;
}
