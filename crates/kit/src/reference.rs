//! Secrets that objects refer to. Only their metadata is watched, one watch each; values are read for referenced ones
//! alone, and forgotten with the reference.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, ResourceExt};
use operator_model::problem::{Class, Problem};
use operator_model::reason;
use tokio::task::AbortHandle;

use crate::REQUEST_TIMEOUT;
use crate::children::{Wake, status_code};
use crate::controller::Request;
use crate::metrics::Metrics;
use crate::task::Tasks;
use crate::telemetry::Chain;
use crate::watch::{Key, WatchFailure, WatchHealth, WatchName, follow};

/// The values of a Secret.
pub type SecretData = BTreeMap<String, Vec<u8>>;

/// The Secrets that an object refers to, as they are.
#[derive(Debug, Clone, Default)]
pub struct ReferencedSecrets {
    /// By name; none if it does not exist. One that could not be read is missing here.
    pub secrets: BTreeMap<String, Option<SecretData>>,
    /// Why some could not be read.
    pub problems: Vec<Problem>,
}

/// What is known of a Secret.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
enum Presence {
    #[default]
    Unknown,
    Absent,
    /// It exists, in this version.
    Present(String),
}

/// The Secrets that objects refer to; clones are the same.
#[derive(Clone)]
pub struct Secrets {
    client: Client,
    wake: Wake,
    tasks: Tasks,
    entries: Arc<Mutex<BTreeMap<Key, Entry>>>,
}

struct Entry {
    watch: AbortHandle,
    referrers: BTreeSet<Request>,
    presence: Presence,
    /// The values of a version.
    data: Option<(String, SecretData)>,
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.watch.abort();
    }
}

impl Secrets {
    /// None yet; `wake` gets whoever refers to a Secret that changes.
    pub fn new(client: Client, wake: Wake, tasks: Tasks) -> Self {
        Self { client, wake, tasks, entries: Arc::default() }
    }

    /// The object refers to exactly these Secrets of its namespace from now on. What they hold.
    pub async fn refer(&self, request: &Request, names: &BTreeSet<String>) -> ReferencedSecrets {
        self.track(request, names);
        let mut referenced = ReferencedSecrets::default();
        for name in names {
            match self.read(&request.namespace, name).await {
                Ok(data) => {
                    referenced.secrets.insert(name.clone(), data);
                }
                Err(why) => {
                    let message = format!("Secret {name:?} cannot be read: {why}");
                    referenced.problems.push(Problem::new(reason::SECRET_UNREADABLE, message, Class::Retry));
                }
            }
        }
        referenced
    }

    /// The object was deleted: nobody's Secrets are kept in memory once nobody refers to them.
    pub fn forget(&self, request: &Request) {
        self.track(request, &BTreeSet::new());
    }

    /// The object refers to exactly these Secrets of its namespace from now on: it is woken when one changes.
    pub fn track(&self, request: &Request, names: &BTreeSet<String>) {
        let mut entries = self.entries();
        for name in names {
            let key = (request.namespace.clone(), name.clone());
            let entry = entries.entry(key.clone()).or_insert_with(|| self.watch(key));
            entry.referrers.insert(request.clone());
        }
        entries.retain(|(namespace, name), entry| {
            if *namespace == request.namespace && !names.contains(name) {
                entry.referrers.remove(request);
            }
            !entry.referrers.is_empty()
        });
    }

    /// The values of a Secret; read only when its version is not the one that was read before.
    async fn read(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, String> {
        let key = (namespace.to_owned(), name.to_owned());
        if let Some(entry) = self.entries().get(&key) {
            match (&entry.presence, &entry.data) {
                (Presence::Absent, _) => return Ok(None),
                (Presence::Present(version), Some((read, data))) if version == read => return Ok(Some(data.clone())),
                _ => {}
            }
        }
        let api: Api<Secret> = Api::namespaced(self.client.clone(), namespace);
        let read = tokio::time::timeout(REQUEST_TIMEOUT, api.get_opt(name)).await;
        let secret =
            read.map_err(|_| "the API server does not answer")?.map_err(|error| match status_code(&error) {
                Some(403) => format!("{}: give the operator its rights on Secrets back", Chain(&error)),
                _ => Chain(&error).to_string(),
            })?;
        let Some(secret) = secret else { return Ok(None) };
        let version = secret.resource_version().unwrap_or_default();
        let data: SecretData = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
        if let Some(entry) = self.entries().get_mut(&key) {
            entry.data = Some((version, data.clone()));
        }
        Ok(Some(data))
    }

    fn watch(&self, key: Key) -> Entry {
        let watch = self.tasks.spawn("watch on a Secret", self.clone().follow(key));
        Entry { watch, referrers: BTreeSet::new(), presence: Presence::Unknown, data: None }
    }

    async fn follow(self, key: Key) {
        let api: Api<PartialObjectMeta<Secret>> = Api::namespaced(self.client.clone(), &key.0);
        let config = watcher::Config::default().fields(&format!("metadata.name={}", key.1));
        let name = WatchName { kind: "Secret", namespace: Some(key.0.clone()) };
        // One Secret that may not be watched is told on its object, and is no matter of readiness.
        let health = WatchHealth::new(Metrics::unregistered());
        let (refused, refused_key) = (self.clone(), key.clone());
        let failed = move |failure| {
            if failure != WatchFailure::Other {
                // What was known may be outdated by now: it is read again, and the refusal told on the object.
                refused.observe(&refused_key, Presence::Unknown);
            }
            false
        };
        let mut listed = Presence::Absent;
        let handle = move |event| {
            let now = match event {
                Event::Init => {
                    listed = Presence::Absent;
                    return;
                }
                Event::InitApply(secret) => {
                    listed = present(&secret);
                    return;
                }
                Event::InitDone => listed.clone(),
                Event::Apply(secret) => present(&secret),
                Event::Delete(_) => Presence::Absent,
            };
            self.observe(&key, now);
        };
        follow(api, config, name, health, failed, handle).await;
    }

    fn observe(&self, key: &Key, now: Presence) {
        let mut entries = self.entries();
        let Some(entry) = entries.get_mut(key) else { return };
        if entry.presence == now {
            return;
        }
        if now == Presence::Absent {
            entry.data = None;
        }
        entry.presence = now;
        let referrers = entry.referrers.clone();
        drop(entries);
        for request in referrers {
            (self.wake)(request);
        }
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn present(secret: &PartialObjectMeta<Secret>) -> Presence {
    Presence::Present(secret.resource_version().unwrap_or_default())
}
