//! The other operator's own black-box suite passes against ours, unchanged.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::fs;
use std::path::{Path, PathBuf};

use e2e::background::Background;
use e2e::chainsaw::{self, Report};
use e2e::operator;
use e2e::pod::create_ready;
use serde_json::{Value, json};
use testbed::artifact::{ARCHIVE, Artifact, exporter_image};
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{Node, wait};

/// How many cases the suite has.
const CASES: usize = 25;

/// How long the suite may take, in seconds; seen to take 80 on two cores.
const DEADLINE: u64 = 1800;

const MEMCACHED: &str = "docker.io/library/memcached:1.6";
const MEMCACHED_ALPINE: &str = "docker.io/library/memcached:1.6-alpine";

fn store() -> Store {
    Store::new(Home::locate().unwrap(), Progress::detect())
}

/// Where logs and the report go; they stay for a look afterwards.
fn results() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("compat")
}

/// Every case of the suite, by its name.
fn cases(suite: &Path) -> Vec<String> {
    let dirs = fs::read_dir(suite).unwrap().map(|entry| entry.unwrap());
    let mut cases: Vec<String> = dirs
        .filter(|dir| dir.path().join("chainsaw-test.yaml").is_file())
        .map(|dir| dir.file_name().into_string().unwrap())
        .collect();
    cases.sort();
    cases
}

/// The images that the suite names and a fresh node does not know.
fn load_images(node: &Node, store: &Store) {
    node.load(&store.ensure(&exporter_image()).unwrap().join(ARCHIVE)).unwrap();
    // Not Alpine, but a rolling update only needs another name.
    node.tag(MEMCACHED, MEMCACHED_ALPINE).unwrap();
}

#[test]
fn the_suite_has_the_cases_that_we_know() {
    let suite = store().ensure(&Artifact::peer_suite()).unwrap().join("test/e2e");
    let all = cases(&suite);
    assert_eq!(all.len(), CASES, "{all:?}");
}

#[test]
fn a_report_shows_the_step_that_failed() {
    let report = Report::parse(
        r#"{"tests": [
            {"name": "good", "steps": [{"name": "create", "operations": [{"type": "apply"}]}]},
            {"name": "bad", "steps": [{"name": "look", "operations": [
                {"type": "assert", "failure": {"error": "replicas: 3\nis 1"}}]}]}
        ]}"#,
    )
    .unwrap();
    assert_eq!(report.passed(), ["good"]);
    let shown = "passed  good\nFAILED  bad\n    step look, assert:\n        replicas: 3\n        is 1\n";
    assert_eq!(report.to_string(), shown);
}

#[tokio::test]
async fn the_images_that_the_suite_names_run_as_no_root() {
    let node = Node::shared().await.unwrap();
    load_images(&node, &store());
    let namespace = node.namespace("compat-images").await.unwrap();
    let pod = |image: &str, args: Value| {
        let security = json!({"runAsNonRoot": true, "readOnlyRootFilesystem": true});
        json!({"terminationGracePeriodSeconds": 60, "containers": [{
            "name": "it", "image": image, "imagePullPolicy": "IfNotPresent", "args": args, "securityContext": security,
        }]})
    };
    let (alpine, new, old) = tokio::join!(
        create_ready(&namespace, "alpine", pod("memcached:1.6-alpine", json!(["-m", "16"]))),
        create_ready(&namespace, "new", pod("prom/memcached-exporter:v0.15.4", json!([]))),
        create_ready(&namespace, "old", pod("prom/memcached-exporter:v0.14.0", json!(["--some-flag"]))),
    );
    for pod in [alpine, new, old] {
        pod.unwrap();
    }
    // Well within the grace period: they end because they were told to.
    namespace.kubectl(&["delete", "pod", "--all", "--timeout=30s"]).unwrap();
}

#[tokio::test]
async fn every_case_passes() {
    let store = store();
    // A report of an earlier run would tell of that run.
    fs::remove_dir_all(results()).ok();
    let node = Node::shared().await.unwrap();
    let peer = store.ensure(&Artifact::peer_suite()).unwrap();
    let suite = peer.join("test/e2e");
    load_images(&node, &store);
    let third_party = peer.join("config/crd/thirdparty").display().to_string();
    operator::install(&node, &[third_party]).await.unwrap();
    operator::deploy(&node).unwrap();
    // Three cases wait for certificates to be issued.
    node.add_cert_manager().await.unwrap();

    let wanted = cases(&suite);
    let dirs: Vec<PathBuf> = wanted.iter().map(|case| suite.join(case)).collect();
    let runner = store.ensure(&Artifact::chainsaw()).unwrap().join("chainsaw");
    let command = chainsaw::command(&runner, &node.kubeconfig(), &dirs, &results());
    let mut run = Background::start(command, &results().join("chainsaw.log")).unwrap();
    let ending =
        wait::until("the suite to end", DEADLINE, async || run.ended().ok_or_else(|| run.log_tail(5))).await.unwrap();

    let report = Report::read(&results()).unwrap_or_else(|error| panic!("{error}\n{}", run.log_tail(40)));
    // Captured, and shown when the test fails.
    println!("{report}");
    let mut passed = report.passed();
    passed.sort_unstable();
    assert!(
        passed == wanted && ending.success(),
        "{} of {} cases passed, chainsaw ended with {ending}. The operator's last words:\n{}\nMore in {}",
        passed.len(),
        wanted.len(),
        operator::deployed_log(&node, 40),
        run.log().display(),
    );
}
