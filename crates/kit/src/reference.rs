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
use crate::watch::{Key, WatchFailure, WatchHealth, WatchName, follow, key, watch_config};
use crate::watched::WatchState;

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

impl Presence {
    fn is_older_than(&self, other: &Self) -> bool {
        let number = |version: &str| version.parse::<u64>().unwrap_or(0);
        match (self, other) {
            (Self::Present(one), Self::Present(other)) => number(one) < number(other),
            (Self::Absent, Self::Present(_)) => true,
            _ => false,
        }
    }
}

/// How many Secrets a list asks for at once.
const SECRETS_PAGE_SIZE: u32 = 20;

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
    /// The keys that are asked for.
    keys: Arc<BTreeSet<&'static str>>,
    content: Arc<Mutex<Content>>,
}

/// Larger Secrets are read each time: everybody may name one, and all of them share our memory.
const LARGEST_KEPT: usize = 16 << 10;

#[derive(Default)]
struct Content {
    entries: HashMap<Key, Entry>,
    /// The names that an object refers to, in its own namespace.
    references: HashMap<Request, BTreeSet<String>>,
    /// The namespaces that are watched, or all, and how far that is.
    scopes: HashMap<Option<String>, WatchState>,
    /// Those whose list is coming in: what is read from now on is not older than the list.
    listing: HashSet<Option<String>>,
}

#[derive(Default)]
struct Entry {
    referrers: HashSet<Request>,
    presence: Presence,
    /// The values of a version.
    data: Option<(String, SecretData)>,
    listed: Listed,
}

/// What the list that came in last has told of a Secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Listed {
    /// It has been referred to since the list began to come in.
    #[default]
    Unasked,
    /// Nothing yet.
    Missed,
    Told,
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

    fn state(&self, namespace: &str) -> WatchState {
        let scope = self.scopes.get(&None).or_else(|| self.scopes.get(&Some(namespace.to_owned())));
        scope.copied().unwrap_or(WatchState::Starting)
    }

    fn is_listing(&self, namespace: &str) -> bool {
        self.listing.contains(&None) || self.listing.contains(&Some(namespace.to_owned()))
    }

    /// The API server tells of a Secret; who refers to it, if that is news.
    fn told(&mut self, secret: &PartialObjectMeta<Secret>) -> Vec<Request> {
        let Some(entry) = self.entries.get_mut(&key(secret)) else { return Vec::new() };
        entry.listed = Listed::Told;
        entry.observe(Presence::Present(secret.resource_version().unwrap_or_default()))
    }

    /// A page of a list is here: whatever was referred to before is on this one or a later one, or does not exist.
    fn begin_pages(&mut self, scope: Option<&str>) {
        if self.listing.insert(scope.map(ToOwned::to_owned)) {
            for (_, entry) in self.in_scope(scope).filter(|(_, entry)| entry.listed == Listed::Unasked) {
                entry.listed = Listed::Missed;
            }
        }
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
        self.woken()
    }

    fn woken(&self) -> Vec<Request> {
        self.referrers.iter().cloned().collect()
    }

    /// Takes a list's end in: what it has not told of is not there. What was referred to meanwhile and read since is
    /// known; what was not is read again.
    fn end_list(&mut self) -> Vec<Request> {
        match self.listed {
            Listed::Missed => self.observe(Presence::Absent),
            Listed::Unasked if self.presence == Presence::Unknown => self.woken(),
            Listed::Told | Listed::Unasked => Vec::new(),
        }
    }
}

impl Secrets {
    /// Secrets of these namespaces, of all if there is none, with these keys; `wake` gets whoever refers to one that
    /// changes.
    pub fn new(
        clients: Clients,
        namespaces: &[String],
        keys: BTreeSet<&'static str>,
        wake: Wake,
        tasks: Tasks,
        metrics: Metrics,
    ) -> Self {
        let watched = Watched::Namespaces(namespaces.iter().cloned().collect());
        Self { keys: Arc::new(keys), ..Self::watching(clients, watched, wake, tasks, metrics) }
    }

    /// One Secret, for an account that may not watch others; of its values none is kept.
    pub fn named(client: Client, name: &str, wake: Wake, tasks: Tasks, metrics: Metrics) -> Self {
        Self::watching(Clients::sharing(client), Watched::Named(name.to_owned()), wake, tasks, metrics)
    }

