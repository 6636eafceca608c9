//! Secrets that change under a cache of a StatefulSet: taken live, nothing restarts, open connections stay. What cannot be
//! used changes nothing, and is told.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::pod::{address, container};
use e2e::scrape::get;
use e2e::stage::{Stage, message, verdict};
use k8s_openapi::api::core::v1::Pod;
use memcached_wire::{Endpoint, Expiry, Key};
use serde_json::{Value, json};
use testbed::{Node, wait};

use crate::attempt::{Login, attempt};
use crate::keyring::{Keyring, Shown};
use crate::set;

/// What the agent says of the certificate that is shown.
async fn certificate(pod: &Pod) -> Value {
    let text = get(address(pod, 9151).unwrap(), "/status").await.unwrap_or_default();
    let body = text.split_once("\r\n\r\n").map(|(_, body)| body).unwrap_or_default();
    serde_json::from_str::<Value>(body).unwrap_or_default()["certificates"].clone()
}

/// Waits until clients that show one are let in at every pod, and those that show the other are not.
async fn until_trusted(pods: &[Pod], keyring: &Keyring, trusted: Shown, refused: Shown) {
    let try_as = |at: SocketAddr, shown| attempt(at, Some(keyring.tls(shown)), Login::Nobody);
    wait::until(format!("{trusted:?} to be trusted"), 120, async || {
        for pod in pods {
            let at = address(pod, 11211).unwrap();
            try_as(at, trusted).await?;
            if try_as(at, refused).await.is_ok() {
                return Err(format!("{refused:?} is let in"));
            }
        }
        Ok(())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn certificates_are_taken_live_and_bad_ones_are_told() {
    let node = Node::shared().await.unwrap();
    let stage: Stage = set(&node, "live-certificates").await;
    let keyring = Keyring::make(&stage);
    let tls = json!({"enabled": true, "enableClientCert": true, "certificateSecretRef": {"name": "certs"}});
    let spec = json!({"replicas": 2, "workload": {"type": "StatefulSet"}, "security": {"tls": tls}});
    stage.declare("sessions", &spec).unwrap();
    stage.ready("sessions").await.unwrap();
    let pods = stage.servers("sessions").await.unwrap();
    let endpoint = Endpoint::new(address(&pods[0], 11211).unwrap().to_string()).with_deadline(Duration::from_secs(10));
    let mut open = endpoint.with_tls(keyring.tls(Shown::Ours)).connect().await.unwrap();
    let key = Key::new("kept").unwrap();
    open.set(&key, b"warm", 0, Expiry::NEVER).await.unwrap();
    let mut before = Vec::new();
    for pod in &pods {
        before.push(certificate(pod).await["serial"].clone());
    }

    keyring.issue(&stage);
    wait::until("the new certificate to be shown by every pod", 120, async || {
        for (pod, old) in pods.iter().zip(&before) {
            let now = certificate(pod).await;
            if now["serial"] == *old || now["inForce"] != true {
                return Err(now.to_string());
            }
        }
        Ok(())
    })
    .await
    .unwrap();
    // What is no certificate.
    let garbage = json!({"stringData": {"tls.crt": "garbage"}}).to_string();
    stage.namespace.kubectl(&["patch", "secret", "certs", "--type=merge", "--patch", &garbage]).unwrap();
    let refused = ("True".to_owned(), "SecretsRefused".to_owned());
    let cache = stage.until("sessions", "told", |cache| verdict(cache, "Degraded") == refused).await.unwrap();
    assert!(message(&cache, "Degraded").contains("stays in force"), "{}", message(&cache, "Degraded"));
    until_trusted(&pods, &keyring, Shown::Ours, Shown::Untrusted).await;
    keyring.issue(&stage);
    stage.until("sessions", "well", |cache| verdict(cache, "Degraded").0 == "False").await.unwrap();

    let value = open.get(&key).await.unwrap().expect("the same connection, and the same value");
    assert_eq!(value.data, "warm");
    let uids = |pods: &[Pod]| pods.iter().map(|pod| pod.metadata.uid.clone()).collect::<Vec<_>>();
    let after = stage.servers("sessions").await.unwrap();
    assert_eq!(uids(&after), uids(&pods));
    for pod in &after {
        assert_eq!(container(pod, "memcached").unwrap().restart_count, 0);
    }
}
