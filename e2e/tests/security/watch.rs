//! What happens to the servers of a cache while something else goes on: who is there, who is going, how many serve.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use e2e::pod::{address, is_ready};
use e2e::stage::Stage;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};
use tokio::task::JoinHandle;

const HASH: &str = "memcached.c5c3.io/secret-hash";

/// A server as it was last seen.
#[derive(Debug, Clone)]
pub struct Server {
    pub address: SocketAddr,
    pub is_ready: bool,
    pub is_terminating: bool,
    pub hash: Option<String>,
}

/// What was seen so far.
#[derive(Debug, Default)]
pub struct Seen {
    pub servers: BTreeMap<String, Server>,
    /// The fewest that were ready and not going.
    pub fewest: Option<usize>,
    /// The most that were there and not going.
    pub most: usize,
}

/// Looks again and again until it is stopped.
pub struct Watch {
    seen: Arc<Mutex<Seen>>,
    task: JoinHandle<()>,
}

impl Watch {
    pub fn start(stage: &Stage, cache: &str) -> Self {
        let seen = Arc::new(Mutex::new(Seen::default()));
        let (pods, noted) = (stage.namespace.api::<Pod>(), Arc::clone(&seen));
        let labels = format!("app.kubernetes.io/instance={cache}");
        let task = tokio::spawn(async move {
            loop {
                observe(&pods, &labels, &noted).await;
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        });
        Self { seen, task }
    }

    /// The servers that new connections go to.
    pub fn serving(&self) -> Vec<(String, Server)> {
        let seen = self.seen.lock().unwrap();
        let serving = seen.servers.iter().filter(|(_, server)| server.is_ready && !server.is_terminating);
        serving.map(|(name, server)| (name.clone(), server.clone())).collect()
    }

    /// Whether a server is on its way out, or gone.
    pub fn is_terminating(&self, name: &str) -> bool {
        self.seen.lock().unwrap().servers.get(name).is_none_or(|server| server.is_terminating)
    }

    /// Whether a server is on its way out, and not gone.
    pub fn is_leaving(&self, name: &str) -> bool {
        self.seen.lock().unwrap().servers.get(name).is_some_and(|server| server.is_terminating)
    }

    pub fn stop(self) -> Seen {
        self.task.abort();
        std::mem::take(&mut *self.seen.lock().unwrap())
    }
}

async fn observe(pods: &Api<Pod>, labels: &str, noted: &Mutex<Seen>) {
    let Ok(list) = pods.list(&ListParams::default().labels(labels)).await else { return };
    let mut servers = BTreeMap::new();
    for pod in list {
        let Ok(address) = address(&pod, 11211) else { continue };
        let server = Server {
            address,
            is_ready: is_ready(&pod),
            is_terminating: pod.metadata.deletion_timestamp.is_some(),
            hash: pod.metadata.annotations.as_ref().and_then(|all| all.get(HASH).cloned()),
        };
        servers.insert(pod.metadata.name.unwrap_or_default(), server);
    }
    let mut seen = noted.lock().unwrap();
    let staying = servers.values().filter(|server| !server.is_terminating);
    let ready = staying.clone().filter(|server| server.is_ready).count();
    seen.most = seen.most.max(staying.count());
    seen.fewest = Some(seen.fewest.map_or(ready, |fewest| fewest.min(ready)));
    seen.servers = servers;
}
