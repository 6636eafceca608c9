//! Installing twice does nothing the second time; what is damaged is built again.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use testbed::artifact::Set;
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::{Check, Store};

/// A home with everything a control plane needs, copied from the real one.
fn furnished_home(parts: &[&str]) -> (tempfile::TempDir, Store) {
    let real = Store::new(Home::locate().unwrap(), Progress::hidden());
    let dir = tempfile::tempdir().unwrap();
    let store = Store::new(Home::at(dir.path()).unwrap(), Progress::hidden());
    for artifact in [Set::ControlPlane, Set::Kubectl].into_iter().flat_map(Set::artifacts) {
        if !parts.contains(&artifact.name()) {
            continue;
        }
        let from = real.ensure(&artifact).unwrap();
        let copied = Command::new("cp").arg("-a").arg(&from).arg(store.path(&artifact)).status().unwrap();
        assert!(copied.success());
    }
    (dir, store)
}

const ALL: [&str; 4] = ["etcd-server", "kube-apiserver", "kube-controller-manager", "kubectl"];

fn install(home: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_testbed"))
        .args(["install", "--for", "control-plane"])
        .args(arguments)
        .env("TESTBED_HOME", home)
        .output()
        .unwrap()
}

/// Every file with its inode and time: any rebuild changes one of them.
fn fingerprint(dir: &Path) -> Vec<(PathBuf, u64, i64)> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).unwrap().flatten() {
        let metadata = entry.metadata().unwrap();
        if metadata.is_dir() {
            files.extend(fingerprint(&entry.path()));
        } else {
            files.push((entry.path(), metadata.ino(), metadata.mtime_nsec()));
        }
    }
    files.sort();
    files
}

#[test]
fn a_second_install_is_a_no_op() {
    let (home, store) = furnished_home(&ALL);
    let before = fingerprint(&store.home().artifacts());
    for arguments in [&[][..], &["--verify"]] {
        let output = install(home.path(), arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{said}");
        assert!(said.starts_with("Everything is in place: 4 parts"), "{said}");
    }
    assert_eq!(fingerprint(&store.home().artifacts()), before);
}

#[test]
fn a_truncated_binary_is_built_again_and_nothing_else() {
    let (home, store) = furnished_home(&ALL);
    let [etcd, api_server, damaged] = <[_; 3]>::try_from(Set::ControlPlane.artifacts()).unwrap();
    let untouched = [fingerprint(&store.path(&etcd)), fingerprint(&store.path(&api_server))];
    let binary = store.path(&damaged).join("kube-controller-manager");
    File::options().write(true).open(&binary).unwrap().set_len(1000).unwrap();

    let output = install(home.path(), &[]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("was damaged, rebuilt"), "{said}");
    assert!(store.is_intact(&damaged, Check::Full));
    let version = Command::new(&binary).arg("--version").output().unwrap();
    assert_eq!(String::from_utf8_lossy(&version.stdout).trim(), "Kubernetes v1.36.4");
    assert_eq!([fingerprint(&store.path(&etcd)), fingerprint(&store.path(&api_server))], untouched);
}

#[test]
fn a_build_that_cannot_begin_says_what_is_missing_and_leaves_nothing() {
    let (home, store) = furnished_home(&["etcd-server"]);
    // A PATH like that of a fresh machine on which nobody has installed Go.
    let path = tempfile::tempdir().unwrap();
    for program in ["setpriv", "setsid"] {
        std::os::unix::fs::symlink(Path::new("/usr/bin").join(program), path.path().join(program)).unwrap();
    }
    let output = Command::new(env!("CARGO_BIN_EXE_testbed"))
        .args(["install", "--for", "control-plane"])
        .env("TESTBED_HOME", home.path())
        .env("PATH", path.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("failed to start go") && said.contains("install Go 1.26"), "{said}");
    let left: Vec<_> = fs::read_dir(store.home().artifacts()).unwrap().flatten().map(|e| e.file_name()).collect();
    assert_eq!(left.len(), 1, "{left:?}");
}
