//! Publishes what was observed and done: status on change, Events on transitions, metrics always.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use memcached_api::memcached::{MemcachedStatus, reason};
use memcached_api::{Memcached, condition};
use memcached_core::memcached::Validated;
use memcached_core::memcached::status::{Failure, RolloutStatus, StatusInput};
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

    pub fn show(&self, input: &StatusInput, rollout: &RolloutStatus, valid: Option<&Validated>) {
        let (namespace, name) = (&input.namespace, &input.name);
        if let Some(valid) = valid {
            let version = valid.version.clone().unwrap_or_default();
            self.info.set_only(namespace, name, &[("image", valid.image.as_str()), ("version", &version)], 1.0);
        }
        self.desired.set(namespace, name, &[], f64::from(rollout.desired));
        self.updated.set(namespace, name, &[], f64::from(rollout.updated));
        self.ready.set(namespace, name, &[], f64::from(rollout.ready));
    }
}

/// Publishes the outcome of a reconcile; when to come back if something was left for later.
pub async fn publish(
    cache: &Memcached,
    valid: Option<&Validated>,
    new: &MemcachedStatus,
    failure: Option<&Failure>,
    context: &Context<Memcached>,
) -> Result<Option<Duration>, Error> {
    let old = cache.status.as_ref();
    let is_news = old.is_none_or(|old| news(old) != news(new));
    match context.publish_status(cache, old, new, is_news).await? {
        Published::Unchanged => return Ok(None),
        Published::Later(pause) => return Ok(Some(pause)),
        Published::Written(_) => {}
    }
    announce(cache, new, failure, context).await;
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
async fn announce(cache: &Memcached, new: &MemcachedStatus, failure: Option<&Failure>, context: &Context<Memcached>) {
    let old = cache.status.as_ref().and_then(degraded);
    let Some(new) = degraded(new) else { return };
    let is_degraded = |condition: &Condition| condition.reason != reason::NOT_DEGRADED;
    if !is_degraded(new) {
        // Pods that come and go are no news when they come, either.
        if old.is_some_and(|old| is_degraded(old) && old.reason != reason::DEGRADED) {
            context.tell(cache, reason::RECOVERED, "what stood in the way is gone").await;
        }
    } else if new.reason != reason::DEGRADED {
        if old.is_none_or(|old| old.reason != new.reason) {
            context.warn(cache, &new.reason, &new.message).await;
        }
    } else if let Some(failure) = failure
        && old.is_none_or(|old| old.message != new.message)
    {
        // Pods that come and go are no news, but one that will not start by waiting is.
        context.warn(cache, failure.kind.reason(), &failure.message).await;
    }
}

fn degraded(status: &MemcachedStatus) -> Option<&Condition> {
    status.conditions.iter().find(|condition| condition.type_ == condition::DEGRADED)
}
