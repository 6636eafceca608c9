//! What makes a cache worth a look, and who looks.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{self, BoxStream};
use futures::{Stream, StreamExt};
use kube::Client;
use kube::api::{Api, ResourceExt};
use kube::runtime::controller::{self, Config, Controller};
use kube::runtime::reflector::{self, ObjectRef, Store};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{PredicateConfig, WatchStreamExt};
use memcached_api::Memcached;
use memcached_core::memcached::Settings;
use operator_kit::admin::Readiness;
use operator_kit::lease::Leadership;
use operator_kit::metrics::Metrics;
use operator_kit::shutdown::Shutdown;
use operator_kit::watch::Key;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_stream::wrappers::{IntervalStream, UnboundedReceiverStream, WatchStream};

use super::context::Context;
use super::{is_going, on_error, reconcile};
use crate::args::Operator;

/// Runs the controllers of this kind until told to stop.
pub async fn run(
    operator: &Operator,
    settings: &Settings,
    client: Client,
    metrics: Metrics,
    leadership: Leadership,
    readiness: Readiness,
    shutdown: Shutdown,
) {
    let (wake, mut woken) = mpsc::unbounded_channel();
    let context = Arc::new(Context::new(operator, settings, client, metrics, leadership.clone(), &wake, &shutdown));
    let caches = Arc::clone(&context);
    readiness.register("caches", move || caches.is_synced());
    let ready = async {
        leadership.acquired().await;
        // A round that does not see what is there yet would build it anew, and differently.
        while !context.is_synced() {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::pin!(ready);
    loop {
        tokio::select! {
            () = &mut ready => break,
            () = shutdown.requested() => return,
            // Who waits for years must not remember what happened meanwhile: taking over looks at everything.
            _ = woken.recv() => {}
        }
    }
    tracing::info!("leading");
    let scopes: Vec<Option<String>> = if operator.watch_namespaces.is_empty() {
        vec![None]
    } else {
        operator.watch_namespaces.iter().cloned().map(Some).collect()
    };
    let (senders, receivers): (Vec<_>, Vec<_>) = scopes.iter().map(|_| mpsc::unbounded_channel()).unzip();
    let routes = scopes.clone().into_iter().zip(senders).collect();
    tokio::spawn(distribute(woken, routes, Arc::clone(&context)));
    let controllers = scopes.into_iter().zip(receivers).map(|(scope, woken)| {
        let looks = looks_at_everything(operator.resync_interval.0, &leadership, &context);
        control(scope, operator.concurrency, Arc::clone(&context), woken, looks, shutdown.clone())
    });
    futures::future::join_all(controllers).await;
}

/// Hands each key to the controller of its namespace.
async fn distribute(
    mut woken: UnboundedReceiver<Key>,
    scopes: Vec<(Option<String>, UnboundedSender<Key>)>,
    context: Arc<Context>,
) {
    while let Some(key) = woken.recv().await {
        context.enqueued(key.clone());
        let concerned = scopes.iter().filter(|(scope, _)| scope.as_ref().is_none_or(|scope| *scope == key.0));
        for (_, sender) in concerned {
            sender.send(key.clone()).ok();
        }
    }
}

/// When to look at every cache without being told: now and then, and when leadership comes back.
fn looks_at_everything(
    interval: Duration,
    leadership: &Leadership,
    context: &Arc<Context>,
) -> impl Stream<Item = &'static str> + use<> {
    let mut timer = tokio::time::interval(interval);
    timer.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    // The first tick is at once, and so is the watch's own first list.
    let ticks = IntervalStream::new(timer).skip(1).map(|_| "the interval has passed");
    let context = Arc::clone(context);
    let terms = WatchStream::from_changes(leadership.watch()).filter_map(move |leads| {
        if leads {
            // What failed for want of leadership is not to wait for that any longer.
            context.backoff.reset_all();
        } else {
            context.hide_caches();
        }
        std::future::ready(leads.then_some("leadership is back"))
    });
    stream::select(ticks, terms)
}

async fn control(
    scope: Option<String>,
    concurrency: u16,
    context: Arc<Context>,
    woken: UnboundedReceiver<Key>,
    looks: impl Stream<Item = &'static str> + Send + 'static,
    shutdown: Shutdown,
) {
    let client = context.applier.client().clone();
    let api: Api<Memcached> = match &scope {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let (reader, writer) = reflector::store();
    let mut roll = Roll::default();
    let forgetful = Arc::clone(&context);
    let triggers = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .inspect(move |event| {
            if let Ok(event) = event {
                // Deleted without a word before: no round will see it.
                for (namespace, name) in roll.departed(event) {
                    forgetful.forget(&namespace, &name);
                }
            }
        })
        .applied_objects()
        .predicate_filter(declaration, PredicateConfig::default());
    let keys = UnboundedReceiverStream::new(woken)
        .map(|(namespace, name)| ObjectRef::<Memcached>::new(&name).within(&namespace));
    let keys = stream::select(keys, everything(looks, reader.clone()));
    let config = Config::default().concurrency(concurrency).debounce(Duration::from_millis(20));
    let queue = Arc::clone(&context);
    Controller::for_stream(triggers, reader)
        .with_config(config)
        .reconcile_on(keys)
        .graceful_shutdown_on(async move { shutdown.requested().await })
        .run(reconcile, on_error, context)
        .for_each(|result| {
            // Children tell of caches that are no more: nothing to do, nothing to report.
            if let Err(controller::Error::ObjectNotFound(cache)) = &result {
                queue.forget(cache.namespace.as_deref().unwrap_or_default(), &cache.name);
            } else if let Err(error) = &result {
                tracing::debug!(%error, "not reconciled");
            }
            std::future::ready(())
        })
        .await;
}

/// Every known cache, each time there is a reason to look at all of them.
fn everything(
    looks: impl Stream<Item = &'static str> + Send + 'static,
    known: Store<Memcached>,
) -> BoxStream<'static, ObjectRef<Memcached>> {
    looks
        .flat_map(move |why| {
            let all = known.state();
            tracing::info!(caches = all.len(), why, "looking at everything");
            stream::iter(all).map(|cache| ObjectRef::from_obj(cache.as_ref()))
        })
        .boxed()
}

/// Who is there, to notice who has gone: a list does not tell of those that went while nobody watched.
#[derive(Default)]
struct Roll {
    present: BTreeSet<Key>,
    /// A list that is still coming in.
    listed: BTreeSet<Key>,
}

impl Roll {
    fn departed(&mut self, event: &watcher::Event<Memcached>) -> Vec<Key> {
        let key = |cache: &Memcached| (cache.namespace().unwrap_or_default(), cache.name_any());
        let Self { present, listed } = self;
        match event {
            watcher::Event::Init => listed.clear(),
            watcher::Event::InitApply(cache) => {
                listed.insert(key(cache));
            }
            watcher::Event::InitDone => {
                let before = std::mem::replace(present, std::mem::take(listed));
                return before.difference(present).cloned().collect();
            }
            watcher::Event::Apply(cache) => {
                present.insert(key(cache));
            }
            watcher::Event::Delete(cache) => {
                present.remove(&key(cache));
                return vec![key(cache)];
            }
        }
        Vec::new()
    }
}

/// What makes a cache worth a look: our own status writes do not; annotations carry the restart trigger, and a
/// new object under an old name is another one.
#[allow(clippy::unnecessary_wraps, reason = "a predicate may have no opinion")]
fn declaration(cache: &Memcached) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let metadata = &cache.metadata;
    (metadata.generation, &metadata.annotations, &metadata.uid, is_going(cache)).hash(&mut hasher);
    Some(hasher.finish())
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;

    use super::*;

    fn cache(name: &str) -> Memcached {
        let mut cache = Memcached::new(name, memcached_api::memcached::spec::MemcachedSpec::default());
        cache.metadata.namespace = Some("shop".into());
        cache
    }

    fn names(keys: Vec<Key>) -> Vec<String> {
        keys.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn who_went_while_nobody_watched_is_missed_at_the_next_list() {
        let mut roll = Roll::default();
        for event in [Event::Init, Event::InitApply(cache("a")), Event::InitApply(cache("b")), Event::InitDone] {
            assert!(roll.departed(&event).is_empty());
        }
        assert!(roll.departed(&Event::Apply(cache("c"))).is_empty());
        assert_eq!(names(roll.departed(&Event::Delete(cache("a")))), ["a"]);
        for event in [Event::Init, Event::InitApply(cache("b"))] {
            assert!(roll.departed(&event).is_empty());
        }
        assert_eq!(names(roll.departed(&Event::InitDone)), ["c"]);
    }
}
