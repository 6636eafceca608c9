//! A control plane that goes on without us: started, looked at, taken away, killed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod processes;

use std::process::{Command, Output};

use processes::processes_of;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use testbed::cluster::state::State;
use testbed::home::Home;
use testbed::wait;

fn testbed(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_testbed")).args(arguments).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

fn succeed(arguments: &[&str]) -> String {
    let output = testbed(arguments);
    assert!(output.status.success(), "testbed {arguments:?}: {}", said(&output));
    said(&output)
}

/// A cluster that is taken down whatever becomes of the test.
struct Cluster(String);

impl Cluster {
    fn up(prefix: &str) -> Self {
        let cluster = Self(format!("{prefix}-{}", std::process::id()));
        let shown = succeed(&["up", "--shape", "control-plane", "--name", &cluster.0]);
        assert!(shown.contains("is ready at https://127.0.0.1:"), "{shown}");
        cluster
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        testbed(&["down", "--name", &self.0]);
    }
}

#[test]
fn up_look_and_down() {
    let cluster = Cluster::up("life");
    let name = cluster.0.as_str();
    let again = succeed(&["up", "--shape", "control-plane", "--name", name]);
    assert!(again.contains("is ready at"), "a second `up` finds it running: {again}");
    let other = testbed(&["up", "--shape", "node", "--name", name]);
    assert!(!other.status.success());

    let status = succeed(&["status"]);
    assert!(status.contains(&format!("{name} (control plane): ready")), "{status}");
    let json: Value = serde_json::from_str(&succeed(&["status", "--output", "json"])).unwrap();
    let ours = json.as_array().unwrap().iter().find(|c| c["name"] == name).unwrap();
    assert_eq!(ours["phase"], "ready");
    let components: Vec<&str> =
        ours["components"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(components, ["etcd", "kube-apiserver", "kube-controller-manager"]);

    let kubeconfig = succeed(&["kubeconfig", "--name", name]);
    assert!(std::path::Path::new(kubeconfig.trim()).is_file(), "{kubeconfig}");
    let namespaces = succeed(&["kubectl", "--name", name, "get", "namespaces", "--output", "name"]);
    assert!(namespaces.contains("namespace/kube-system"), "{namespaces}");
    let refused = testbed(&["kubectl", "--name", name, "get", "no-such-kind"]);
    assert_eq!(refused.status.code(), Some(1), "kubectl's own exit code");

    let logs = succeed(&["logs", "--name", name]);
    assert!(logs.lines().any(|line| line == "kube-apiserver"), "{logs}");
    assert!(!succeed(&["logs", "--name", name, "etcd"]).is_empty());
    let unknown = testbed(&["logs", "--name", name, "kubelet"]);
    assert!(said(&unknown).contains("no component \"kubelet\""), "{}", said(&unknown));
    let load = testbed(&["load", "--name", name, "/etc/hostname"]);
    assert!(said(&load).contains("runs no containers"), "{}", said(&load));

    succeed(&["down", "--name", name]);
    assert!(!succeed(&["status"]).contains(name));
    assert!(succeed(&["down", "--name", name]).contains("was not running"));
}

#[tokio::test]
async fn a_lost_component_is_seen() {
    let cluster = Cluster::up("lost");
    let home = Home::locate().unwrap();
    let dir = home.clusters().join(&cluster.0);
    let etcd = processes_of(&dir).into_iter().find(|(_, line)| line.contains("--data-dir")).unwrap();
    kill(etcd.0);
    wait::until("the loss to be noticed", 60, async || {
        let status = succeed(&["status"]);
        if status.contains("failed: etcd ended") { Ok(()) } else { Err(status) }
    })
    .await
    .unwrap();
    let up = testbed(&["up", "--shape", "control-plane", "--name", &cluster.0]);
    assert!(said(&up).contains("testbed down --name"), "{}", said(&up));
}

#[tokio::test]
async fn a_killed_owner_takes_everything_with_it() {
    let cluster = Cluster::up("kill");
    let home = Home::locate().unwrap();
    let state = State::find(&home, &cluster.0).unwrap().unwrap();
    assert_eq!(processes_of(&state.dir).len(), 3);
    kill(state.description.owner);
    wait::until("every process to be gone", 60, async || match processes_of(&state.dir) {
        none if none.is_empty() => Ok(()),
        left => Err(format!("{left:?}")),
    })
    .await
    .unwrap();
    // Its owner cannot: the next command does, this one or one of another test.
    succeed(&["status"]);
    assert!(!state.dir.exists(), "the next command removes what is left");
}

fn kill(pid: u32) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), Signal::KILL).unwrap();
}
