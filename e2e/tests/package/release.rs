//! What is published says where its image is, and adds up.

use std::fs;
use std::process::Command;

use e2e::helm::Helm;
use e2e::operator::ours;
use testbed::ControlPlane;

use crate::document::objects;

const IMAGE: &str = "example.org/caches/memcached-operator:9.9.9";

#[tokio::test]
async fn the_published_files_name_the_published_image() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("files");
    let made = Command::new(ours("packaging/release")).arg(IMAGE).arg(&out).output().unwrap();
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));

    let flat = objects(&fs::read_to_string(out.join("install.yaml")).unwrap());
    let operator = &flat["Deployment memcached-operator-system/memcached-operator"];
    let cluster = ControlPlane::start().await.unwrap();
    let helm = Helm::of(&cluster, dir.path()).unwrap();
    let chart = out.join(format!("memcached-operator-{}.tgz", env!("CARGO_PKG_VERSION")));
    let chart = chart.to_str().unwrap();
    helm.run(&["lint", "--strict", chart]).unwrap();
    let rendered = objects(&helm.run(&["template", "memcached-operator", chart]).unwrap());
    let charted = &rendered["Deployment default/memcached-operator"];
    for deployment in [operator, charted] {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"], IMAGE);
        assert_eq!(container["env"][0]["value"], IMAGE, "the agent is in the same image");
    }

    let sums =
        Command::new("sha256sum").args(["--check", "--strict", "SHA256SUMS"]).current_dir(&out).output().unwrap();
    assert!(sums.status.success(), "{}", String::from_utf8_lossy(&sums.stderr));
    let listed = fs::read_to_string(out.join("SHA256SUMS")).unwrap().lines().count();
    assert_eq!(listed + 1, fs::read_dir(&out).unwrap().count(), "every file is listed");
}
