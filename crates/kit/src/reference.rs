//! Secrets that objects refer to. One watch a scope tells of changes, by metadata alone; of others than the referenced
//! ones nothing is kept. Values are read for referenced ones alone, and forgotten with the reference.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::api::core::v1::Secret;
use kube::core::PartialObjectMeta;
use kube::runtime::watcher::Event;
use kube::{Api, Client, ResourceExt};
use operator_model::problem::{Class, Problem};
use operator_model::reason;

use crate::REQUEST_TIMEOUT;
use crate::children::{Wake, status_code};
use crate::client::Clients;
use crate::controller::Request;
use crate::metrics::Metrics;
use crate::task::Tasks;
use crate::telemetry::Chain;
use crate::watch::{Key, WatchFailure, WatchHealth, WatchName, follow, watch_config};

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

/// Which Secrets are watched.
#[derive(Debug, Clone)]
enum Watched {
    /// Those of these namespaces; none means all.
    Namespaces(BTreeSet<String>),
    /// Those of this name, for who may not see more.
    Named(String),
}

/// The Secrets that objects refer to; clones are the same.
#[derive(Clone)]
pub struct Secrets {
    clients: Clients,
    wake: Wake,
    tasks: Tasks,
    health: WatchHealth,
    watched: Watched,
    content: Arc<Mutex<Content>>,
}

#[derive(Default)]
struct Content {
    entries: HashMap<Key, Entry>,
    /// The names that an object refers to, in its own namespace.
    references: HashMap<Request, BTreeSet<String>>,
    /// The namespaces that are watched, or all, and whether all that is there has been seen.
    scopes: HashMap<Option<String>, bool>,
}

#[derive(Default)]
struct Entry {
    referrers: HashSet<Request>,
    presence: Presence,
    /// The values of a version.
    data: Option<(String, SecretData)>,
    /// A list that is coming in has not told of it.
    is_missed: bool,
}

impl Content {
    /// The object refers to exactly these names from now on.
    fn refer(&mut self, request: &Request, names: &BTreeSet<String>) {
        let before = self.references.get(request);
        if before.map_or(names.is_empty(), |before| before == names) {
            return;
        }
        let key = |name: &str| -> Key { (Arc::clone(&request.namespace), name.into()) };
        for name in before.cloned().unwrap_or_default().difference(names) {
            if let Some(entry) = self.entries.get_mut(&key(name)) {
                entry.referrers.remove(request);
                if entry.referrers.is_empty() {
                    self.entries.remove(&key(name));
                }
            }
        }
        for name in names {
            self.entries.entry(key(name)).or_default().referrers.insert(request.clone());
        }
        if names.is_empty() {
            self.references.remove(request);
        } else {
            self.references.insert(request.clone(), names.clone());
        }
    }

    fn in_scope(&mut self, scope: Option<&str>) -> impl Iterator<Item = (&Key, &mut Entry)> {
        self.entries.iter_mut().filter(move |((namespace, _), _)| scope.is_none_or(|scope| scope == &**namespace))
    }

    fn is_synced(&self, namespace: &str) -> bool {
        let scope = |scope: Option<String>| self.scopes.get(&scope).copied().unwrap_or(false);
        scope(None) || scope(Some(namespace.to_owned()))
    }
}

impl Entry {
    /// Notes what is known by now; who refers to it, if that is news.
    fn observe(&mut self, now: Presence) -> Vec<Request> {
        if self.presence == now {
            return Vec::new();
        }
        if now == Presence::Absent {
            self.data = None;
        }
        self.presence = now;
        self.referrers.iter().cloned().collect()
    }
}

impl Secrets {
    /// Secrets of these namespaces, of all if there is none; `wake` gets whoever refers to one that changes.
    pub fn new(clients: Clients, namespaces: &[String], wake: Wake, tasks: Tasks, metrics: Metrics) -> Self {
        Self::watching(clients, Watched::Namespaces(namespaces.iter().cloned().collect()), wake, tasks, metrics)
    }

    /// One Secret, for an account that may not watch others.
    pub fn named(client: Client, name: &str, wake: Wake, tasks: Tasks, metrics: Metrics) -> Self {
        Self::watching(Clients::sharing(client), Watched::Named(name.to_owned()), wake, tasks, metrics)
    }

    fn watching(clients: Clients, watched: Watched, wake: Wake, tasks: Tasks, metrics: Metrics) -> Self {
        // What may not be watched is told on the objects that refer to it, and is no matter of readiness.
        Self { clients, wake, tasks, health: WatchHealth::new(metrics), watched, content: Arc::default() }
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
        let mut content = self.content();
        content.refer(request, names);
        let scope = match &self.watched {
            Watched::Namespaces(namespaces) if namespaces.is_empty() => None,
            _ => Some(request.namespace.to_string()),
        };
        // The first reference begins the watch: most operators of most clusters need none.
        if !names.is_empty() && !content.scopes.contains_key(&scope) {
            content.scopes.insert(scope.clone(), false);
            self.tasks.spawn("watch on Secrets", self.clone().follow(scope));
        }
    }

