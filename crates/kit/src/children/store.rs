//! What the cluster has of the kinds that our objects own: one store a kind, shared by all controllers, indexed by
//! the object that each of them concerns, so that no reconcile walks a namespace.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use operator_model::resource::{ResourceType, version};

use crate::controller::Request;
use crate::task::Tasks;
use crate::watch::{Key, WatchHealth, WatchName, api_resource, follow};
use crate::watched::{WatchState, WatchedNamespaces};

/// Finds the object that another one concerns.
pub type Route = Arc<dyn Fn(&DynamicObject) -> Option<Request> + Send + Sync>;

/// Told whom a change concerns.
pub type Wake = Arc<dyn Fn(Request) + Send + Sync>;

/// All known objects of one kind that carry our labels.
#[derive(Clone)]
pub struct Store {
    content: Arc<Mutex<Content>>,
    watches: Arc<WatchedNamespaces>,
    route: Route,
}

#[derive(Default)]
struct Content {
    objects: HashMap<Key, Entry>,
    by_request: HashMap<Request, BTreeSet<Key>>,
}

struct Entry {
    object: Arc<DynamicObject>,
    request: Option<Request>,
}

impl Content {
    /// Keeps an object unless a newer version is known. Whom it concerns, and whom it concerned before: an object that
    /// has lost its owner reference or its labels is still the owner's to adopt.
    fn put(&mut self, object: DynamicObject, request: Option<Request>) -> BTreeSet<Request> {
        let key = key(&object);
        let known = self.objects.get(&key).map(|entry| version(entry.object.as_ref()));
        if known.is_some_and(|known| known > version(&object)) {
            return BTreeSet::new();
        }
        let before = self.remove(&key).and_then(|entry| entry.request);
        if let Some(request) = &request {
            self.by_request.entry(request.clone()).or_default().insert(key.clone());
        }
        let concerned = before.into_iter().chain(request.clone()).collect();
        self.objects.insert(key, Entry { object: Arc::new(object), request });
        concerned
    }

    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.objects.remove(key)?;
        if let Some(request) = &entry.request
            && let Some(keys) = self.by_request.get_mut(request)
        {
            keys.remove(key);
            if keys.is_empty() {
                self.by_request.remove(request);
            }
        }
        Some(entry)
    }
}

/// What to watch.
pub struct Watch<'a> {
    /// The kind.
    pub resource: ResourceType,
    /// Only objects with these labels.
    pub labels: &'a str,
    /// The namespaces; none means all.
    pub namespaces: &'a [String],
    /// Whom objects of the kind concern.
    pub route: Route,
}

impl Watch<'_> {
    /// Starts watching; `wake` gets whomever a change concerns.
    pub fn start(self, client: &Client, wake: &Wake, health: &WatchHealth, tasks: &Tasks) -> Store {
        let watches = Arc::new(WatchedNamespaces::new(self.namespaces));
        let store = Store { content: Arc::default(), watches, route: self.route };
        for namespace in store.watches.namespaces() {
            let watch = self.resource;
            let follower = Follower { store: store.clone(), namespace, wake: Arc::clone(wake), listing: None };
            let config = watcher::Config::default().labels(self.labels);
            let (client, health) = (client.clone(), health.clone());
            tasks.spawn("watch on children", async move { follower.run(watch, client, config, health).await });
        }
        store
    }
}

impl Store {
    /// The object of that name, if it is known.
    pub fn get(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        let content = self.content();
        content.objects.get(&(namespace.to_owned(), name.to_owned())).map(|entry| Arc::clone(&entry.object))
    }

    /// All known objects that concern the requested one.
    pub fn of(&self, request: &Request) -> Vec<Arc<DynamicObject>> {
        let content = self.content();
        let keys = content.by_request.get(request).into_iter().flatten();
        keys.filter_map(|key| content.objects.get(key)).map(|entry| Arc::clone(&entry.object)).collect()
    }

    /// Reads its own writes: the answer to a write is known before the watch tells of it.
    pub fn remember(&self, object: DynamicObject) {
        let request = (self.route)(&object);
        self.content().put(object, request);
    }

    /// How far its watches have come.
    pub fn watches(&self) -> &WatchedNamespaces {
        &self.watches
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watch of one scope, and what it does to the store.
struct Follower {
    store: Store,
    namespace: Option<String>,
    wake: Wake,
    /// The objects of a list that is still coming in.
    listing: Option<HashSet<Key>>,
}

impl Follower {
    async fn run(mut self, resource: ResourceType, client: Client, config: watcher::Config, health: WatchHealth) {
        let namespace = self.namespace.clone();
        let api: Api<DynamicObject> = match &namespace {
            Some(name) => Api::namespaced_with(client, name, &api_resource(resource)),
            None => Api::all_with(client, &api_resource(resource)),
        };
        let (watches, scope) = (Arc::clone(&self.store.watches), namespace.clone());
        let failed = move |failure| watches.failed(scope.as_ref(), failure, resource.is_optional);
        let name = WatchName { kind: resource.kind, namespace };
        follow(api, config, name, health, failed, move |event| self.handle(event)).await;
    }

    fn handle(&mut self, event: Event<DynamicObject>) {
        match event {
            Event::Init => self.listing = Some(HashSet::new()),
            Event::InitApply(object) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(key(&object));
                }
                self.put(object);
            }
            Event::InitDone => {
                self.remove_departed();
                self.store.watches.set(self.namespace.as_ref(), WatchState::Synced);
            }
            Event::Apply(object) => self.put(object),
            Event::Delete(object) => {
                let mut content = self.store.content();
                let known = content.objects.get(&key(&object)).map(|entry| version(entry.object.as_ref()));
                // One that we made anew meanwhile stays.
                let removed =
                    known.filter(|known| *known <= version(&object)).and_then(|_| content.remove(&key(&object)));
                drop(content);
                let request = removed.and_then(|entry| entry.request).or_else(|| (self.store.route)(&object));
                if let Some(request) = request {
                    (self.wake)(request);
                }
            }
        }
    }

    fn put(&self, object: DynamicObject) {
        let request = (self.store.route)(&object);
        let concerned = self.store.content().put(object, request);
        for request in concerned {
            (self.wake)(request);
        }
    }

    /// A list does not tell of objects that were deleted while nobody watched.
    fn remove_departed(&mut self) {
        let Some(listed) = self.listing.take() else { return };
        let is_in_scope = |key: &Key| self.namespace.as_ref().is_none_or(|namespace| *namespace == key.0);
        let mut content = self.store.content();
        let departed: Vec<Key> =
            content.objects.keys().filter(|key| is_in_scope(key) && !listed.contains(*key)).cloned().collect();
        let requests: Vec<Request> =
            departed.iter().filter_map(|key| content.remove(key)).filter_map(|entry| entry.request).collect();
        drop(content);
        for request in requests {
            (self.wake)(request);
        }
    }
}

fn key(object: &DynamicObject) -> Key {
    (object.namespace().unwrap_or_default(), object.name_any())
}

/// All stores, by kind.
pub type Stores = BTreeMap<ResourceType, Store>;

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
