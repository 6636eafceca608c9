//! Publishes what was observed and done: status on change, Events on transitions, metrics always.

use std::time::Duration;

use memcached_api::memcached::{MemcachedStatus, reason};
use memcached_api::{Memcached, condition};
use memcached_core::memcached::Validated;
use memcached_core::memcached::status::{Facts, Workload};
use memcached_core::memcached::warning::warnings;
use operator_kit::controller::{Context, Error};
use operator_kit::metrics::{GaugeFamily, Metrics};
use operator_kit::status::Published;

/// Series of each cache; they are removed with it.
pub struct Gauges {
    info: GaugeFamily,
    desired: GaugeFamily,
    ready: GaugeFamily,
    updated: GaugeFamily,
}

impl Gauges {
    pub fn new(metrics: &Metrics) -> Self {
        let gauge = |name, help| metrics.gauge_family(name, help);
        Self {
            info: gauge("instance_info", "A cache, with its image and version"),
            desired: gauge("instance_replicas_desired", "How many servers a cache is to have"),
            ready: gauge("instance_replicas_ready", "How many servers of a cache are ready"),
            updated: gauge("instance_replicas_updated", "How many servers of a cache are as declared"),
        }
    }

    pub fn all(&self) -> Vec<GaugeFamily> {
        [&self.info, &self.desired, &self.ready, &self.updated].map(GaugeFamily::clone).into()
    }

    pub fn show(&self, facts: &Facts, status: &MemcachedStatus, valid: Option<&Validated>) {
        let (namespace, name) = (&facts.namespace, &facts.name);
        if let Some(valid) = valid {
            let version = valid.version.clone().unwrap_or_default();
            self.info.set_only(namespace, name, &[("image", valid.image.as_str()), ("version", &version)], 1.0);
        }
        let workload = Workload::of(facts);
        self.desired.set(namespace, name, &[], f64::from(workload.desired));
        self.updated.set(namespace, name, &[], f64::from(workload.updated));
        self.ready.set(namespace, name, &[], f64::from(status.ready_replicas));
    }
}

/// Publishes the outcome of a reconcile; when to come back if something was left for later.
pub async fn publish(
    cache: &Memcached,
    valid: Option<&Validated>,
    new: &MemcachedStatus,
    context: &Context<Memcached>,
) -> Result<Option<Duration>, Error> {
    let old = cache.status.as_ref();
    let is_news = old.is_none_or(|old| news(old) != news(new));
    match context.publish_status(cache, old, new, is_news).await? {
        Published::Unchanged => return Ok(None),
        Published::Later(pause) => return Ok(Some(pause)),
        Published::Written(_) => {}
    }
    announce(cache, new, context).await;
    if old.and_then(|old| old.observed_generation) != new.observed_generation {
        for warning in valid.into_iter().flat_map(warnings) {
            context.warn(cache, warning.reason, &warning.to_string()).await;
        }
    }
    Ok(None)
}

/// What people wait for; the rest are numbers on the way there.
fn news(status: &MemcachedStatus) -> impl PartialEq + use<> {
    let conditions: Vec<_> =
        status.conditions.iter().map(|c| (c.type_.clone(), c.status.clone(), c.reason.clone())).collect();
    (conditions, status.observed_generation, status.server_list.clone(), status.pending_defaults.clone())
}

/// An Event when trouble begins, changes its kind, or ends.
async fn announce(cache: &Memcached, new: &MemcachedStatus, context: &Context<Memcached>) {
    let find = |status: &MemcachedStatus| {
        status.conditions.iter().find(|c| c.type_ == condition::DEGRADED).map(|c| (c.reason.clone(), c.message.clone()))
    };
    let Some((reason, message)) = find(new) else { return };
    let before = cache.status.as_ref().and_then(find).map(|(reason, _)| reason);
    // Servers that come and go are no news: the condition tells.
    let is_quiet = |reason: &str| reason == reason::NOT_DEGRADED || reason == reason::DEGRADED;
    if before.as_deref() == Some(reason.as_str()) || before.as_deref().is_none_or(is_quiet) && is_quiet(&reason) {
        return;
    }
    if is_quiet(&reason) {
        context.tell(cache, reason::RECOVERED, "what stood in the way is gone").await;
    } else {
        context.warn(cache, &reason, &message).await;
    }
}
