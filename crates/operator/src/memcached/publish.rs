//! Publishes what was observed and done: status on change, Events on transitions.

use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use memcached_api::Memcached;
use memcached_api::memcached::{MemcachedStatus, condition, reason};
use memcached_core::memcached::Validated;
use memcached_core::memcached::status::Failure;
use memcached_core::memcached::warning::warnings;
use operator_kit::controller::{Context, Error};
use operator_kit::status::Published;

/// Publishes the outcome of a reconcile; when to come back if something was left for later.
pub async fn publish(
    cache: &Memcached,
    valid: Option<&Validated>,
    new: &MemcachedStatus,
    failure: Option<&Failure>,
    context: &Context<Memcached>,
) -> Result<Option<Duration>, Error> {
    let old = cache.status.as_ref();
    let is_news = old.is_none_or(|old| is_news(old, new));
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

/// What people wait for; the rest is on the way there, and told together with it if it is not far.
fn is_news(old: &MemcachedStatus, new: &MemcachedStatus) -> bool {
    let is_transition = |new: &Condition| {
        let old = old.conditions.iter().find(|old| old.type_ == new.type_);
        let is_same = old.is_some_and(|old| (&old.status, &old.reason) == (&new.status, &new.reason));
        // The first server that answers is a step of a rollout, as the second one is.
        let is_step = new.type_ == condition::AVAILABLE && new.status == "True";
        !is_same && !is_step
    };
    new.conditions.iter().any(is_transition)
        || old.observed_generation != new.observed_generation
        || old.pending_defaults != new.pending_defaults
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
