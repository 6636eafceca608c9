//! The loop of an operator: watches, a queue, workers that write only while leading. Kinds bring what differs.
//!
//! Several kinds share one process, one set of stores, one queue and one lease.

mod context;
mod kind;
mod primary;
mod queue;
mod reconciler;
mod routing;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::api::{Api, DynamicObject};
use kube::core::ApiResource;
use operator_model::problem::Class;
use operator_model::resource::ResourceType;
use tokio::task::JoinSet;
use tokio::time::Instant;

pub use context::{Context, Shared, is_terminating};
pub use kind::{CustomResource, Error, Kind, Outcome, RelatedRoute, Unreadable};
pub use queue::{Queue, Request};

use crate::admin::Readiness;
use crate::backoff::Backoff;
use crate::children::{Applier, IsKept, Store, Stores, Wake, Watch};
use crate::client::Clients;
use crate::event::Events;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::reference::Secrets;
use crate::shutdown::Shutdown;
use crate::status::Pacing;
use crate::task::{Tasks, panic_message};
use crate::watch::{WatchHealth, WatchName, follow, watch_config};
use crate::watched::WatchedNamespaces;
use primary::{Follower, Primary};
use reconciler::{KindReconciler, Reconciler};
use routing::Routing;

/// How long an object waits in a namespace where a watch is refused.
const REFUSED_INTERVAL: Duration = Duration::from_secs(5);

/// How an operator works.
#[derive(Debug, Clone)]
pub struct Config {
    /// The field manager, and the controller that Events name.
    pub manager: &'static str,
    /// Field managers whose objects are taken over.
    pub predecessors: &'static [&'static str],
    /// The label in which children carry a digest of what was sent when they were created or last applied.
    pub digest: &'static str,
    /// The label selector that all children carry.
    pub labels: String,
    /// The namespaces to work in; none means all.
    pub namespaces: Vec<String>,
    /// How many objects are reconciled at once, of all kinds together.
    pub concurrency: usize,
    /// How often everything is reconciled without being asked for.
    pub resync: Duration,
}

/// The controllers of an operator before they run.
pub struct Controllers {
    config: Config,
    clients: Clients,
    metrics: Metrics,
    leadership: Leadership,
    readiness: Readiness,
    tasks: Tasks,
    routing: Routing,
    starts: Vec<Start>,
}

type Start = Box<dyn FnOnce(&Starting<'_>) -> (&'static str, Arc<dyn Reconciler>) + Send>;

/// What a kind is started with.
struct Starting<'a> {
    config: &'a Config,
    clients: &'a Clients,
    shared: &'a Arc<Shared>,
    health: &'a WatchHealth,
    tasks: &'a Tasks,
}

impl Controllers {
    /// Controllers of no kind yet.
    pub fn new(
        config: Config,
        clients: Clients,
        metrics: Metrics,
        leadership: Leadership,
        readiness: Readiness,
        tasks: Tasks,
    ) -> Self {
        Self { config, clients, metrics, leadership, readiness, tasks, routing: Routing::default(), starts: Vec::new() }
    }

    /// Adds a kind.
    #[must_use]
    pub fn with<K: Kind>(mut self, kind: K) -> Self {
        self.routing.add::<K>(&kind);
        self.starts.push(Box::new(move |starting| (K::NAME, start(kind, starting))));
        self
    }

