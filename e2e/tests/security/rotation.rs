//! Secrets that change under a running cache: the servers are replaced one by one, and clients do not notice.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use e2e::stage::Stage;
use k8s_openapi::api::core::v1::Pod;
use memcached_wire::{Connection, Credentials, Endpoint, Expiry, Key, Stream};
use serde_json::{Value, json};
use testbed::{Node, wait};
use tokio::task::JoinHandle;

use crate::keyring::{PASSWORD, USER, set_password};
use crate::set;
use crate::watch::Watch;

const DEADLINE: Duration = Duration::from_secs(20);
const NEW_PASSWORD: &str = "another";

fn with_password(replicas: i32) -> Value {
    let sasl = json!({"enabled": true, "credentialsSecretRef": {"name": "creds"}});
    json!({"replicas": replicas, "security": {"sasl": sasl}})
}

fn names(pods: &[Pod]) -> Vec<String> {
    let mut names: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
    names.sort();
    names
}

/// Clients with a pool: a connection that is lost is replaced by one to a server that serves.
struct Load {
    is_over: Arc<AtomicBool>,
    answered: Arc<AtomicUsize>,
    task: JoinHandle<Vec<String>>,
}

impl Load {
    fn start(watch: Arc<Watch>) -> Self {
        let (is_over, answered) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (end, count) = (Arc::clone(&is_over), Arc::clone(&answered));
        let task = tokio::spawn(async move {
            let mut failures = Vec::new();
            let mut pooled: Option<Connection<Stream>> = None;
            while !end.load(Ordering::Relaxed) {
                let outcome = request(&mut pooled, &watch).await;
                match outcome {
                    Ok(()) => drop(count.fetch_add(1, Ordering::Relaxed)),
                    Err(why) => failures.push(why),
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            failures
        });
        Self { is_over, answered, task }
    }

    async fn stop(self) -> (usize, Vec<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        let failures = self.task.await.unwrap();
        (self.answered.load(Ordering::Relaxed), failures)
    }
}

/// Up to three connections for one request: the server that is going takes the first along.
async fn request(pooled: &mut Option<Connection<Stream>>, watch: &Watch) -> Result<(), String> {
    let mut last = String::new();
    for _ in 0..3 {
        let mut connection = match pooled.take() {
            Some(connection) => connection,
            None => match connect(watch).await {
                Ok(connection) => connection,
                Err(why) => {
                    last = why;
                    continue;
                }
            },
        };
        match connection.set(&Key::new("load").unwrap(), b"x", 0, Expiry::NEVER).await {
            Ok(()) => {
                *pooled = Some(connection);
                return Ok(());
            }
            Err(error) => last = error.to_string(),
        }
    }
    Err(last)
}

/// To any server that serves, with whichever password it knows.
async fn connect(watch: &Watch) -> Result<Connection<Stream>, String> {
    let mut last = "no server serves".to_owned();
    for (_, server) in watch.serving() {
        for password in [NEW_PASSWORD, PASSWORD] {
            let credentials = Credentials::new(USER, password).unwrap();
            let endpoint = Endpoint::new(server.address.to_string()).with_deadline(DEADLINE);
            match endpoint.with_credentials(credentials).connect().await {
                Ok(connection) => return Ok(connection),
                Err(error) => last = error.to_string(),
            }
        }
    }
    Err(last)
}

#[tokio::test]
async fn a_new_password_rolls_the_servers_one_by_one_and_no_client_notices() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "password").await;
    set_password(&stage, PASSWORD);
    stage.declare("sessions", &with_password(3)).unwrap();
    stage.ready("sessions").await.unwrap();
    let before = names(&stage.servers("sessions").await.unwrap());
    let watch = Arc::new(Watch::start(&stage, "sessions"));
    wait::until("three servers to be watched", 60, async || match watch.serving().len() {
        3 => Ok(()),
        other => Err(other.to_string()),
    })
    .await
    .unwrap();
    let old = watch.serving()[0].1.hash.clone();
    let load = Load::start(Arc::clone(&watch));

    set_password(&stage, NEW_PASSWORD);
    wait::until("every server to be new", 300, async || {
        let serving = watch.serving();
        let is_new = serving.len() == 3
            && serving
                .iter()
                .all(|(name, server)| !before.contains(name) && server.hash.is_some() && server.hash != old);
        if is_new { Ok(()) } else { Err(format!("{serving:?}")) }
    })
    .await
    .unwrap();
    let (answered, failures) = load.stop().await;
    assert!(failures.is_empty(), "{} of {answered} failed: {failures:?}", failures.len());
    assert!(answered > 100, "{answered} requests are no load");
    let seen = Arc::into_inner(watch).unwrap().stop();
    assert_eq!(seen.fewest, Some(3), "never fewer than wanted");
    assert!(seen.most <= 4, "one by one, but {} at once", seen.most);
    let address = seen.servers.values().find(|server| !server.is_terminating).unwrap().address;
    let old = Endpoint::new(address.to_string()).with_deadline(DEADLINE);
    let old = old.with_credentials(Credentials::new(USER, PASSWORD).unwrap()).connect().await;
    assert!(old.is_err(), "the old password is worth nothing any more");
}

#[tokio::test]
async fn a_key_that_is_not_mounted_rolls_nothing() {
    let node = Node::shared().await.unwrap();
    let stage: Stage = set(&node, "unmounted").await;
    set_password(&stage, PASSWORD);
    stage.declare("sessions", &with_password(1)).unwrap();
    stage.ready("sessions").await.unwrap();
    let before = names(&stage.servers("sessions").await.unwrap());
    let patch = json!({"stringData": {"note": "changed"}}).to_string();
    stage.namespace.kubectl(&["patch", "secret", "creds", "--type=merge", "--patch", &patch]).unwrap();
    // The next change comes after it: what it would have done is done by then.
    stage.declare("sessions", &with_password(2)).unwrap();
    stage.until("sessions", "two", |cache| cache["status"]["readyReplicas"] == 2).await.unwrap();
    stage.ready("sessions").await.unwrap();
    let after = names(&stage.servers("sessions").await.unwrap());
    assert!(before.iter().all(|name| after.contains(name)), "{before:?} became {after:?}");
}
