//! A rolling update under load: who is not told to go serves without a break, and who is told serves on for a while.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use memcached_wire::{Endpoint, Expiry, Key};
use serde_json::json;
use testbed::{Node, wait};

use crate::set;
use crate::watch::Watch;

/// What one connection lived through.
#[derive(Debug, Default)]
struct Life {
    answered: usize,
    answered_while_leaving: usize,
    failed_while_staying: Option<String>,
}

/// Asks one server over one connection until that ends, or the test does.
async fn use_until_it_ends(watch: Arc<Watch>, name: String, address: String, is_over: Arc<AtomicBool>) -> Life {
    let mut life = Life::default();
    let key = Key::new("load").unwrap();
    let endpoint = Endpoint::new(address).with_deadline(Duration::from_secs(20));
    let mut connection = match endpoint.connect().await {
        Ok(connection) => connection,
        Err(error) => {
            life.failed_while_staying = (!watch.is_terminating(&name)).then(|| error.to_string());
            return life;
        }
    };
    while !is_over.load(Ordering::Relaxed) {
        let was_leaving = watch.is_leaving(&name);
        match connection.set(&key, b"x", 0, Expiry::NEVER).await {
            Ok(()) if was_leaving => life.answered_while_leaving += 1,
            Ok(()) => life.answered += 1,
            Err(error) => {
                // The end may be noticed here before it is noticed there.
                tokio::time::sleep(Duration::from_secs(2)).await;
                life.failed_while_staying = (!watch.is_terminating(&name)).then(|| error.to_string());
                break;
            }
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    life
}

#[tokio::test]
async fn servers_that_stay_never_fail_and_those_that_go_serve_on_before() {
    let node = Node::shared().await.unwrap();
    let stage = set(&node, "shutdown").await;
    let spec = |threads: i32| {
        let shutdown = json!({"enabled": true, "preStopDelaySeconds": 3, "terminationGracePeriodSeconds": 20});
        json!({
            "replicas": 3, "memcached": {"threads": threads},
            "highAvailability": {"gracefulShutdown": shutdown},
        })
    };
    stage.declare("sessions", &spec(2)).unwrap();
    stage.ready("sessions").await.unwrap();
    let (watch, is_over) = (Arc::new(Watch::start(&stage, "sessions")), Arc::new(AtomicBool::new(false)));
    let mut lives = BTreeMap::new();
    let before: Vec<String> = {
        wait::until("three servers to be watched", 60, async || match watch.serving().len() {
            3 => Ok(()),
            other => Err(other.to_string()),
        })
        .await
        .unwrap();
        watch.serving().into_iter().map(|(name, _)| name).collect()
    };
    stage.declare("sessions", &spec(3)).unwrap();
    wait::until("the rollout", 300, async || {
        for (name, server) in watch.serving() {
            lives.entry(name.clone()).or_insert_with(|| {
                let (watch, is_over) = (Arc::clone(&watch), Arc::clone(&is_over));
                tokio::spawn(use_until_it_ends(watch, name, server.address.to_string(), is_over))
            });
        }
        let serving = watch.serving();
        let is_done = serving.len() == 3 && serving.iter().all(|(name, _)| !before.contains(name));
        if is_done && before.iter().all(|name| !watch.is_leaving(name)) { Ok(()) } else { Err(format!("{serving:?}")) }
    })
    .await
    .unwrap();
    is_over.store(true, Ordering::Relaxed);
    assert_eq!(lives.len(), 6, "three old and three new ones");
    for (name, life) in lives {
        let life = life.await.unwrap();
        assert_eq!(life.failed_while_staying, None, "{name}");
        if before.contains(&name) {
            assert!(life.answered_while_leaving > 0, "{name} was told to go and went at once: {life:?}");
        } else {
            assert!(life.answered > 0, "{name}: {life:?}");
        }
    }
}
