//! A certificate that somebody else mounts, the way the kubelet does: by swapping a symlink.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use operator_kit::certificate::{self, Material};
use testbed::wait;

use crate::harness::{PATIENCE, Stage};
use crate::load::{Load, call};
use crate::replica::{Replica, TIMES};

/// Longer than files are left alone.
const LOOK: Duration = Duration::from_secs(40);

fn made() -> Material {
    Material::make(&["127.0.0.1".to_owned()], &TIMES, jiff::Timestamp::now()).unwrap()
}

/// Replaces the mounted files at once.
fn mount(directory: &Path, version: &str, certificate: &[u8], key: &[u8]) {
    let content = directory.join(version);
    fs::create_dir(&content).unwrap();
    fs::write(content.join("tls.crt"), certificate).unwrap();
    fs::write(content.join("tls.key"), key).unwrap();
    symlink(version, directory.join("..next")).unwrap();
    fs::rename(directory.join("..next"), directory.join("..data")).unwrap();
    for file in ["tls.crt", "tls.key"] {
        symlink(format!("..data/{file}"), directory.join(file)).ok();
    }
}

fn mount_all(directory: &Path, version: &str, made: &Material) {
    let data = made.data();
    mount(directory, version, &data["tls.crt"].0, &data["tls.key"].0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mounted_certificate_is_reloaded_and_a_bad_one_is_not() {
    let stage = Arc::new(Stage::new("mounted").await);
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (made(), made());
    mount_all(directory.path(), "..1", &old);
    let replica = Replica::serve(|shutdown| certificate::mounted(directory.path(), shutdown).unwrap());
    let port = replica.port();
    assert!(replica.is_ready(), "who mounts certificates tells the API server whom to trust");
    let both = old.bundle() + &new.bundle();
    stage.validate_at(&[port], Some(&both)).await;
    stage.in_force().await;
    let load = Load::start(&stage, &[port]);

    mount(directory.path(), "..2", &new.data()["tls.crt"].0, &old.data()["tls.key"].0);
    tokio::time::sleep(LOOK).await;
    call(port, &old.bundle()).await.expect("a pair that does not fit is not served");
    mount_all(directory.path(), "..3", &new);
    wait::until("the new certificate", PATIENCE, async || call(port, &new.bundle()).await).await.unwrap();
    load.passed().await;
    assert_eq!(stage.bundle().await, Some(both), "nobody wrote a bundle");
}
