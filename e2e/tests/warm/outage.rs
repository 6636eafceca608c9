//! When servers did not answer, as a client sees it that asks them all the time.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use e2e::pod::address;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ResourceExt;
use tokio::io::AsyncWriteExt;
use tokio::task::JoinHandle;

use crate::client::{connect, line};

/// From the last answer before to the first one after.
pub type Outage = (Instant, Instant);

/// Asks every server every few milliseconds.
pub struct Observer {
    is_over: Arc<AtomicBool>,
    servers: BTreeMap<String, JoinHandle<Vec<Outage>>>,
}

impl Observer {
    pub fn start(pods: &[Pod]) -> Self {
        let is_over = Arc::new(AtomicBool::new(false));
        let observe = |pod: &Pod| {
            let (address, is_over) = (address(pod, 11211).unwrap(), Arc::clone(&is_over));
            (pod.name_any(), tokio::spawn(outages(address, is_over)))
        };
        let servers = pods.iter().map(observe).collect();
        Self { is_over, servers }
    }

    /// The outages of every server.
    pub async fn stop(self) -> BTreeMap<String, Vec<Outage>> {
        self.is_over.store(true, Ordering::Relaxed);
        let mut all = BTreeMap::new();
        for (name, task) in self.servers {
            all.insert(name, task.await.unwrap());
        }
        for (name, outages) in &all {
            let lengths: Vec<_> = outages.iter().map(|(from, to)| to.duration_since(*from)).collect();
            eprintln!("{name} did not answer for {lengths:?}");
        }
        all
    }
}

/// Whether two servers were away at once.
pub fn overlap(all: &BTreeMap<String, Vec<Outage>>) -> bool {
    let mut sorted: Vec<Outage> = all.values().flatten().copied().collect();
    sorted.sort();
    sorted.windows(2).any(|pair| pair[1].0 < pair[0].1)
}

async fn outages(address: SocketAddr, is_over: Arc<AtomicBool>) -> Vec<Outage> {
    let mut all = Vec::new();
    let mut last = Instant::now();
    let mut connection = None;
    let mut is_away = false;
    while !is_over.load(Ordering::Relaxed) {
        if connection.is_none() {
            connection = connect(address).await.ok();
        }
        let answers = match connection.as_mut() {
            Some(stream) => {
                let asked = stream.get_mut().write_all(b"version\r\n").await.is_ok();
                let answer = tokio::time::timeout(Duration::from_secs(5), line(stream)).await;
                asked && answer.is_ok_and(|answer| answer.starts_with("VERSION"))
            }
            None => false,
        };
        if answers {
            if is_away {
                all.push((last, Instant::now()));
            }
            last = Instant::now();
        } else {
            connection = None;
        }
        is_away = !answers;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    all
}
