//! Watches on single objects that others refer to, one each: nothing else of their kind is ever read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::UnboundedSender;
use tokio::task::AbortHandle;

use crate::watch::Key;

/// What is known of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Seen {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It does not exist.
    Absent,
    /// It exists, in this version.
    Present(String),
}

/// The Secrets that objects refer to.
#[derive(Clone)]
pub struct Secrets {
    client: Client,
    wake: UnboundedSender<Key>,
    watches: Arc<Mutex<BTreeMap<Key, Entry>>>,
}

struct Entry {
    task: AbortHandle,
    users: BTreeSet<String>,
    seen: Arc<Mutex<Seen>>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Secrets {
    /// None yet; `wake` gets whoever refers to a Secret that changes.
    pub fn new(client: Client, wake: UnboundedSender<Key>) -> Self {
        Self { client, wake, watches: Arc::default() }
    }

    /// The object `user` refers to exactly these Secrets of its namespace from now on.
    pub fn refer(&self, namespace: &str, user: &str, names: &BTreeSet<String>) {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        for name in names {
            let key = (namespace.to_owned(), name.clone());
            let entry = watches.entry(key.clone()).or_insert_with(|| self.start(key));
            entry.users.insert(user.to_owned());
        }
        watches.retain(|(place, name), entry| {
            if place == namespace && !names.contains(name) {
                entry.users.remove(user);
            }
            !entry.users.is_empty()
        });
    }

    /// What is known of a Secret.
    pub fn seen(&self, namespace: &str, name: &str) -> Seen {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = watches.get(&(namespace.to_owned(), name.to_owned()));
        entry.map(|entry| entry.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()).unwrap_or_default()
    }

    fn start(&self, key: Key) -> Entry {
        let seen = Arc::new(Mutex::new(Seen::Unknown));
        let follower = self.clone();
        let noted = Arc::clone(&seen);
        let task = tokio::spawn(async move { follower.follow(key, noted).await }).abort_handle();
        Entry { task, users: BTreeSet::new(), seen }
    }

    async fn follow(self, key: Key, seen: Arc<Mutex<Seen>>) {
        let api: Api<PartialObjectMeta<Secret>> = Api::namespaced(self.client.clone(), &key.0);
        let config = watcher::Config::default().fields(&format!("metadata.name={}", key.1));
        let mut events = std::pin::pin!(watcher(api, config));
        let mut listed = Seen::Absent;
        while let Some(event) = events.next().await {
            let now = match event {
                Ok(watcher::Event::Init) => {
                    listed = Seen::Absent;
                    continue;
                }
                Ok(watcher::Event::InitApply(secret)) => {
                    listed = present(&secret);
                    continue;
                }
                Ok(watcher::Event::InitDone) => listed.clone(),
                Ok(watcher::Event::Apply(secret)) => present(&secret),
                Ok(watcher::Event::Delete(_)) => Seen::Absent,
                Err(error) => {
                    tracing::debug!(%error, secret = key.1, "watch on a Secret failed; trying again");
                    tokio::time::sleep(Duration::from_secs(1)).await;
                    continue;
                }
            };
            let before = std::mem::replace(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner), now.clone());
            if before != now {
                self.wake_users(&key);
            }
        }
    }

    fn wake_users(&self, key: &Key) {
        let watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        for user in watches.get(key).into_iter().flat_map(|entry| &entry.users) {
            self.wake.send((key.0.clone(), user.clone())).ok();
        }
    }
}

fn present(secret: &PartialObjectMeta<Secret>) -> Seen {
    Seen::Present(secret.resource_version().unwrap_or_default())
}