    /// Runs until the shutdown; reconciles that were begun are finished.
    pub async fn run(self, shutdown: Shutdown) {
        let Self { config, clients, metrics, leadership, readiness, tasks, routing, starts } = self;
        let client = clients.requests();
        let health = WatchHealth::new(metrics.clone());
        let queue = Arc::new(Queue::default());
        let wake = wake(Arc::clone(&queue), leadership.clone());
        let Config { manager, predecessors, digest, .. } = config;
        let applier = Applier::new(client.clone(), manager, predecessors, digest, leadership.clone());
        let is_kept = is_kept(applier.clone());
        let pod_annotations: Arc<[&'static str]> = routing.pod_annotations().into();
        let stores: Stores = routing
            .resources()
            .map(|(resource, route)| {
                let (labels, namespaces, is_kept) = (&config.labels, &config.namespaces, Arc::clone(&is_kept));
                let pod_annotations = Arc::clone(&pod_annotations);
                let watch = Watch { resource, labels, namespaces, route, is_kept, pod_annotations };
                (resource, watch.start(&clients, &wake, &health, &tasks))
            })
            .collect();
        let shared = Arc::new(Shared {
            applier,
            once: clients.once().clone(),
            secrets: Secrets::new(
                clients.clone(),
                &config.namespaces,
                routing.secret_keys(),
                wake,
                tasks.clone(),
                metrics.clone(),
            ),
            events: Events::new(client.clone(), config.manager, leadership.clone()),
            metrics,
            backoff: Backoff::default(),
            queue,
            pacing: Pacing::default(),
            stores,
        });
        let starting = Starting { config: &config, clients: &clients, shared: &shared, health: &health, tasks: &tasks };
        let kinds: BTreeMap<&'static str, Arc<dyn Reconciler>> =
            starts.into_iter().map(|start| start(&starting)).collect();
        let workers = Arc::new(Workers { kinds, shared, leadership });
        let synced = Arc::clone(&workers);
        readiness.register("stores", move || synced.is_settled());
        readiness.register_check("watches", move || health.check());
        let resync = Arc::clone(&workers);
        tasks.spawn("resync", async move { resync.resync(config.resync).await });
        workers.work(config.concurrency, &shutdown).await;
    }
}

/// Which of an object's managed fields are kept.
fn is_kept(applier: Applier) -> IsKept {
    Arc::new(move |entry| applier.is_kept(entry))
}

/// Asks for the object that a change of another one concerns.
fn wake(queue: Arc<Queue>, leadership: Leadership) -> Wake {
    Arc::new(move |request| {
        // Whoever begins to lead reconciles everything. Until then nobody takes from the queue, and what concerns objects
        // that are gone would stay in it.
        if leadership.check_in(&request.namespace).is_ok() {
            queue.add_at(request, Instant::now() + COALESCED);
        }
    })
}

/// Starts the watches of a kind.
fn start<K: Kind>(kind: K, starting: &Starting<'_>) -> Arc<dyn Reconciler> {
    let Starting { config, clients, shared, health, tasks } = starting;
    let primary = Arc::new(Primary::new(&config.namespaces));
    let context = Context { shared: Arc::clone(shared), primary: Arc::clone(&primary), kind: K::NAME };
    let reconciler = Arc::new(KindReconciler { kind, context });
    let resource = ApiResource::erase::<K::Object>(&());
    for namespace in primary.watches().namespaces() {
        let api: Api<DynamicObject> = match &namespace {
            Some(name) => Api::namespaced_with(clients.watch(), name, &resource),
            None => Api::all_with(clients.watch(), &resource),
        };
        let mut follower = Follower::new(Arc::clone(&primary), namespace.clone());
        let reconciler = Arc::clone(&reconciler);
        let handle = move |event| {
            let changes = follower.handle(event);
            let request = |(namespace, name)| Request { kind: K::NAME, namespace, name };
            changes.departed.into_iter().map(request).for_each(|request| reconciler.departed(&request));
            changes.changed.into_iter().map(request).for_each(|request| reconciler.context.shared.queue.add(request));
        };
        let (watched, scope) = (Arc::clone(&primary), namespace.clone());
        let failed = move |failure| watched.watches().failed(scope.as_ref(), failure, false);
        let name = WatchName { kind: K::NAME, namespace };
        let health = (*health).clone();
        tasks.spawn("watch on objects", async move {
            follow(api, watch_config(), name, health, failed, handle).await;
        });
    }
    reconciler
}

struct Workers {
    kinds: BTreeMap<&'static str, Arc<dyn Reconciler>>,
    shared: Arc<Shared>,
    leadership: Leadership,
}

impl Workers {
    fn watches(&self) -> impl Iterator<Item = &WatchedNamespaces> {
        let stores = self.shared.stores.values().map(Store::watches);
        stores.chain(self.kinds.values().map(|kind| kind.watches()))
    }

    /// Whether everything that can be seen has been seen.
    fn is_settled(&self) -> bool {
        self.watches().all(WatchedNamespaces::is_settled)
    }

    /// Whether all that a reconcile needs has been seen; a kind whose definition is missing holds up itself alone.
    fn is_synced_for(&self, request: &Request) -> bool {
        let kind = self.kinds.get(request.kind).map(|kind| kind.watches());
        let mut watches = self.shared.stores.values().map(Store::watches).chain(kind);
        watches.all(|watches| watches.is_synced_in(&request.namespace))
    }

