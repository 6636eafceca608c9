//! What every round needs: clients, caches, metrics.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use kube::Client;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::events::{Recorder, Reporter};
use memcached_api::label;
use memcached_core::memcached::Settings;
use memcached_core::memcached::build::Kind;
use memcached_core::memcached::secret::Data;
use operator_kit::apply::{Applier, newer};
use operator_kit::backoff::Backoff;
use operator_kit::lease::Leadership;
use operator_kit::metrics::{GaugeFamily, Metrics};
use operator_kit::reference::{Secrets, Seen};
use operator_kit::shutdown::Shutdown;
use operator_kit::watch::{Key, Watch, Watched};
use tokio::sync::mpsc::UnboundedSender;

use crate::NAME as MANAGER;
use crate::args::Operator;

/// Names under which the other operator wrote the same objects.
const PREDECESSORS: [&str; 2] = ["manager", "memcached-operator"];

/// Shared by all rounds.
pub struct Context {
    /// The defaults to build by.
    pub settings: Settings,
    pub applier: Applier,
    pub metrics: Metrics,
    pub backoff: Backoff,
    pub recorder: Recorder,
    pub secrets: Secrets,
    pub secret_data: Mutex<HashMap<Key, (String, Data)>>,
    pub gauges: Gauges,
    children: BTreeMap<Kind, Watched>,
    pods: Watched,
    status_writes: Mutex<HashMap<Key, Instant>>,
    /// Caches that wait for a round.
    waiting: Mutex<BTreeSet<Key>>,
    /// Answers to our own writes, until the caches have caught up.
    answered: Mutex<HashMap<(Kind, Key), DynamicObject>>,
}

/// Per-cache series; they vanish with their cache.
pub struct Gauges {
    pub info: GaugeFamily,
    pub desired: GaugeFamily,
    pub ready: GaugeFamily,
    pub updated: GaugeFamily,
}

impl Gauges {
    fn all(&self) -> [&GaugeFamily; 4] {
        [&self.info, &self.desired, &self.ready, &self.updated]
    }
}

