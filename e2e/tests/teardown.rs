//! However a node ends, it leaves nothing on the host.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use e2e::memcached::Connection;
use e2e::pod::{address, create_ready, memcached_container};
use e2e::trace::Traces;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use testbed::cluster::launch::{self, executable};
use testbed::cluster::node::SHARED;
use testbed::cluster::state::State;
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{Node, wait};
use tokio::sync::{Mutex, MutexGuard};

/// One at a time: each looks at the whole host.
static HOST: Mutex<()> = Mutex::const_new(());

struct Host {
    name: &'static str,
    home: Home,
    before: Traces,
    _alone: MutexGuard<'static, ()>,
}

impl Host {
    /// The host before there is a node of that name.
    async fn observe(name: &'static str) -> Self {
        let alone = HOST.lock().await;
        let home = Home::locate().unwrap();
        // The other tests' node may still be waiting for a next user.
        launch::stop(&home, SHARED).await.unwrap();
        let before = Traces::observe(&home, name);
        Self { name, home, before, _alone: alone }
    }

    async fn expect_unchanged(&self) {
        wait::until("the host to be as before", 60, async || match self.left() {
            nothing if nothing.is_empty() => Ok(()),
            left => Err(left.join("\n")),
        })
        .await
        .unwrap();
    }

    fn left(&self) -> Vec<String> {
        Traces::observe(&self.home, self.name).beyond(&self.before)
    }

    fn testbed(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(executable().unwrap());
        command.args(arguments).env("TESTBED_HOME", self.home.root());
        command
    }

    fn node(&self) -> Node {
        Node::find(Store::new(self.home.clone(), Progress::hidden()), self.name).unwrap()
    }

    /// A node with a pod that serves, so that there is something to leave behind.
    async fn start_busy_node(&self) -> Node {
        let output = self.testbed(&["up", "--name", self.name]).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let node = self.node();
        let namespace = node.namespace("busy").await.unwrap();
        let spec = json!({"containers": [memcached_container("memcached", "memcached:1.6", 11211)]});
        let pod = create_ready(&namespace, "cache", spec).await.unwrap();
        Connection::open(&node, address(&pod, 11211).unwrap()).await.unwrap().set("a", "b").await.unwrap();
        let seen = self.left().join("\n");
        for kind in ["process: ", "interface: ", "route: ", "cgroup: ", "file: "] {
            assert!(seen.contains(kind), "a running node is seen: {kind} is missing in\n{seen}");
        }
        assert!(seen.contains("kubelet") && seen.contains("memcached -m"), "inside it too:\n{seen}");
        std::mem::forget(namespace);
        node
    }
}

fn send(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(i32::try_from(pid).unwrap()).unwrap(), signal).unwrap();
}

#[tokio::test]
async fn after_down() {
    let host = Host::observe("down-test").await;
    host.start_busy_node().await;
    let output = host.testbed(&["down", "--name", "down-test"]).output().unwrap();
    assert!(output.status.success());
    let left = host.left();
    assert!(left.is_empty(), "gone when `down` returns: {left:?}");
}

#[tokio::test]
async fn after_the_supervisor_is_killed() {
    let host = Host::observe("kill-test").await;
    let node = host.start_busy_node().await;
    send(node.supervisor().unwrap(), Signal::KILL);
    host.expect_unchanged().await;
}

#[tokio::test]
async fn after_the_owner_is_killed_and_the_next_command() {
    let host = Host::observe("owner-test").await;
    let node = host.start_busy_node().await;
    send(node.state().description.owner, Signal::KILL);
    wait::until("the node's end", 60, async || match State::find(&host.home, "owner-test") {
        Ok(None) => Ok(()),
        _ => Err("it is still owned".into()),
    })
    .await
    .unwrap();
    let output = host.testbed(&["status"]).output().unwrap();
    assert!(!String::from_utf8_lossy(&output.stdout).contains("owner-test"));
    host.expect_unchanged().await;
}

#[tokio::test]
async fn after_the_owner_is_told_to_end() {
    let host = Host::observe("term-test").await;
    let node = host.start_busy_node().await;
    send(node.state().description.owner, Signal::TERM);
    host.expect_unchanged().await;
}

#[tokio::test]
async fn after_ctrl_c_while_it_starts() {
    let host = Host::observe("ctrl-c-test").await;
    let mut up = host.testbed(&["up", "--name", "ctrl-c-test"]).stderr(Stdio::null()).spawn().unwrap();
    wait::until("the start to be under way", 60, async || match State::find(&host.home, "ctrl-c-test") {
        Ok(Some(state)) if !state.status().components.is_empty() => Ok(()),
        _ => Err("not yet".into()),
    })
    .await
    .unwrap();
    send(up.id(), Signal::INT);
    assert_eq!(up.wait().unwrap().code(), Some(130));
    host.expect_unchanged().await;
}

/// Starts a program that holds a shared node, and waits until it does.
fn hold(home: &Home, name: &str, deed: &str) -> Child {
    let mut child = Command::new(env!("CARGO_BIN_EXE_hold-node"))
        .args([name, deed])
        .env("TESTBED_HOME", home.root())
        .env("TESTBED_BIN", executable().unwrap())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("holding https://"), "{line}");
    child
}

#[tokio::test]
async fn after_a_test_panicked_but_not_while_another_uses_the_node() {
    let host = Host::observe("panic-test").await;
    let mut other = hold(&host.home, "panic-test", "wait");
    let mut panicking = hold(&host.home, "panic-test", "panic");
    assert!(!panicking.wait().unwrap().success());
    let node = host.node();
    node.client().await.unwrap().apiserver_version().await.expect("the other still has its node");
    other.kill().unwrap();
    other.wait().unwrap();
    host.expect_unchanged().await;
}
