//! Watches that never end and never fail in silence: what goes wrong is logged, counted and shown in readiness.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource};
use operator_model::resource::ResourceType;
use serde::de::DeserializeOwned;

use crate::metrics::Metrics;
use crate::telemetry::Chain;

/// How long until a kind that the cluster lacks is asked for again.
const MISSING_KIND_INTERVAL: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// How a kind's API is addressed.
pub fn api_resource(resource: ResourceType) -> ApiResource {
    let kind = GroupVersionKind::gvk(resource.group, resource.version, resource.kind);
    ApiResource::from_gvk_with_plural(&kind, resource.plural)
}

/// Namespace and name.
pub type Key = (String, String);

/// The watches that fail now, and why; clones are the same list.
#[derive(Debug, Clone)]
pub struct WatchHealth {
    failing: Arc<Mutex<BTreeMap<String, String>>>,
    metrics: Metrics,
}

impl WatchHealth {
    /// Nothing fails yet; failures are counted in `metrics`.
    pub fn new(metrics: Metrics) -> Self {
        Self { failing: Arc::default(), metrics }
    }

    /// Every watch that cannot be started, and why.
    pub fn check(&self) -> Result<(), String> {
        let failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if failing.is_empty() {
            return Ok(());
        }
        Err(failing.iter().map(|(watch, why)| format!("{watch}: {why}")).collect::<Vec<_>>().join("; "))
    }

    /// The watch fails; one that was interrupted and goes on by itself is no failure yet.
    fn failed(&self, watch: &WatchName, error: &watcher::Error) {
        self.metrics.watch_failed(watch.kind);
        let text = Chain(error).to_string();
        if !is_refused(error) {
            tracing::debug!(%watch, error = text, "watch interrupted");
            return;
        }
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = failing.insert(watch.to_string(), text.clone());
        if before.as_deref() != Some(&text) {
            tracing::warn!(%watch, error = text, "watch failed; objects of this kind are not seen until it works");
        }
    }

    fn recovered(&self, watch: &WatchName) {
        let mut failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner);
        if failing.remove(&watch.to_string()).is_some() {
            tracing::info!(%watch, "watch works again");
        }
    }
}

/// What a watch is on, for people.
#[derive(Debug, Clone)]
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

/// Follows a watch for ever. `handle` gets every event; `missing` is told whether the cluster lacks the kind, if that
/// is allowed.
pub async fn follow<K>(
    api: Api<K>,
    config: watcher::Config,
    name: WatchName,
    health: WatchHealth,
    missing: Option<impl Fn(bool)>,
    mut handle: impl FnMut(Event<K>),
) where
    K: Resource + Clone + Debug + DeserializeOwned + Send + 'static,
{
    let mut events = std::pin::pin!(watcher(api, config));
    let mut pause = FIRST_PAUSE;
    while let Some(event) = events.next().await {
        match event {
            Ok(event) => {
                // The beginning of a list says nothing about its end.
                if !matches!(event, Event::Init) {
                    pause = FIRST_PAUSE;
                    health.recovered(&name);
                    if let Some(missing) = &missing {
                        missing(false);
                    }
                }
                handle(event);
            }
            Err(error) => {
                let is_missing = missing.is_some() && is_missing_kind(&error);
                if let Some(missing) = &missing {
                    missing(is_missing);
                }
                if is_missing {
                    tokio::time::sleep(MISSING_KIND_INTERVAL).await;
                    continue;
                }
                health.failed(&name, &error);
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
    }
}

/// Whether a watch could not be started: the kind is missing, or its list is refused.
fn is_refused(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(_) | watcher::Error::WatchStartFailed(_))
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
