//! The demo on a cluster that people use: it takes away what it brought, and nothing of theirs.

use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use e2e::operator::ours;
use serde_json::Value;
use testbed::artifact::Artifact;
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{Cluster, ControlPlane, wait};

use crate::site::{DEADLINE, SYSTEM, Site};

const DEFINITION: &str = "customresourcedefinition/memcacheds.memcached.c5c3.io";
const IMAGE: &str = "memcached-operator:dev";

/// Somebody at a terminal, with `kubectl` pointed at a cluster and a namespace of it.
struct Person<'a> {
    cluster: &'a Cluster,
    kubeconfig: PathBuf,
    _files: tempfile::TempDir,
}

impl<'a> Person<'a> {
    fn at(cluster: &'a Cluster, namespace: &str) -> Self {
        let files = tempfile::tempdir().unwrap();
        let kubeconfig = files.path().join("kubeconfig");
        fs::copy(cluster.kubeconfig(), &kubeconfig).unwrap();
        let person = Self { cluster, kubeconfig, _files: files };
        let namespace = format!("--namespace={namespace}");
        let set = person.command("kubectl").args(["config", "set-context", "--current", &namespace]).output();
        assert!(set.unwrap().status.success());
        person
    }

    /// A program as it would run from the root of this repository.
    fn command(&self, program: &str) -> Command {
        let store = Store::new(Home::locate().unwrap(), Progress::hidden());
        let kubectl = store.ensure(&Artifact::kubernetes("kubectl")).unwrap();
        let path = format!("{}:{}", kubectl.display(), std::env::var("PATH").unwrap_or_default());
        let program = if program == "kubectl" { kubectl.join(program) } else { ours(program).into() };
        let mut command = Command::new(program);
        command.current_dir(ours("")).env("PATH", path).env("KUBECONFIG", &self.kubeconfig);
        command
    }

    /// What `make` runs for `CLUSTER=current`, and what it shows.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<String, String> {
        let output = self.command(program).args(["testbed", "current"]).args(arguments).output().unwrap();
        let text = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        if output.status.success() { Ok(text) } else { Err(text) }
    }

    fn demo(&self, arguments: &[&str]) -> String {
        self.run("demo/run", arguments).unwrap_or_else(|shown| panic!("{shown}"))
    }

    fn demo_down(&self) -> String {
        self.run("demo/down", &[]).unwrap_or_else(|shown| panic!("{shown}"))
    }

    /// What of these objects is there, by kind and name, with what tells them from others of the same name.
    fn identities(&self, namespace: &str, objects: &[&str]) -> Vec<String> {
        let identity = "jsonpath={range .items[*]}{.kind}/{.metadata.name} {.metadata.uid}{\"\\n\"}{end}";
        let get = [&["get", "--namespace", namespace, "--ignore-not-found", "--output", identity], objects].concat();
        let mut found: Vec<String> = self.cluster.kubectl(&get).unwrap().lines().map(str::to_owned).collect();
        found.sort();
        found
    }

    /// What is left of config/default.
    fn installed(&self) -> Vec<String> {
        let get = ["get", "--ignore-not-found", "--output", "name", "--kustomize", &ours("config/default")];
        self.cluster.kubectl(&get).unwrap().lines().map(str::to_owned).collect()
    }
}

/// A user's cache with everything that it is made of.
const CHILDREN: [&str; 4] = ["memcached/theirs", "deployment/theirs", "service/theirs", DEFINITION];