impl Context {
    pub fn new(
        operator: &Operator,
        settings: &Settings,
        client: Client,
        metrics: Metrics,
        leadership: Leadership,
        wake: &UnboundedSender<Key>,
        shutdown: &Shutdown,
    ) -> Self {
        let ours = format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_VALUE);
        let watch = |resource: ApiResource, route| {
            let namespaces = operator.watch_namespaces.clone();
            Watch { resource, labels: ours.clone(), namespaces, route }.start(&client, wake, shutdown)
        };
        // The second Service is in the same cache as the first.
        let kinds = Kind::ALL.into_iter().chain([Kind::Revision]).filter(|kind| *kind != Kind::ClientService);
        let children = kinds.map(|kind| (kind, watch(resource(kind), owner_of))).collect();
        let pod = GroupVersionKind::gvk("", "v1", "Pod");
        let pods = watch(ApiResource::from_gvk_with_plural(&pod, "pods"), instance_of);
        let gauge = |name, help| metrics.gauge_family(name, help);
        let reporter = Reporter { controller: MANAGER.into(), instance: None };
        Self {
            settings: settings.clone(),
            gauges: Gauges {
                info: gauge("instance_info", "A cache, with its image and version"),
                desired: gauge("instance_replicas_desired", "How many servers a cache is to have"),
                ready: gauge("instance_replicas_ready", "How many servers of a cache are ready"),
                updated: gauge("instance_replicas_updated", "How many servers of a cache are as declared"),
            },
            secrets: Secrets::new(client.clone(), wake.clone()),
            secret_data: Mutex::default(),
            recorder: Recorder::new(client.clone(), reporter),
            applier: Applier::new(client, MANAGER, &PREDECESSORS, leadership),
            metrics,
            backoff: Backoff::default(),
            children,
            pods,
            status_writes: Mutex::default(),
            waiting: Mutex::default(),
            answered: Mutex::default(),
        }
    }

    /// Whether everything there is has been seen.
    pub fn is_synced(&self) -> bool {
        self.children.values().all(Watched::is_synced) && self.pods.is_synced()
    }

    /// Whether the cluster lacks a kind.
    pub fn is_absent(&self, kind: Kind) -> bool {
        self.watched(kind).is_some_and(Watched::is_absent)
    }

    /// A child as it is known, by cache or by answer, whichever is newer.
    pub fn child(&self, kind: Kind, namespace: &str, name: &str) -> Option<DynamicObject> {
        let key = (kind, (namespace.to_owned(), name.to_owned()));
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        let cached = self.watched(kind).and_then(|watched| watched.get(namespace, name));
        let Some(answer) = answered.remove(&key) else {
            return cached;
        };
        let known = newer(cached, Some(answer.clone()));
        if known.as_ref().is_some_and(|known| known.resource_version() == answer.resource_version()) {
            answered.insert(key, answer);
        }
        known
    }

    /// Remembers the answer to a write.
    pub fn remember(&self, kind: Kind, object: DynamicObject) {
        let key = (object.namespace().unwrap_or_default(), object.name_any());
        self.answered.lock().unwrap_or_else(PoisonError::into_inner).insert((kind, key), object);
    }

    /// The known revisions of a cache.
    pub fn revisions(&self, namespace: &str, cache: &str) -> Vec<DynamicObject> {
        let all = self.watched(Kind::Revision).map(|watched| watched.list(namespace)).unwrap_or_default();
        let mut known: BTreeMap<String, DynamicObject> = BTreeMap::new();
        for object in all.iter().map(|object| (**object).clone()) {
            known.insert(object.name_any(), object);
        }
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        // Once the cache has one, the cache decides: what is deleted later is gone.
        answered.retain(|(kind, (place, name)), _| {
            *kind != Kind::Revision || place != namespace || !known.contains_key(name)
        });
        for ((kind, (place, name)), object) in answered.iter() {
            if *kind == Kind::Revision && place == namespace {
                known.insert(name.clone(), object.clone());
            }
        }
        let is_ours = |object: &DynamicObject| object.labels().get(label::TEMPLATE_OF).is_some_and(|of| of == cache);
        known.into_values().filter(is_ours).collect()
    }

    /// The known pods of a cache.
    pub fn pods(&self, namespace: &str, cache: &str) -> Vec<DynamicObject> {
        let of_cache = |object: &DynamicObject| object.labels().get(label::INSTANCE).is_some_and(|of| of == cache);
        let all = self.pods.list(namespace);
        all.iter().filter(|object| of_cache(object)).map(|object| (**object).clone()).collect()
    }

    /// A cache waits for a round.
    pub fn enqueued(&self, key: Key) {
        self.change_queue(|waiting| waiting.insert(key));
    }

    /// A cache got its round, or is no more.
    pub fn dequeued(&self, key: &Key) {
        self.change_queue(|waiting| waiting.remove(key));
    }

    fn change_queue(&self, change: impl FnOnce(&mut BTreeSet<Key>) -> bool) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        change(&mut waiting);
        self.metrics.queue_depth(super::KIND, waiting.len());
    }

    /// Whether a cache's status was written a moment ago.
    pub fn wrote_status_within(&self, key: &Key, pace: Duration) -> bool {
        let writes = self.status_writes.lock().unwrap_or_else(PoisonError::into_inner);
        writes.get(key).is_some_and(|when| when.elapsed() < pace)
    }

    /// A cache's status was written just now.
    pub fn note_status(&self, key: Key) {
        self.status_writes.lock().unwrap_or_else(PoisonError::into_inner).insert(key, Instant::now());
    }

    /// Takes all series of caches away: who does not lead knows nothing of them any more.
    pub fn hide_caches(&self) {
        for family in self.gauges.all() {
            family.clear();
        }
    }

    /// Forgets all about a cache that is going.
    pub fn forget(&self, namespace: &str, name: &str) {
        for family in self.gauges.all() {
            family.remove_object(namespace, name);
        }
        let key = (namespace.to_owned(), name.to_owned());
        self.status_writes.lock().unwrap_or_else(PoisonError::into_inner).remove(&key);
        self.dequeued(&key);
        self.secrets.refer(namespace, name, &BTreeSet::new());
        // Nobody's Secrets are kept in memory once nobody refers to them.
        let mut data = self.secret_data.lock().unwrap_or_else(PoisonError::into_inner);
        data.retain(|(place, secret), _| place != namespace || self.secrets.seen(place, secret) != Seen::Unknown);
        drop(data);
        self.backoff.reset(&format!("{namespace}/{name}"));
        let mut answered = self.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.retain(|(_, key), object| {
            key.0 != namespace || object.owner_references().iter().all(|owner| owner.name != name)
        });
    }

    fn watched(&self, kind: Kind) -> Option<&Watched> {
        let kind = if kind == Kind::ClientService { Kind::Service } else { kind };
        self.children.get(&kind)
    }
}

/// The kind's API.
pub fn resource(kind: Kind) -> ApiResource {
    let (group, version, kind, plural) = kind.resource();
    ApiResource::from_gvk_with_plural(&GroupVersionKind::gvk(group, version, kind), plural)
}

/// The cache that controls an object.
fn owner_of(object: &DynamicObject) -> Option<Key> {
    let owners = object.owner_references();
    let owner = owners.iter().find(|owner| owner.controller == Some(true) && owner.kind == "Memcached")?;
    Some((object.namespace()?, owner.name.clone()))
}

/// The cache that a pod serves: its owner is a ReplicaSet, its labels tell more.
fn instance_of(object: &DynamicObject) -> Option<Key> {
    Some((object.namespace()?, object.labels().get(label::INSTANCE)?.clone()))
}