    /// The values of a Secret; read only when its version is not the one that was read before.
    async fn read(&self, namespace: &str, name: &str) -> Result<Option<SecretData>, String> {
        let key: Key = (namespace.into(), name.into());
        if let Some(entry) = self.content().entries.get(&key) {
            match (&entry.presence, &entry.data) {
                (Presence::Absent, _) => return Ok(None),
                (Presence::Present(version), Some((read, data))) if version == read => return Ok(Some(data.clone())),
                _ => {}
            }
        }
        let api: Api<Secret> = Api::namespaced(self.clients.requests().clone(), namespace);
        let read = tokio::time::timeout(REQUEST_TIMEOUT, api.get_opt(name)).await;
        let secret =
            read.map_err(|_| "the API server does not answer")?.map_err(|error| match status_code(&error) {
                Some(403) => format!("{}: give the operator its rights on Secrets back", Chain(&error)),
                _ => Chain(&error).to_string(),
            })?;
        Ok(self.remember(&key, secret))
    }

    /// Keeps what was read while somebody refers to it. Its presence is known by that only as long as a watch would
    /// tell of a change.
    fn remember(&self, key: &Key, secret: Option<Secret>) -> Option<SecretData> {
        let mut content = self.content();
        let is_watched = content.is_synced(&key.0);
        let version = secret.as_ref().map(|secret| secret.resource_version().unwrap_or_default());
        let data = secret.map(|secret| -> SecretData {
            secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect()
        });
        if let Some(entry) = content.entries.get_mut(key) {
            if is_watched && entry.presence == Presence::Unknown {
                entry.presence = version.clone().map_or(Presence::Absent, Presence::Present);
            }
            entry.data = version.zip(data.clone());
        }
        data
    }

    async fn follow(self, scope: Option<String>) {
        // Of this type kube asks for metadata alone: the values are not even sent.
        let api: Api<PartialObjectMeta<Secret>> = match &scope {
            Some(namespace) => Api::namespaced(self.clients.watch(), namespace),
            None => Api::all(self.clients.watch()),
        };
        let config = match &self.watched {
            Watched::Named(name) => watch_config().fields(&format!("metadata.name={name}")),
            Watched::Namespaces(_) => watch_config(),
        };
        let name = WatchName { kind: "Secret", namespace: scope.clone() };
        let (refused, refused_scope) = (self.clone(), scope.clone());
        let failed = move |failure| {
            if failure != WatchFailure::Other {
                // What was known may be outdated by now: it is read again, and the refusal told on the objects.
                refused.unwatched(refused_scope.as_deref());
            }
            false
        };
        let health = self.health.clone();
        let handle = move |event| self.handle(scope.as_deref(), event);
        follow(api, config, name, health, failed, handle).await;
    }

    fn handle(&self, scope: Option<&str>, event: Event<PartialObjectMeta<Secret>>) {
        let mut content = self.content();
        let woken = match event {
            Event::Init => {
                content.in_scope(scope).for_each(|(_, entry)| entry.is_missed = true);
                Vec::new()
            }
            Event::InitDone => {
                content.scopes.insert(scope.map(ToOwned::to_owned), true);
                let missed = content.in_scope(scope).filter(|(_, entry)| entry.is_missed);
                missed.flat_map(|(_, entry)| entry.observe(Presence::Absent)).collect()
            }
            Event::InitApply(secret) | Event::Apply(secret) => {
                let version = secret.resource_version().unwrap_or_default();
                content.entries.get_mut(&key(&secret)).map_or_else(Vec::new, |entry| {
                    entry.is_missed = false;
                    entry.observe(Presence::Present(version))
                })
            }
            Event::Delete(secret) => {
                content.entries.get_mut(&key(&secret)).map_or_else(Vec::new, |entry| entry.observe(Presence::Absent))
            }
        };
        drop(content);
        for request in woken {
            (self.wake)(request);
        }
    }

    fn unwatched(&self, scope: Option<&str>) {
        let mut content = self.content();
        content.scopes.insert(scope.map(ToOwned::to_owned), false);
        let woken: Vec<Request> =
            content.in_scope(scope).flat_map(|(_, entry)| entry.observe(Presence::Unknown)).collect();
        drop(content);
        for request in woken {
            (self.wake)(request);
        }
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(secret: &PartialObjectMeta<Secret>) -> Key {
    let metadata = &secret.metadata;
    (metadata.namespace.as_deref().unwrap_or_default().into(), metadata.name.as_deref().unwrap_or_default().into())
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
