//! Watches on children: what the cluster has, and whom to wake when it changes.
//!
//! A kind that the cluster lacks is looked for again and again: installed later, it is picked up without a restart.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::StreamExt;
use kube::api::DynamicObject;
use kube::core::ApiResource;
use kube::runtime::reflector::{ObjectRef, Store, reflector, store::Writer};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use tokio::sync::mpsc::UnboundedSender;

use crate::shutdown::Shutdown;

/// How long until a kind that is missing is looked for again.
const LOOK_AGAIN: Duration = Duration::from_secs(10);

/// Namespace and name of an object to look at again.
pub type Key = (String, String);

/// Finds out whom an object concerns.
pub type Route = fn(&DynamicObject) -> Option<Key>;

/// What the cluster has of one kind, as far as it carries our labels.
#[derive(Clone)]
pub struct Watched {
    resource: ApiResource,
    stores: Arc<BTreeMap<Option<String>, Scope>>,
}

#[derive(Clone)]
struct Scope {
    store: Store<DynamicObject>,
    is_synced: Arc<AtomicBool>,
    is_absent: Arc<AtomicBool>,
}

/// What to watch.
pub struct Watch {
    /// The kind.
    pub resource: ApiResource,
    /// Only objects with these labels.
    pub labels: String,
    /// The namespaces; none means all.
    pub namespaces: Vec<String>,
    /// Whom to wake.
    pub route: Route,
}

impl Watch {
    /// Starts watching; `wake` gets whomever a change concerns.
    pub fn start(self, client: &Client, wake: &UnboundedSender<Key>, shutdown: &Shutdown) -> Watched {
        let scopes: Vec<Option<String>> =
            if self.namespaces.is_empty() { vec![None] } else { self.namespaces.iter().cloned().map(Some).collect() };
        let start = |namespace: Option<String>| {
            let api = match &namespace {
                Some(name) => Api::namespaced_with(client.clone(), name, &self.resource),
                None => Api::all_with(client.clone(), &self.resource),
            };
            let writer = Writer::new(self.resource.clone());
            let scope = Scope { store: writer.as_reader(), is_synced: Arc::default(), is_absent: Arc::default() };
            let follow = follow(api, self.labels.clone(), self.route, writer, scope.clone(), wake.clone());
            let shutdown = shutdown.clone();
            tokio::spawn(async move {
                tokio::select! {
                    () = follow => {}
                    () = shutdown.requested() => {}
                }
            });
            (namespace, scope)
        };
        let stores = Arc::new(scopes.into_iter().map(start).collect());
        Watched { resource: self.resource, stores }
    }
}

async fn follow(
    api: Api<DynamicObject>,
    labels: String,
    route: Route,
    writer: Writer<DynamicObject>,
    scope: Scope,
    wake: UnboundedSender<Key>,
) {
    let config = watcher::Config::default().labels(&labels);
    let absent = Arc::clone(&scope.is_absent);
    let events = watcher(api, config).then(move |event| {
        let absent = Arc::clone(&absent);
        async move {
            match &event {
                // The beginning of a list says nothing about its end.
                Ok(watcher::Event::Init) => {}
                Ok(_) => absent.store(false, Ordering::Relaxed),
                Err(error) => {
                    let is_absent = is_missing_kind(error);
                    absent.store(is_absent, Ordering::Relaxed);
                    // Without a pause a missing kind would be asked for in a loop.
                    tokio::time::sleep(if is_absent { LOOK_AGAIN } else { Duration::from_secs(1) }).await;
                }
            }
            event
        }
    });
    let mut events = std::pin::pin!(reflector(writer, events));
    let mut concerned = BTreeSet::new();
    while let Some(event) = events.next().await {
        match event {
            Ok(watcher::Event::InitDone) => {
                scope.is_synced.store(true, Ordering::Relaxed);
                // Also those whose objects went while nobody watched.
                for key in &concerned {
                    wake.send(Key::clone(key)).ok();
                }
                concerned = scope.store.state().iter().filter_map(|object| route(object)).collect();
            }
            Ok(watcher::Event::InitApply(object)) => concerned.extend(route(&object)),
            Ok(watcher::Event::Apply(object) | watcher::Event::Delete(object)) => {
                if let Some(key) = route(&object) {
                    concerned.insert(key.clone());
                    wake.send(key).ok();
                }
            }
            Ok(watcher::Event::Init) => {}
            Err(error) => tracing::debug!(%error, "watch failed; trying again"),
        }
    }
}

fn is_missing_kind(error: &watcher::Error) -> bool {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code == 404,
        _ => false,
    }
}

impl Watched {
    /// The object of that name, if it is known.
    pub fn get(&self, namespace: &str, name: &str) -> Option<DynamicObject> {
        let scope = self.scope(namespace)?;
        let key = ObjectRef::new_with(name, self.resource.clone()).within(namespace);
        scope.store.get(&key).map(|object| (*object).clone())
    }

    /// All known objects of a namespace.
    pub fn list(&self, namespace: &str) -> Vec<Arc<DynamicObject>> {
        let all = self.scope(namespace).map(|scope| scope.store.state()).unwrap_or_default();
        all.into_iter().filter(|object| object.metadata.namespace.as_deref() == Some(namespace)).collect()
    }

    /// The kind.
    pub fn resource(&self) -> &ApiResource {
        &self.resource
    }

    /// Whether everything there is has been seen once, or the kind does not exist.
    pub fn is_synced(&self) -> bool {
        self.stores.values().all(|scope| scope.is_synced.load(Ordering::Relaxed) || self.is_absent())
    }

    /// Whether the cluster lacks this kind.
    pub fn is_absent(&self) -> bool {
        self.stores.values().any(|scope| scope.is_absent.load(Ordering::Relaxed))
    }

    fn scope(&self, namespace: &str) -> Option<&Scope> {
        self.stores.get(&Some(namespace.to_owned())).or_else(|| self.stores.get(&None))
    }
}
