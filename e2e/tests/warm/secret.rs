//! Another password: taken live, on every pod, without a restart; connections stay.

use std::time::Duration;

use e2e::pod::{address, container};
use e2e::stage::Stage;
use memcached_wire::{Credentials, Endpoint, Expiry, Key};
use serde_json::{Value, json};
use testbed::{Node, wait};

use crate::{identities, ready_with, set, stateful};

fn set_password(stage: &Stage, password: &str) {
    stage
        .apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"},
            "stringData": {"password-file": format!("app:{password}\n")},
        }))
        .unwrap();
}

async fn login(pod: &k8s_openapi::api::core::v1::Pod, password: &str) -> Result<(), String> {
    let endpoint = Endpoint::new(address(pod, 11211).unwrap().to_string()).with_deadline(Duration::from_secs(10));
    let credentials = Credentials::new("app", password).unwrap();
    endpoint.with_credentials(credentials).connect().await.map(drop).map_err(|error| error.to_string())
}

#[tokio::test]
async fn a_new_password_is_taken_live_and_open_connections_stay() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "live-password").await;
    set_password(&stage, "first");
    let sasl = json!({"enabled": true, "credentialsSecretRef": {"name": "creds"}});
    stage.declare("sessions", &stateful(&json!({"replicas": 2, "security": {"sasl": sasl}}))).unwrap();
    let before = ready_with(&stage, "1.6.38").await;
    let endpoint =
        Endpoint::new(address(&before[0], 11211).unwrap().to_string()).with_deadline(Duration::from_secs(10));
    let credentials = Credentials::new("app", "first").unwrap();
    let mut open = endpoint.with_credentials(credentials).connect().await.unwrap();
    let key = Key::new("kept").unwrap();
    open.set(&key, b"warm", 0, Expiry::NEVER).await.unwrap();

    set_password(&stage, "second");
    wait::until("the new password to be in force", 120, async || {
        for pod in &before {
            login(pod, "second").await?;
        }
        Ok(())
    })
    .await
    .unwrap();
    for pod in &before {
        assert!(login(pod, "first").await.is_err(), "the old password is worth nothing any more");
    }
    let value = open.get(&key).await.unwrap().expect("the connection is the same, and so is the value");
    assert_eq!(value.data.as_ref(), b"warm");
    let told = |cache: &Value| {
        let words = ["get", "events", "--field-selector", "reason=SecretsInForce", "--no-headers"];
        cache["status"]["readyReplicas"] == 2 && stage.namespace.kubectl(&words).unwrap().contains("all servers")
    };
    stage.until("sessions", "told", told).await.unwrap();
    let after = ready_with(&stage, "1.6.38").await;
    assert_eq!(identities(&after), identities(&before));
    for pod in &after {
        assert_eq!(container(pod, "memcached").unwrap().restart_count, 0);
    }
}
