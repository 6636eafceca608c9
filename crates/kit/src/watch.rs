//! Watches that never end and never fail in silence: what goes wrong is logged, counted and shown in readiness.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use futures::{Stream, StreamExt};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use operator_model::resource::ResourceType;
use serde::de::DeserializeOwned;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::backoff::jittered;
use crate::metrics::Metrics;
use crate::telemetry::Chain;

/// How long until a kind that the cluster lacks is asked for again, at first and in the end: every namespace asks.
const MISSING_KIND_INTERVAL: Duration = Duration::from_secs(10);
const LONGEST_MISSING_KIND_INTERVAL: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How a kind's API is addressed.
pub fn api_resource(resource: ResourceType) -> ApiResource {
    let kind = GroupVersionKind::gvk(resource.group, resource.version, resource.kind);
    ApiResource::from_gvk_with_plural(&kind, resource.plural)
}

/// Namespace and name.
pub type Key = (Arc<str>, Arc<str>);

/// Namespace and name of an object.
pub fn key(object: &impl Resource) -> Key {
    let metadata = object.meta();
    (metadata.namespace.as_deref().unwrap_or_default().into(), metadata.name.as_deref().unwrap_or_default().into())
}

/// How many objects a list asks for at once. Parsed, they take ten times what is kept of them: a start over thousands
/// must not need a multiple of the memory that is enough later.
const PAGE_SIZE: u32 = 100;

/// How things are watched.
pub fn watch_config() -> watcher::Config {
    watcher::Config::default().page_size(PAGE_SIZE)
}

/// A watch that fails is told of every [`LONGEST_PAUSE`]; one that is not any more has recovered without an event.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(90);

/// How many lists come in at a time, and how long one keeps others from coming in. The objects of a page, parsed, take
/// ten times what is kept of them.
const LISTS: usize = 2;
const LIST_TURN: Duration = Duration::from_secs(30);

/// All watches, and why some fail; clones are the same list.
#[derive(Debug, Clone)]
pub struct WatchHealth {
    watches: Arc<Mutex<BTreeMap<WatchName, Option<Failing>>>>,
    metrics: Metrics,
    lists: Arc<Semaphore>,
}

#[derive(Debug, Clone)]
struct Failing {
    why: String,
    told: Instant,
    /// How often in a row.
    count: u32,
    /// Trying again will not help, unlike with a server that is busy for a moment.
    is_final: bool,
}

/// So many failures in a row are no moment any more.
const REPEATING: u32 = 3;

impl Failing {
    fn is_current(&self, now: Instant) -> bool {
        now.duration_since(self.told) < FORGOTTEN_AFTER
    }

    fn is_serious(&self) -> bool {
        self.is_final || self.count >= REPEATING
    }
}

impl WatchHealth {
    /// Nothing fails yet; failures are counted in `metrics`.
    pub fn new(metrics: Metrics) -> Self {
        Self { watches: Arc::default(), metrics, lists: Arc::new(Semaphore::new(LISTS)) }
    }

    /// Every kind that cannot be watched anywhere, and why. A namespace that is refused while others are watched is
    /// logged and counted, but it is no reason to take the whole operator, and its webhooks, out of service.
    pub fn check(&self) -> Result<(), String> {
        self.check_at(Instant::now())
    }

    fn check_at(&self, now: Instant) -> Result<(), String> {
        let watches = self.watches();
        let is_failing = |failing: &&Failing| failing.is_current(now) && failing.is_serious();
        let mut kinds: BTreeMap<&str, Vec<Option<String>>> = BTreeMap::new();
        for (watch, failing) in watches.iter() {
            let why = failing.as_ref().filter(is_failing).map(|failing| format!("{watch}: {}", failing.why));
            kinds.entry(watch.kind).or_default().push(why);
        }
        let failing = kinds.into_values().filter_map(|whys| whys.into_iter().collect::<Option<Vec<String>>>());
        let failing: Vec<String> = failing.flatten().collect();
        if failing.is_empty() { Ok(()) } else { Err(failing.join("; ")) }
    }

    fn started(&self, watch: &WatchName) {
        self.watches().entry(watch.clone()).or_default();
    }

    fn watches(&self) -> MutexGuard<'_, BTreeMap<WatchName, Option<Failing>>> {
        self.watches.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The watch fails; one that was interrupted and goes on by itself is no failure yet.
    fn failed(&self, watch: &WatchName, error: &watcher::Error) {
        self.metrics.watch_failed(watch.kind);
        let text = Chain(error).to_string();
        if !is_refused(error) {
            tracing::debug!(%watch, error = text, "watch interrupted");
            return;
        }
        let now = Instant::now();
        let mut watches = self.watches();
        let before = watches.get(watch).cloned().flatten().filter(|before| before.is_current(now));
        let count = before.as_ref().map_or(0, |before| before.count) + 1;
        let is_final = failure(error) != WatchFailure::Other;
        watches.insert(watch.clone(), Some(Failing { why: text.clone(), told: now, count, is_final }));
        drop(watches);
        if before.is_none_or(|before| before.why != text) {
            tracing::warn!(%watch, error = text, "watch failed; objects of this kind are not seen until it works");
        }
    }

    fn recovered(&self, watch: &WatchName) {
        if self.watches().insert(watch.clone(), None).flatten().is_some() {
            tracing::info!(%watch, "watch works again");
        }
    }
}

/// What a watch is on, for people.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WatchName {
    /// The kind.
    pub kind: &'static str,
    /// The namespace; none means all.
    pub namespace: Option<String>,
}

impl std::fmt::Display for WatchName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "watch on {} in {namespace}", self.kind),
            None => write!(f, "watch on {}", self.kind),
        }
    }
}