    fn watching(clients: Clients, watched: Watched, wake: Wake, tasks: Tasks, metrics: Metrics) -> Self {
        // What may not be watched is told on the objects that refer to it, and is no matter of readiness.
        let (health, keys, content) = (WatchHealth::new(metrics), Arc::default(), Arc::default());
        Self { clients, wake, tasks, health, watched, keys, content }
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
        let is_unwatched = self.content().state(&request.namespace) == WatchState::Refused;
        if is_unwatched && !names.is_empty() && referenced.problems.is_empty() {
            // They are read again and again meanwhile.
            let message = "changes of Secrets are noticed late, for the operator may not list and watch them: give it \
                           its rights on Secrets back";
            referenced.problems.push(Problem::new(reason::SECRET_UNREADABLE, message.to_owned(), Class::Wait));
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
            content.scopes.insert(scope.clone(), WatchState::Starting);
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
        let is_watched = content.state(&key.0) == WatchState::Synced || content.is_listing(&key.0);
        let version = secret.as_ref().map(|secret| secret.resource_version().unwrap_or_default());
        let data = secret.map(|secret| -> SecretData {
            let all = secret.data.unwrap_or_default().into_iter();
            all.filter(|(key, _)| self.keys.contains(&**key)).map(|(key, value)| (key, value.0)).collect()
        });
        let size: usize = data.iter().flat_map(BTreeMap::values).map(Vec::len).sum();
        let mut woken = Vec::new();
        if let Some(entry) = content.entries.get_mut(key) {
            let read = version.clone().map_or(Presence::Absent, Presence::Present);
            if read.is_older_than(&entry.presence) {
                // Somebody else has read a newer one meanwhile, and the watch has no news: who got this asks again.
                woken = entry.woken();
            } else {
                if is_watched && entry.presence == Presence::Unknown {
                    entry.presence = read;
                }
                entry.data = version.zip(data.clone()).filter(|_| size <= LARGEST_KEPT);
            }
        }
        drop(content);
        self.wake(woken);
        data
    }

    fn wake(&self, requests: Vec<Request>) {
        for request in requests {
            (self.wake)(request);
        }
    }

    async fn follow(self, scope: Option<String>) {
        // Of this type kube asks for metadata alone: the values are not even sent.
        let api: Api<PartialObjectMeta<Secret>> = match &scope {
            Some(namespace) => Api::namespaced(self.clients.watch(), namespace),
            None => Api::all(self.clients.watch()),
        };
        let config = match &self.watched {
            Watched::Named(name) => watch_config().fields(&format!("metadata.name={name}")),
            // Anybody's Secrets, of any size: fewer at a time.
            Watched::Namespaces(_) => watch_config().page_size(SECRETS_PAGE_SIZE),
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
                content.listing.remove(&scope.map(ToOwned::to_owned));
                content.in_scope(scope).for_each(|(_, entry)| entry.listed = Listed::Missed);
                Vec::new()
            }
            Event::InitDone => {
                content.listing.remove(&scope.map(ToOwned::to_owned));
                content.scopes.insert(scope.map(ToOwned::to_owned), WatchState::Synced);
                content.in_scope(scope).flat_map(|(_, entry)| entry.end_list()).collect()
            }
            Event::InitApply(secret) => {
                content.begin_pages(scope);
                content.told(&secret)
            }
            Event::Apply(secret) => content.told(&secret),
            Event::Delete(secret) => {
                content.entries.get_mut(&key(&secret)).map_or_else(Vec::new, |entry| entry.observe(Presence::Absent))
            }
        };
        drop(content);
        self.wake(woken);
    }

    fn unwatched(&self, scope: Option<&str>) {
        let mut content = self.content();
        let before = content.scopes.insert(scope.map(ToOwned::to_owned), WatchState::Refused);
        let is_news = before != Some(WatchState::Refused);
        let told = content.in_scope(scope).flat_map(|(_, entry)| match entry.observe(Presence::Unknown) {
            nobody if nobody.is_empty() && is_news => entry.woken(),
            woken => woken,
        });
        let woken: Vec<Request> = told.collect();
        drop(content);
        self.wake(woken);
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
#[path = "reference_tests.rs"]
mod tests;
