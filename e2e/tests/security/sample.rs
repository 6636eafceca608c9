//! Every sample becomes a cache that serves, to clients that do what it asks for.

use std::fs;
use std::net::SocketAddr;

use e2e::operator::ours;
use e2e::pod::address;
use e2e::scrape::scrape;
use e2e::stage::Stage;
use serde_json::Value;
use testbed::Node;
use testbed::artifact::SASL as SASL_IMAGE;

use crate::attempt::{Login, attempt};
use crate::keyring::{Keyring, Shown};
use crate::set;

/// What the samples ask for by name and do not bring along.
const CERTIFICATES: [&str; 2] = ["certificate", "client-authority"];
/// The users that they bring along.
const USER: &str = "shop@example";
const PASSWORD: &str = "change-me";

/// The version in the sample for SASL: the official image of that name has it, and here ours stands in.
const WITH_SASL: &str = "docker.io/library/memcached:1.6.39";

struct Mode {
    is_encrypted: bool,
    is_required: bool,
    shown: Shown,
    login: Login<'static>,
}

impl Mode {
    fn of(spec: &Value) -> Self {
        let (tls, sasl) = (&spec["security"]["tls"], &spec["security"]["sasl"]);
        let asks_for_certificate = tls["enableClientCert"] == true;
        Self {
            is_encrypted: tls["enabled"] == true,
            is_required: tls["mode"] == "Required" || asks_for_certificate,
            shown: if asks_for_certificate { Shown::Ours } else { Shown::Nothing },
            login: match (&sasl["enabled"], &sasl["mode"]) {
                (Value::Bool(true), mode) if mode == "SASL" => Login::Sasl(USER, PASSWORD),
                (Value::Bool(true), _) => Login::Ascii(USER, PASSWORD),
                _ => Login::Nobody,
            },
        }
    }
}

async fn is_used(stage: &Stage, keyring: &Keyring, name: &str) {
    let cache = stage.ready(name).await.unwrap();
    let mode = Mode::of(&cache["spec"]);
    for pod in stage.servers(name).await.unwrap() {
        let host = address(&pod, 11211).unwrap();
        let tls = mode.is_required.then(|| keyring.tls(mode.shown));
        attempt(host, tls, mode.login).await.unwrap_or_else(|why| panic!("{name}: {why}"));
        if mode.is_encrypted {
            let host = SocketAddr::new(host.ip(), 11212);
            let tls = Some(keyring.tls(mode.shown));
            attempt(host, tls, mode.login).await.unwrap_or_else(|why| panic!("{name} on 11212: {why}"));
        }
        if cache["spec"]["monitoring"]["enabled"] == true {
            let figures = scrape(SocketAddr::new(host.ip(), 9150)).await.unwrap();
            assert_eq!(figures.value("memcached_up"), Some(1.0), "{name}");
        }
    }
}

#[tokio::test]
async fn every_sample_becomes_ready_and_serves() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "samples").await;
    node.tag(SASL_IMAGE, WITH_SASL).unwrap();
    let keyring = Keyring::make(&stage);
    for name in CERTIFICATES {
        keyring.issue_as(&stage, name);
    }
    let mut samples: Vec<_> = fs::read_dir(ours("samples")).unwrap().map(|entry| entry.unwrap().path()).collect();
    samples.retain(|path| path.file_name().is_some_and(|name| name != "kustomization.yaml"));
    assert!(samples.len() >= 8, "{samples:?}");
    for sample in &samples {
        stage.namespace.kubectl(&["apply", "--filename", sample.to_str().unwrap()]).unwrap();
    }
    let names = stage.namespace.kubectl(&["get", "memcached", "--output", "name"]).unwrap();
    let names: Vec<&str> = names.lines().filter_map(|line| line.split('/').nth(1)).collect();
    assert_eq!(names.len(), samples.len(), "one cache a sample, each with a name of its own: {names:?}");
    for name in names {
        is_used(&stage, &keyring, name).await;
    }
}
