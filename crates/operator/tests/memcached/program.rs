//! The program itself: its offline subcommands, its metrics, its health.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output};

use serde_json::json;
use testbed::wait;

use crate::harness::{Arena, DEADLINE, condition, manifest};

fn operator(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_memcached-operator")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn the_definition_it_prints_is_the_one_in_the_repository() {
    let output = operator(&["crd"]);
    assert!(output.status.success());
    let file = std::fs::read_to_string(manifest("config/crd/memcached.c5c3.io_memcacheds.yaml")).unwrap();
    assert!(file.ends_with(&text(&output.stdout)));
}

#[test]
fn a_sample_is_explained_offline() {
    let output = operator(&["explain", "--filename", &manifest("samples/quickstart.yaml")]);
    let shown = text(&output.stdout);
    assert!(output.status.success(), "{}", text(&output.stderr));
    for words in ["kind: Deployment", "kind: Service", "clusterIP: None", "name: sessions"] {
        assert!(shown.contains(words), "{words} is missing in:\n{shown}");
    }
}

#[test]
fn a_reader_that_has_seen_enough_is_no_error() {
    let pipe = format!("set -o pipefail; {} crd | head -1", env!("CARGO_BIN_EXE_memcached-operator"));
    let output = Command::new("bash").args(["-c", &pipe]).output().unwrap();
    assert!(output.status.success() && output.stderr.is_empty(), "{}", text(&output.stderr));
}

#[test]
fn what_will_hurt_is_explained() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let document = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "a"},
        "spec": {"image": "memcached:latest"},
    });
    std::fs::write(file.path(), document.to_string()).unwrap();
    let output = operator(&["explain", "--filename", file.path().to_str().unwrap()]);
    assert!(text(&output.stdout).contains("# warning: spec.image"), "{}", text(&output.stdout));
}

#[test]
fn what_cannot_work_is_explained_too() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let declare = |spec: serde_json::Value| {
        let document = json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "a"}, "spec": spec,
        });
        std::fs::write(file.path(), document.to_string()).unwrap();
        let output = operator(&["explain", "--filename", file.path().to_str().unwrap()]);
        assert_eq!(output.status.code(), Some(1));
        text(&output.stderr)
    };
    let said = declare(json!({"memcached": {"extraArgs": ["-p", "1"]}}));
    assert!(said.contains("spec.memcached.extraArgs[0]") && said.contains("the ports are fixed"), "{said}");
    let said = declare(json!({"replicas": "many"}));
    assert!(said.contains("is no Memcached"), "{said}");
    let missing = operator(&["explain", "--filename", "nowhere.yaml"]);
    assert!(text(&missing.stderr).contains("failed to read nowhere.yaml"));
    let unknown = operator(&["--metrics-bind-address=nonsense"]);
    assert_eq!(unknown.status.code(), Some(2));
}

pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// One request over a socket; the whole answer.
pub fn get(port: u16, path: &str) -> Result<String, String> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|e| e.to_string())?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").map_err(|e| e.to_string())?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).map_err(|e| e.to_string())?;
    Ok(answer)
}

pub async fn eventually(port: u16, path: &str, what: &str, is_so: impl Fn(&str) -> bool) -> String {
    wait::until(what.to_owned(), DEADLINE, async || {
        let answer = get(port, path)?;
        if is_so(&answer) { Ok(answer) } else { Err(answer) }
    })
    .await
    .unwrap()
}

#[tokio::test]
async fn health_and_metrics_tell_what_goes_on() {
    let arena = Arena::without_operator().await;
    let (metrics, health) = (free_port(), free_port());
    let metrics_address = format!("--metrics-bind-address=127.0.0.1:{metrics}");
    let health_address = format!("--health-probe-bind-address=127.0.0.1:{health}");
    arena.start_operator(&["--leader-elect=false", "--metrics-secure=false", &metrics_address, &health_address]);
    eventually(health, "/readyz", "readiness", |answer| answer.starts_with("HTTP/1.1 200")).await;
    assert!(get(health, "/healthz").unwrap().starts_with("HTTP/1.1 200"));

    let place = arena.namespace("metrics").await;
    place.declare("sessions", json!({"replicas": 2})).await;
    place.ready("sessions").await;
    let name = place.name();
    let ready = format!("memcached_operator_instance_replicas_ready{{namespace=\"{name}\",name=\"sessions\"}} 2");
    let shown = eventually(metrics, "/metrics", "two ready servers", |answer| answer.contains(&ready)).await;
    for series in [
        "memcached_operator_reconcile_total{",
        "memcached_operator_reconcile_duration_seconds_bucket{",
        "memcached_operator_reconcile_resource_total{",
        "memcached_operator_instance_info{",
        "memcached_operator_instance_replicas_desired{",
        "memcached_operator_api_requests_total{",
        "memcached_operator_leader",
        "memcached_operator_build_info",
        "memcached_operator_queue_depth{",
    ] {
        assert!(shown.contains(series), "{series} is missing in:\n{shown}");
    }

    place.create(&json!({
        "apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy",
        "metadata": {"name": "sessions"}, "spec": {"podSelector": {}},
    }));
    place.declare("sessions", json!({"replicas": 2, "security": {"networkPolicy": {"enabled": true}}})).await;
    place.eventually("memcached", "sessions", "told", |c| condition(c, "Degraded")["reason"] == "NameTaken").await;
    let error = "memcached_operator_errors_total{kind=\"Memcached\",reason=\"NameTaken\"}";
    eventually(metrics, "/metrics", "the error by its reason", |answer| answer.contains(error)).await;

    place.namespace.kubectl(&["delete", "memcached", "sessions"]).unwrap();
    let series = format!("namespace=\"{name}\",name=\"sessions\"");
    eventually(metrics, "/metrics", "its series to vanish", |answer| !answer.contains(&series)).await;
}
