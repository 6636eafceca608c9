//! A cache whose certificate an issuer of cert-manager makes: it is served, and what is missing is told.

use std::net::SocketAddr;

use e2e::pod::address;
use e2e::stage::{Stage, message, verdict};
use k8s_openapi::api::core::v1::Secret;
use memcached_wire::Tls;
use serde_json::{Value, json};
use testbed::{Node, wait};

use crate::attempt::{Login, attempt};
use crate::keyring::Keyring;
use crate::set;

/// How long cert-manager may take on a busy machine, in seconds.
const DEADLINE: u64 = 180;

fn issued_by(issuer: &str) -> Value {
    let tls = json!({"enabled": true, "mode": "Required", "issuerRef": {"name": issuer}});
    json!({"replicas": 1, "security": {"tls": tls}})
}

/// An object of cert-manager.
fn object(kind: &str, name: &str, spec: Value) -> Value {
    json!({"apiVersion": "cert-manager.io/v1", "kind": kind, "metadata": {"name": name}, "spec": spec})
}

/// An authority, and an issuer `ca` that signs with it.
fn make_issuer(stage: &Stage) {
    for object in [
        object("Issuer", "root", json!({"selfSigned": {}})),
        object(
            "Certificate",
            "authority",
            json!({"isCA": true, "commonName": "authority", "secretName": "authority", "issuerRef": {"name": "root"}}),
        ),
        object("Issuer", "ca", json!({"ca": {"secretName": "authority"}})),
    ] {
        stage.apply(&object).unwrap();
    }
}

/// A file of a Secret, as soon as it is there.
async fn file(stage: &Stage, secret: &str, file: &str) -> Vec<u8> {
    let secrets = stage.namespace.api::<Secret>();
    let found = wait::until(format!("{file} in Secret {secret}"), DEADLINE, async || {
        let secret = secrets.get(secret).await.map_err(|error| error.to_string())?;
        secret.data.unwrap_or_default().remove(file).map(|bytes| bytes.0).ok_or_else(|| "it is not in it".to_owned())
    });
    found.await.unwrap()
}

#[tokio::test]
async fn a_certificate_that_a_ca_issuer_signs_is_served_and_a_missing_issuer_is_told() {
    let node = Node::shared().await.unwrap();
    node.add_cert_manager().await.unwrap();
    let stage = set(&node, "issuer").await;
    stage.declare("sessions", &issued_by("ca")).unwrap();
    let told = |cache: &Value| message(cache, "Degraded").contains("sessions-tls");
    let cache = stage.until("sessions", "waiting for its Secret", told).await.unwrap();
    assert_eq!(verdict(&cache, "Degraded"), ("True".into(), "SecretNotFound".into()));
    let why = message(&cache, "Degraded");
    assert!(why.contains(r#"Issuer "ca" has not issued it"#), "{why}");
    let pointed_to = wait::until("cert-manager to tell what it waits for", DEADLINE, async || {
        let told =
            stage.namespace.kubectl(&["describe", "certificate", "sessions"]).map_err(|error| error.to_string())?;
        if told.contains("Issuing") { Ok(()) } else { Err(told) }
    });
    pointed_to.await.unwrap();

    make_issuer(&stage);
    stage.ready("sessions").await.unwrap();
    let authority = file(&stage, "authority", "tls.crt").await;
    assert_eq!(file(&stage, "sessions-tls", "ca.crt").await, authority);
    let host = format!("sessions.{}.svc.cluster.local", stage.namespace.name());
    let trusting = |authority: &[u8]| Tls::new(authority, None).unwrap().with_server_name(&host).unwrap();
    let pods = stage.servers("sessions").await.unwrap();
    let server = SocketAddr::new(address(&pods[0], 11211).unwrap().ip(), 11212);
    attempt(server, Some(trusting(&authority)), Login::Nobody).await.unwrap();
    let keyring = Keyring::make(&stage);
    attempt(server, Some(keyring.distrusting()), Login::Nobody).await.unwrap_err();
}
