//! The kind `Memcached`: observe → validate → build → apply → status → publish.

mod apply;
mod context;
mod observe;
mod publish;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::Client;
use kube::api::{Api, ResourceExt};
use kube::runtime::controller::{self, Action, Config, Controller};
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{PredicateConfig, WatchStreamExt};
use memcached_api::Memcached;
use memcached_core::{revision, secret, validate};
use operator_kit::admin::Readiness;
use operator_kit::backoff::Class;
use operator_kit::lease::Leadership;
use operator_kit::metrics::Metrics;
use operator_kit::shutdown::Shutdown;
use operator_kit::watch::Key;
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio_stream::wrappers::UnboundedReceiverStream;

use crate::args::Operator;
use context::Context;

/// How long a single request may take: less than it takes for another to lead.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kind in metrics.
const KIND: &str = "Memcached";

/// Runs the controllers of this kind until told to stop.
pub async fn run(
    operator: &Operator,
    client: Client,
    metrics: Metrics,
    leadership: Leadership,
    readiness: Readiness,
    shutdown: Shutdown,
) {
    let (wake, mut woken) = mpsc::unbounded_channel();
    let context = Arc::new(Context::new(operator, client, metrics, leadership.clone(), &wake, &shutdown));
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
    let controllers = scopes
        .into_iter()
        .zip(receivers)
        .map(|(scope, woken)| control(scope, operator.concurrency, Arc::clone(&context), woken, shutdown.clone()));
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

async fn control(
    scope: Option<String>,
    concurrency: u16,
    context: Arc<Context>,
    woken: UnboundedReceiver<Key>,
    shutdown: Shutdown,
) {
    let client = context.applier.client().clone();
    let api: Api<Memcached> = match &scope {
        Some(namespace) => Api::namespaced(client, namespace),
        None => Api::all(client),
    };
    let (reader, writer) = reflector::store();
    let forgetful = Arc::clone(&context);
    let triggers = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer)
        .inspect(move |event| {
            // Deleted without a word before: no round will see it.
            if let Ok(watcher::Event::Delete(cache)) = event {
                forgetful.forget(&cache.namespace().unwrap_or_default(), &cache.name_any());
            }
        })
        .applied_objects()
        .predicate_filter(declaration, PredicateConfig::default());
    let keys = UnboundedReceiverStream::new(woken)
        .map(|(namespace, name)| ObjectRef::<Memcached>::new(&name).within(&namespace));
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

/// What makes a cache worth a look: our own status writes do not; annotations carry the restart trigger, and a
/// new object under an old name is another one.
#[allow(clippy::unnecessary_wraps, reason = "a predicate may have no opinion")]
fn declaration(cache: &Memcached) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    let metadata = &cache.metadata;
    (metadata.generation, &metadata.annotations, &metadata.uid, is_going(cache)).hash(&mut hasher);
    Some(hasher.finish())
}

fn is_going(cache: &Memcached) -> bool {
    cache.metadata.deletion_timestamp.is_some()
}

/// What kept a whole round from being finished.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A Secret could not be read.
    #[error("failed to read Secret {name:?}: {source}")]
    Secret { name: String, source: Box<kube::Error> },
    /// The status could not be written.
    #[error("failed to write the status: {0}")]
    Status(Box<kube::Error>),
    /// The API server did not answer in time.
    #[error("the API server did not answer within {} s", PATIENCE.as_secs())]
    NoAnswer,
    /// Another process leads.
    #[error(transparent)]
    NotLeader(#[from] operator_kit::lease::NotLeader),
}

impl Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Secret { .. } => "Secret",
            Self::Status(_) => "Status",
            Self::NoAnswer => "NoAnswer",
            Self::NotLeader(_) => "NotLeader",
        }
    }
}

async fn reconcile(cache: Arc<Memcached>, context: Arc<Context>) -> Result<Action, Error> {
    let (namespace, name) = (cache.namespace().unwrap_or_default(), cache.name_any());
    context.dequeued(&(namespace.clone(), name.clone()));
    if is_going(&cache) {
        // Garbage collection takes the children; touching them now would bring them back.
        context.forget(&namespace, &name);
        return Ok(Action::await_change());
    }
    let began = Instant::now();
    let outcome = Box::pin(drive(&cache, &context)).await;
    let result = if outcome.is_ok() { "success" } else { "error" };
    context.metrics.reconciled(KIND, result, began.elapsed());
    outcome
}

/// One round of the pipeline.
async fn drive(cache: &Memcached, context: &Context) -> Result<Action, Error> {
    let validated = validate(cache);
    let observed = observe::observe(cache, validated.as_ref().ok(), context).await?;
    let applied = match &validated {
        Ok(validated) => {
            let hash = secret::hash(validated, &observed.secrets);
            let in_force =
                revision::decide(validated, hash.as_deref(), &observed.revisions, observed.reflecting(cache));
            apply::apply(validated, &in_force, &observed, context).await
        }
        Err(violations) => apply::Applied::refused(violations),
    };
    let later = publish::publish(cache, validated.as_ref().ok(), &observed, &applied, context).await?;
    let key = format!("{}/{}", cache.namespace().unwrap_or_default(), cache.name_any());
    Ok(match applied.class {
        None => {
            context.backoff.reset(&key);
            later.map_or_else(Action::await_change, Action::requeue)
        }
        Some(class) => Action::requeue(context.backoff.next(&key, class)),
    })
}

#[allow(clippy::needless_pass_by_value, reason = "the signature is the controller's")]
fn on_error(cache: Arc<Memcached>, error: &Error, context: Arc<Context>) -> Action {
    let key = format!("{}/{}", cache.namespace().unwrap_or_default(), cache.name_any());
    context.metrics.error(KIND, error.reason());
    tracing::warn!(cache = key, %error, "trying again");
    Action::requeue(context.backoff.next(&key, Class::Retry))
}