#[tokio::test]
async fn an_operator_and_caches_that_were_there_before_the_demo_stay() {
    let site = Site::open().await;
    let (theirs, play) = (site.namespace("theirs").await, site.namespace("play").await);
    site.node.kubectl(&["apply", "--server-side", "--kustomize", &ours("config/default")]).unwrap();
    site.rolled_out(SYSTEM, "memcached-operator").await;
    site.plain_cache(&theirs, "theirs").await;
    let person = Person::at(&site.node, play.name());
    let caches = person.identities(theirs.name(), &CHILDREN);
    let operator = person.identities(SYSTEM, &["deployment/memcached-operator", "service/memcached-operator-webhook"]);
    assert_eq!((caches.len(), operator.len()), (4, 2), "{caches:?} {operator:?}");

    let shown = person.demo(&[]);
    assert!(shown.contains("uses the one that is there: memcached-operator-system/memcached-operator"), "{shown}");
    // Before and after another version, and after another argument: in both servers.
    assert_eq!(shown.matches("holds 10000 keys").count(), 6, "{shown}");
    assert!(shown.contains("memcached:1.6.45   1"), "restarted once, in place: {shown}");
    let shown = person.demo_down();
    assert!(shown.contains(r#""sessions" deleted"#), "{shown}");
    assert_eq!(person.identities(theirs.name(), &CHILDREN), caches);
    let after = person.identities(SYSTEM, &["deployment/memcached-operator", "service/memcached-operator-webhook"]);
    assert_eq!(after, operator);
    assert_eq!(play.kubectl(&["get", "memcached,deployment,statefulset,service", "--output", "name"]).unwrap(), "");
    assert!(person.demo_down().contains("There is nothing of the demo to remove."));
    site.plain_cache(&theirs, "another").await;
}

#[tokio::test]
async fn caches_that_were_made_during_the_demo_stay_and_then_nothing_does() {
    let site = Site::open().await;
    let (theirs, play) = (site.namespace("theirs").await, site.namespace("play").await);
    let person = Person::at(&site.node, play.name());
    person.demo(&[IMAGE]);
    // Once more: it is the same demo.
    person.demo(&[IMAGE]);
    site.plain_cache(&theirs, "theirs").await;
    let before = person.identities(theirs.name(), &CHILDREN);

    let shown = person.demo_down();
    let stays = format!("  {}/theirs", theirs.name());
    assert!(shown.contains("stays") && shown.lines().any(|line| line == stays), "{shown}");
    assert_eq!(person.identities(theirs.name(), &CHILDREN), before);
    assert_eq!(person.installed(), ["customresourcedefinition.apiextensions.k8s.io/memcacheds.memcached.c5c3.io"]);
    assert_eq!(play.kubectl(&["get", "memcached,deployment,statefulset,service", "--output", "name"]).unwrap(), "");
    // Nobody who is gone is asked for a review.
    theirs.kubectl(&["patch", "memcached", "theirs", "--type=merge", r#"--patch={"spec":{"replicas":2}}"#]).unwrap();
    assert!(person.demo_down().contains("stays"), "as often as it is run");

    theirs.kubectl(&["delete", "memcached", "theirs", "--cascade=foreground"]).unwrap();
    let shown = person.demo_down();
    assert!(shown.contains("What the demo brought is gone."), "{shown}");
    assert_eq!(person.installed(), [""; 0]);
}

/// Stops a demo at the moment at which `is_far_enough`.
async fn interrupt(person: &Person<'_>, is_far_enough: impl Fn() -> Result<(), String>) {
    let mut demo = person.command("demo/run");
    let mut demo = demo.args(["testbed", "current", IMAGE]).process_group(0).spawn().unwrap();
    let far_enough = wait::until("the demo to be far enough", DEADLINE, async || is_far_enough()).await;
    let stopped = Command::new("kill").args(["-KILL", "--", &format!("-{}", demo.id())]).status();
    demo.wait().unwrap();
    assert!(stopped.unwrap().success());
    far_enough.unwrap();
}

#[tokio::test]
async fn an_interrupted_demo_is_removed_without_what_was_there_before() {
    let cluster = ControlPlane::start().await.unwrap();
    cluster.kubectl(&["create", "namespace", SYSTEM]).unwrap();
    cluster.kubectl(&["create", "configmap", "theirs", "--namespace", SYSTEM]).unwrap();
    cluster.kubectl(&["create", "clusterrole", "memcached-operator-view", "--verb=get", "--resource=pods"]).unwrap();
    cluster.kubectl(&["apply", "--server-side", "--kustomize", &ours("config/crd")]).unwrap();
    let theirs = ["namespace/memcached-operator-system", "clusterrole/memcached-operator-view", DEFINITION];
    let person = Person::at(&cluster, "default");
    let before = person.identities(SYSTEM, &theirs);
    assert_eq!(before.len(), 3, "{before:?}");
    // No node, so the operator never becomes ready and the demo waits for it.
    interrupt(&person, || {
        let last = ["get", "validatingwebhookconfiguration", "memcached-operator"];
        cluster.kubectl(&last).map(drop).map_err(|error| error.to_string())
    })
    .await;
    assert!(person.installed().len() > 15, "{:?}", person.installed());

    let shown = person.demo_down();
    assert!(shown.contains("What the demo brought is gone."), "{shown}");
    assert_eq!(person.identities(SYSTEM, &theirs), before);
    assert_eq!(person.installed().len(), 3, "{:?}", person.installed());
    cluster.kubectl(&["get", "configmap", "theirs", "--namespace", SYSTEM]).unwrap();
}

#[tokio::test]
async fn a_namespace_of_the_demo_in_which_people_have_put_something_stays() {
    let cluster = ControlPlane::start().await.unwrap();
    let person = Person::at(&cluster, "default");
    interrupt(&person, || {
        let last = ["get", "validatingwebhookconfiguration", "memcached-operator"];
        cluster.kubectl(&last).map(drop).map_err(|error| error.to_string())
    })
    .await;
    cluster.kubectl(&["create", "configmap", "theirs", "--namespace", SYSTEM]).unwrap();
    let shown = person.demo_down();
    assert!(shown.contains("Namespace memcached-operator-system stays"), "{shown}");
    assert_eq!(person.installed(), ["namespace/memcached-operator-system"]);
    cluster.kubectl(&["delete", "configmap", "theirs", "--namespace", SYSTEM]).unwrap();
    person.demo_down();
    assert_eq!(person.installed(), [""; 0]);
}

#[tokio::test]
async fn the_demo_does_not_touch_a_cache_of_the_same_name() {
    let cluster = ControlPlane::start().await.unwrap();
    cluster.kubectl(&["apply", "--server-side", "--kustomize", &ours("config/crd")]).unwrap();
    let sample = ours("samples/quickstart.yaml");
    let created = wait::until("the cache to be accepted", DEADLINE, async || {
        cluster.kubectl(&["create", "--filename", &sample]).map_err(|error| error.to_string())
    });
    created.await.unwrap();
    let get = || -> Value {
        serde_json::from_str(&cluster.kubectl(&["get", "memcached", "sessions", "--output", "json"]).unwrap()).unwrap()
    };
    let before = get();
    let person = Person::at(&cluster, "default");
    let shown = person.run("demo/run", &[IMAGE]).unwrap_err();
    assert!(shown.contains("memcached.memcached.c5c3.io/sessions is in the current namespace already"), "{shown}");
    assert_eq!(person.installed().len(), 1, "nothing but the definition: {:?}", person.installed());
    person.demo_down();
    assert_eq!(get(), before);
}