    /// Reconciles what is asked for, so many objects at once, until the shutdown.
    async fn work(self: Arc<Self>, concurrency: usize, shutdown: &Shutdown) {
        let mut running = JoinSet::new();
        loop {
            tokio::select! {
                () = shutdown.requested() => break,
                request = self.next(), if running.len() < concurrency => {
                    running.spawn(Arc::clone(&self).reconcile(request));
                }
                Some(_) = running.join_next() => {}
            }
        }
        while running.join_next().await.is_some() {}
    }

    /// The next object, while leading and once all of its namespace has been seen: a reconcile that does not see what
    /// is there yet would build it anew, and differently.
    async fn next(&self) -> Request {
        loop {
            self.leadership.acquired().await;
            while !self.is_settled() {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            let request = self.shared.queue.next().await;
            self.show_depths();
            if !self.is_synced_for(&request) {
                self.shared.queue.done(&request);
                self.shared.queue.add_at(request, Instant::now() + REFUSED_INTERVAL);
                continue;
            }
            if self.leadership.is_leader() {
                return request;
            }
            self.shared.queue.add(request.clone());
            self.shared.queue.done(&request);
        }
    }

    async fn reconcile(self: Arc<Self>, request: Request) {
        let Some(kind) = self.kinds.get(request.kind) else { return };
        // A task of its own: one object that makes us panic does not keep the others from being managed.
        let requeue = match tokio::spawn(Arc::clone(kind).reconcile(request.clone())).await {
            Ok(requeue) => requeue,
            Err(error) => {
                let panic = error.try_into_panic().map(|panic| panic_message(panic.as_ref())).unwrap_or_default();
                tracing::error!(object = %request, panic, "a reconcile panicked: this is a bug, please report it");
                self.shared.metrics.error(request.kind, "Panic");
                Some(self.shared.backoff.next(&request.to_string(), Class::Bug))
            }
        };
        self.shared.queue.done(&request);
        if let Some(requeue) = requeue {
            self.shared.queue.add_at(request, Instant::now() + requeue);
        }
        self.show_depths();
    }

    fn show_depths(&self) {
        let depths = self.shared.queue.depths();
        for kind in self.kinds.keys() {
            self.shared.metrics.queue_depth(kind, depths.get(kind).copied().unwrap_or(0));
        }
    }

    /// Reconciles everything now and then, and when leadership comes back; if that is in one namespace, what is there.
    async fn resync(&self, interval: Duration) {
        let mut timer = tokio::time::interval(interval);
        timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        timer.tick().await;
        let mut leads = self.leadership.watch();
        let mut returns = self.leadership.returns();
        loop {
            let why = tokio::select! {
                _ = timer.tick() => "the resync interval has passed",
                namespaces = returns.next() => {
                    let objects = self.requeue(|request| namespaces.contains(&*request.namespace));
                    tracing::info!(objects, ?namespaces, "reconciling namespaces whose Lease was acquired");
                    continue;
                }
                Ok(()) = leads.changed() => {
                    if !*leads.borrow_and_update() {
                        continue;
                    }
                    // What failed for want of leadership is not to wait for that any longer.
                    self.shared.backoff.reset_all();
                    "leadership was acquired"
                }
            };
            tracing::info!(objects = self.requeue(|_| true), why, "reconciling everything");
        }
    }

    /// Asks for a reconcile of those objects; how many they are.
    fn requeue(&self, is_meant: impl Fn(&Request) -> bool) -> usize {
        let requests = self.kinds.values().flat_map(|kind| kind.requests()).filter(is_meant);
        requests.map(|request| self.shared.queue.add(request)).count()
    }
}

/// The kind of an owner reference.
fn is_owner<K: Kind>(api_version: &str, kind: &str) -> bool {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    kind == K::Object::kind(&()) && group == K::Object::group(&())
}

/// Pods and children change several times in a row, and each time concerns the same object: one reconcile serves them all.
const COALESCED: Duration = Duration::from_millis(200);

/// All resources of all kinds.
type Resources = BTreeMap<ResourceType, Vec<(&'static str, RelatedRoute)>>;
