//! What the cluster has of the kinds that our objects own: one store a kind, shared by all controllers, indexed by
//! the object that each of them concerns, so that no reconcile walks a namespace.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::api::DynamicObject;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client};
use operator_model::resource::{ResourceType, version};
use operator_model::trim::trim;

use crate::client::Clients;
use crate::controller::Request;
use crate::packed::{Packed, Packer};
use crate::task::Tasks;
use crate::watch::{Key, WatchHealth, WatchName, api_resource, follow, key, watch_config};
use crate::watched::{WatchState, WatchedNamespaces};

/// Finds the object that another one concerns.
pub type Route = Arc<dyn Fn(&DynamicObject) -> Option<Request> + Send + Sync>;

/// Told whom a change concerns.
pub type Wake = Arc<dyn Fn(Request) + Send + Sync>;

/// Whether an entry of an object's managed fields is kept.
pub type IsKept = Arc<dyn Fn(&ManagedFieldsEntry) -> bool + Send + Sync>;

/// All known objects of one kind that carry our labels.
#[derive(Clone)]
pub struct Store {
    resource: ResourceType,
    content: Arc<Mutex<Content>>,
    watches: Arc<WatchedNamespaces>,
    route: Route,
    is_kept: IsKept,
    pod_annotations: Arc<[&'static str]>,
}

#[derive(Default)]
struct Content {
    objects: HashMap<Key, Entry>,
    by_request: HashMap<Request, Vec<Key>>,
    packer: Packer,
}

struct Entry {
    object: Packed,
    request: Option<Request>,
}

impl Content {
    /// Keeps an object unless a newer version is known. Whom the change concerns, and whom it concerned before: an
    /// object that has lost its owner reference or its labels is still the owner's to adopt. Nobody, if nothing that is
    /// read of it has changed.
    fn put(&mut self, key: Key, object: Packed, request: Option<Request>) -> BTreeSet<Request> {
        let mut before = None;
        if let Some(known) = self.objects.get_mut(&key) {
            if known.object.version() > object.version() {
                return BTreeSet::new();
            }
            if known.request == request {
                let is_same = known.object.has_content_of(&object);
                known.object = object;
                return request.filter(|_| !is_same).into_iter().collect();
            }
            before = self.remove(&key).and_then(|entry| entry.request);
        }
        let (key, request) = self.shared(key, request);
        if let Some(request) = &request {
            self.by_request.entry(request.clone()).or_default().push(key.clone());
        }
        let concerned = before.into_iter().chain(request.clone()).collect();
        self.objects.insert(key, Entry { object, request });
        concerned
    }

    /// The same names, in memory that is taken already: a cache has several objects of a kind, and all have its namespace.
    fn shared(&self, (namespace, name): Key, request: Option<Request>) -> (Key, Option<Request>) {
        let Some(request) = request else { return ((namespace, name), None) };
        let request = match self.by_request.get_key_value(&request) {
            Some((known, _)) => known.clone(),
            None => request,
        };
        let either = |shared: &Arc<str>, own: Arc<str>| if **shared == *own { Arc::clone(shared) } else { own };
        ((either(&request.namespace, namespace), either(&request.name, name)), Some(request))
    }

    fn remove(&mut self, key: &Key) -> Option<Entry> {
        let entry = self.objects.remove(key)?;
        if let Some(request) = &entry.request
            && let Some(keys) = self.by_request.get_mut(request)
        {
            keys.retain(|each| each != key);
            if keys.is_empty() {
                self.by_request.remove(request);
            }
        }
        Some(entry)
    }

    fn version(&self, key: &Key) -> Option<u64> {
        self.objects.get(key).map(|entry| entry.object.version())
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
    /// Which of their managed fields are kept.
    pub is_kept: IsKept,
    /// Which annotations of pods are kept.
    pub pod_annotations: Arc<[&'static str]>,
}

impl Watch<'_> {
    /// Starts watching; `wake` gets whomever a change concerns.
    pub fn start(self, clients: &Clients, wake: &Wake, health: &WatchHealth, tasks: &Tasks) -> Store {
        let watches = Arc::new(WatchedNamespaces::new(self.namespaces));
        let Self { resource, route, is_kept, pod_annotations, .. } = self;
        let store = Store { resource, content: Arc::default(), watches, route, is_kept, pod_annotations };
        for namespace in store.watches.namespaces() {
            let follower = Follower { store: store.clone(), namespace, wake: Arc::clone(wake), listing: None };
            let config = watch_config().labels(self.labels);
            let (client, health) = (clients.watch(), health.clone());
            tasks.spawn("watch on children", async move { follower.run(client, config, health).await });
        }
        store
    }
}

impl Store {
    /// The object of that name, if it is known, as far as it is kept.
    pub fn get(&self, namespace: &str, name: &str) -> Option<DynamicObject> {
        let key: Key = (namespace.into(), name.into());
        let packed = self.content().objects.get(&key).map(|entry| entry.object.clone())?;
        packed.unpack().ok()
    }

    /// All known objects that concern the requested one, by name.
    pub fn of(&self, request: &Request) -> Vec<DynamicObject> {
        let content = self.content();
        let keys = content.by_request.get(request).into_iter().flatten();
        let packed: Vec<Packed> =
            keys.filter_map(|key| content.objects.get(key)).map(|entry| entry.object.clone()).collect();
        drop(content);
        let mut objects: Vec<DynamicObject> = packed.iter().filter_map(|object| object.unpack().ok()).collect();
        objects.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
        objects
    }

    /// Reads its own writes: the answer to a write is known before the watch tells of it.
    pub fn remember(&self, object: DynamicObject) {
        self.put(object);
    }

    /// Keeps an object; whom that concerns.
    fn put(&self, mut object: DynamicObject) -> BTreeSet<Request> {
        let request = (self.route)(&object);
        let key = key(&object);
        trim(self.resource, &mut object, &self.pod_annotations);
        let mut content = self.content();
        let packed = content.packer.pack(object, &*self.is_kept);
        content.put(key, packed, request)
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
    async fn run(mut self, client: Client, config: watcher::Config, health: WatchHealth) {
        let resource = self.store.resource;
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
                let known = content.version(&key(&object));
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
        for request in self.store.put(object) {
            (self.wake)(request);
        }
    }

    /// A list does not tell of objects that were deleted while nobody watched.
    fn remove_departed(&mut self) {
        let Some(listed) = self.listing.take() else { return };
        let is_in_scope = |key: &Key| self.namespace.as_deref().is_none_or(|namespace| *namespace == *key.0);
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

/// All stores, by kind.
pub type Stores = BTreeMap<ResourceType, Store>;

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
