//! Clients that other people wrote, unmodified from the package registries, over all servers of a cache.

use std::net::IpAddr;
use std::path::Path;
use std::process::Command;

use e2e::stage::Stage;
use serde_json::{Value, json};
use testbed::Node;
use testbed::artifact::{Artifact, SASL as SASL_IMAGE};
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;

use crate::keyring::{Keyring, PASSWORD, Shown, USER};
use crate::set;

/// Enough to reach every server.
const COUNT: &str = "300";

/// The servers behind the headless Service, as a pod of the cluster finds them.
async fn servers(stage: &Stage, cache: &str, port: u16) -> Vec<String> {
    let pods = stage.servers(cache).await.unwrap();
    let pod = pods[0].metadata.name.as_deref().unwrap();
    let name = format!("{cache}.{}.svc.cluster.local", stage.namespace.name());
    let text = stage.namespace.kubectl(&["exec", pod, "--container", "memcached", "--", "nslookup", &name]).unwrap();
    // The name server's own address comes first.
    let answer = text.split("Name:").skip(1).collect::<String>();
    let addresses = answer.lines().filter_map(|line| line.strip_prefix("Address"));
    let addresses = addresses.filter_map(|line| line.rsplit(' ').next()).filter_map(|word| word.parse::<IpAddr>().ok());
    let found: Vec<String> = addresses.map(|address| format!("{address}:{port}")).collect();
    assert_eq!(found.len(), pods.len(), "{text}");
    found
}

async fn cache(stage: &Stage, spec: Value) {
    let mut spec = spec;
    spec["replicas"] = json!(3);
    stage.declare("sessions", &spec).unwrap();
    stage.ready("sessions").await.unwrap();
}

fn store() -> Store {
    Store::new(Home::locate().unwrap(), Progress::detect())
}

/// The outcome of a client's run.
fn run(command: &mut Command) -> Result<String, String> {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

fn python(protocol: &str, servers: &[String], options: &[&str]) -> Result<String, String> {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("clients/client.py");
    let mut command = Command::new("python3");
    command.arg(script).args([protocol, COUNT]).args(servers).args(options);
    run(command.env("PYTHONPATH", store().ensure(&Artifact::python_clients()).unwrap()))
}

#[tokio::test]
async fn clients_in_python_go_and_rust_use_a_plain_cache() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "clients").await;
    cache(&stage, json!({})).await;
    let servers = servers(&stage, "sessions", 11211).await;
    python("text", &servers, &[]).unwrap();
    python("binary", &servers, &[]).unwrap();
    let go = store().ensure(&Artifact::gomemcache()).unwrap().join("gomemcache");
    run(Command::new(go).arg(COUNT).args(&servers)).unwrap();
    let urls: Vec<String> = servers.iter().map(|server| format!("memcache://{server}?timeout=20")).collect();
    tokio::task::spawn_blocking(move || {
        let client = memcache::connect(urls).unwrap();
        for number in 0..300 {
            client.set(&format!("rust-{number}"), number, 0).unwrap();
        }
        for number in 0..300 {
            assert_eq!(client.get::<i32>(&format!("rust-{number}")).unwrap(), Some(number));
        }
    })
    .await
    .unwrap();
    // Three clients' keys, two protocols in one of them: every server has some.
    for server in servers {
        let mut connection = memcached_wire::Endpoint::new(server).connect().await.unwrap();
        let stats = connection.stats(memcached_wire::Report::General).await.unwrap();
        assert!(stats.get("curr_items").unwrap().parse::<u32>().unwrap() > 50, "{stats:?}");
    }
}

#[tokio::test]
async fn a_client_in_python_uses_an_encrypted_cache_and_is_refused_without_a_certificate() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "clients-tls").await;
    let keyring = Keyring::make(&stage);
    let tls = json!({"enabled": true, "certificateSecretRef": {"name": "certs"}, "enableClientCert": true});
    cache(&stage, json!({"security": {"tls": tls}})).await;
    let (ca, certificate, key) = keyring.files(Shown::Ours);
    for port in [11211, 11212] {
        let servers = servers(&stage, "sessions", port).await;
        python("text", &servers, &["--ca", &ca, "--cert", &certificate, "--key", &key]).unwrap();
        assert!(python("text", &servers, &["--ca", &ca]).is_err(), "without a certificate");
        assert!(python("text", &servers, &[]).is_err(), "in plaintext");
    }
}

#[tokio::test]
async fn a_binary_client_in_python_logs_in_by_sasl() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "clients-sasl").await;
    let keyring = Keyring::make(&stage);
    let security = json!({
        "sasl": {"enabled": true, "mode": "SASL", "credentialsSecretRef": {"name": "creds"}},
        "tls": {"enabled": true, "certificateSecretRef": {"name": "certs"}},
    });
    cache(&stage, json!({"image": SASL_IMAGE, "security": security})).await;
    let (ca, _, _) = keyring.files(Shown::Ours);
    let plain = servers(&stage, "sessions", 11211).await;
    python("binary", &plain, &["--user", USER, "--password", PASSWORD]).unwrap();
    assert!(python("binary", &plain, &["--user", USER, "--password", "wrong"]).is_err());
    assert!(python("binary", &plain, &[]).is_err(), "without a login");
    let encrypted = servers(&stage, "sessions", 11212).await;
    python("binary", &encrypted, &["--user", USER, "--password", PASSWORD, "--ca", &ca]).unwrap();
}