/// Why a watch cannot be started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WatchFailure {
    /// The cluster lacks the kind.
    MissingKind,
    /// The operator may not list it.
    Forbidden,
    /// Anything else, which may pass.
    Other,
}

/// Follows a watch for ever. `handle` gets every event. `failed` gets every failure, and says whether it is expected:
/// a kind that the cluster may lack is asked for now and then.
pub async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    name: WatchName,
    health: WatchHealth,
    failed: impl Fn(WatchFailure) -> bool,
    mut handle: impl FnMut(Event<K>),
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    health.started(&name);
    let mut events = std::pin::pin!(watcher(api, config));
    let (mut pause, mut missing_pause) = (FIRST_PAUSE, MISSING_KIND_INTERVAL);
    let mut turn = Turn::default();
    while let Some(event) = turn.next(&mut events).await {
        match event {
            Ok(event) => {
                match &event {
                    // The beginning of a list says nothing about its end.
                    Event::Init => turn.begin(&health.lists).await,
                    Event::InitApply(_) => {}
                    Event::InitDone | Event::Apply(_) | Event::Delete(_) => {
                        turn.end();
                        (pause, missing_pause) = (FIRST_PAUSE, MISSING_KIND_INTERVAL);
                        health.recovered(&name);
                    }
                }
                handle(event);
            }
            Err(error) => {
                turn.end();
                if failed(failure(&error)) {
                    health.recovered(&name);
                    tokio::time::sleep(jittered(missing_pause, &name)).await;
                    missing_pause = (missing_pause * 2).min(LONGEST_MISSING_KIND_INTERVAL);
                    continue;
                }
                health.failed(&name, &error);
                tokio::time::sleep(jittered(pause, &name)).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// The turn of a list: few come in at a time, and one that does not get on keeps nobody waiting for long.
#[derive(Default)]
struct Turn {
    held: Option<(OwnedSemaphorePermit, tokio::time::Instant)>,
}

impl Turn {
    async fn begin(&mut self, lists: &Arc<Semaphore>) {
        let permit = Arc::clone(lists).acquire_owned().await;
        self.held = permit.ok().map(|permit| (permit, tokio::time::Instant::now() + LIST_TURN));
    }

    fn end(&mut self) {
        self.held = None;
    }

    /// The next of `events`; the turn ends when it is over, whatever they do.
    async fn next<T>(&mut self, events: &mut (impl Stream<Item = T> + Unpin)) -> Option<T> {
        if let Some((_, over)) = &self.held
            && let Ok(event) = tokio::time::timeout_at(*over, events.next()).await
        {
            return event;
        }
        self.end();
        events.next().await
    }
}

/// Whether a watch could not be started: the kind is missing, or its list is refused.
fn is_refused(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(_) | watcher::Error::WatchStartFailed(_))
}

fn failure(error: &watcher::Error) -> WatchFailure {
    let code = match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status))
        | watcher::Error::WatchError(status) => status.code,
        _ => 0,
    };
    match code {
        404 => WatchFailure::MissingKind,
        403 => WatchFailure::Forbidden,
        _ => WatchFailure::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused() -> watcher::Error {
        let status = kube::core::Status::failure("no", "Forbidden").with_code(403);
        watcher::Error::InitialListFailed(kube::Error::Api(status.boxed()))
    }

    fn busy() -> watcher::Error {
        let status = kube::core::Status::failure("later", "TooManyRequests").with_code(429);
        watcher::Error::WatchStartFailed(kube::Error::Api(status.boxed()))
    }

    // Whoever is not ready serves no webhooks: an API server that is busy for a moment must not lock everybody out.
    #[test]
    fn one_answer_of_a_busy_server_does_not_fail_readiness_and_several_in_a_row_do() {
        let health = WatchHealth::new(Metrics::unregistered());
        health.failed(&name("Pod", "a"), &busy());
        assert_eq!(health.check(), Ok(()));
        health.failed(&name("Pod", "a"), &busy());
        health.failed(&name("Pod", "a"), &busy());
        assert!(health.check().is_err());
        health.recovered(&name("Pod", "a"));
        health.failed(&name("Pod", "a"), &busy());
        assert_eq!(health.check(), Ok(()));
    }

    fn name(kind: &'static str, namespace: &str) -> WatchName {
        WatchName { kind, namespace: Some(namespace.into()) }
    }

    #[test]
    fn a_kind_that_is_watched_in_another_namespace_does_not_fail_readiness() {
        let health = WatchHealth::new(Metrics::unregistered());
        for watch in [name("Pod", "a"), name("Pod", "b"), name("Service", "a")] {
            health.started(&watch);
        }
        health.failed(&name("Pod", "a"), &refused());
        assert_eq!(health.check(), Ok(()));
        health.failed(&name("Pod", "b"), &refused());
        assert!(health.check().unwrap_err().contains("watch on Pod in b"));
        health.recovered(&name("Pod", "b"));
        assert_eq!(health.check(), Ok(()));
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_that_does_not_get_on_gives_others_their_turn() {
        let lists = Arc::new(Semaphore::new(1));
        let (mut one, mut other) = (Turn::default(), Turn::default());
        one.begin(&lists).await;
        let mut stuck = futures::stream::pending::<u8>();
        let waiting = tokio::spawn(async move { one.next(&mut stuck).await });
        other.begin(&lists).await;
        assert!(other.held.is_some());
        waiting.abort();
    }

    // A watch that is started again where it was interrupted tells nothing until something changes.
    #[test]
    fn a_failure_that_is_not_told_again_is_over() {
        let health = WatchHealth::new(Metrics::unregistered());
        health.failed(&name("Pod", "a"), &refused());
        assert!(health.check().is_err());
        assert_eq!(health.check_at(Instant::now() + FORGOTTEN_AFTER), Ok(()));
    }
}
