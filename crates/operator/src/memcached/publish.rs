//! Tells what was seen and done: status on change, Events on transitions, metrics always.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use kube::Resource;
use kube::api::{Api, Patch, PatchParams, ResourceExt};
use kube::runtime::events::{Event, EventType};
use memcached_api::memcached::MemcachedStatus;
use memcached_api::{Memcached, condition, reason};
use memcached_core::status::{Facts, status};
use memcached_core::warning::warnings;
use memcached_core::{Validated, image};
use serde_json::json;

use super::apply::Applied;
use super::context::Context;
use super::observe::{Observed, typed};
use super::{Error, PATIENCE};

/// Numbers that move while servers come up are written this often at most.
const PACE: Duration = Duration::from_secs(5);

/// Publishes the outcome of a round; when to come back if something was left for later.
pub async fn publish(
    cache: &Memcached,
    valid: Option<&Validated>,
    observed: &Observed,
    applied: &Applied,
    context: &Context,
) -> Result<Option<Duration>, Error> {
    let facts = facts(cache, valid, observed, applied);
    let new = status(cache.status.as_ref(), &facts, Timestamp::now());
    show_metrics(&facts, &new, valid, context);
    if cache.status.as_ref() == Some(&new) {
        return Ok(None);
    }
    let key = (facts.namespace.clone(), facts.name.clone());
    let is_news = cache.status.as_ref().is_none_or(|old| news(old) != news(&new));
    if !is_news && context.wrote_status_within(&key, PACE) {
        return Ok(Some(PACE));
    }
    write(cache, &new, context).await?;
    context.note_status(key);
    announce(cache, &new, context).await;
    if cache.status.as_ref().and_then(|old| old.observed_generation) != new.observed_generation {
        warn(cache, valid, context).await;
    }
    Ok(None)
}

/// What people wait for; the rest are numbers on the way there.
fn news(status: &MemcachedStatus) -> impl PartialEq + use<> {
    let verdicts: Vec<_> =
        status.conditions.iter().map(|c| (c.type_.clone(), c.status.clone(), c.reason.clone())).collect();
    (verdicts, status.observed_generation, status.server_list.clone(), status.pending_defaults.clone())
}

fn facts(cache: &Memcached, valid: Option<&Validated>, observed: &Observed, applied: &Applied) -> Facts {
    let written: Option<Deployment> = applied.deployment.as_ref().and_then(typed);
    Facts {
        name: cache.name_any(),
        namespace: cache.namespace().unwrap_or_default(),
        // What was not even begun has not been seen.
        generation: cache
            .status
            .as_ref()
            .and_then(|old| old.observed_generation)
            .filter(|_| applied.is_unbegun)
            .or(cache.metadata.generation)
            .unwrap_or_default(),
        version: valid
            .and_then(|valid| valid.version.clone())
            .or_else(|| cache.spec.image.as_deref().and_then(image::tag).map(str::to_owned)),
        replicas: valid.and_then(|valid| valid.spec.replicas.and(valid.fixed_replicas())),
        deployment: written.or_else(|| observed.own_deployment(cache).cloned()),
        pods: observed.pods.clone(),
        problems: applied.problems.clone(),
        paused: cache.spec.paused.unwrap_or(false),
        newer_defaults: applied.newer_defaults.clone(),
    }
}

async fn write(cache: &Memcached, status: &MemcachedStatus, context: &Context) -> Result<(), Error> {
    let namespace = cache.namespace().unwrap_or_default();
    let api: Api<Memcached> = Api::namespaced(context.applier.client().clone(), &namespace);
    let document = json!({
        "apiVersion": Memcached::api_version(&()),
        "kind": Memcached::kind(&()),
        // The uid: a cache that was deleted and made anew under this name must not get this status.
        "metadata": {"name": cache.name_any(), "uid": cache.uid()},
        "status": status,
    });
    let params = PatchParams::apply(context.applier.manager()).force();
    context.applier.check(&namespace)?;
    let name = cache.name_any();
    let document = Patch::Apply(document);
    let written = tokio::time::timeout(PATIENCE, api.patch_status(&name, &params, &document)).await;
    match written.map_err(|_| Error::NoAnswer)? {
        Ok(_) => Ok(()),
        // Gone, or another one by now: nothing to tell.
        Err(kube::Error::Api(error)) if error.code == 404 || error.code == 409 => Ok(()),
        Err(error) => Err(Error::Status(Box::new(error))),
    }
}

/// An Event when trouble begins, changes its kind, or ends.
async fn announce(cache: &Memcached, new: &MemcachedStatus, context: &Context) {
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
        let note = "what stood in the way is gone".to_owned();
        tell(cache, EventType::Normal, reason::RECOVERED.into(), note, context).await;
    } else {
        tell(cache, EventType::Warning, reason, message, context).await;
    }
}

/// An Event for everything that works but will hurt, once a declaration.
async fn warn(cache: &Memcached, valid: Option<&Validated>, context: &Context) {
    for warning in valid.into_iter().flat_map(warnings) {
        tell(cache, EventType::Warning, warning.reason.into(), warning.to_string(), context).await;
    }
}

async fn tell(cache: &Memcached, type_: EventType, reason: String, note: String, context: &Context) {
    if context.applier.check(&cache.namespace().unwrap_or_default()).is_err() {
        return;
    }
    let event = Event { type_, reason, note: Some(note), action: "Reconcile".into(), secondary: None };
    let reference = cache.object_ref(&());
    match tokio::time::timeout(PATIENCE, context.recorder.publish(&event, &reference)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "no Event written"),
        Err(_) => tracing::debug!("no Event written: no answer"),
    }
}

fn show_metrics(facts: &Facts, status: &MemcachedStatus, valid: Option<&Validated>, context: &Context) {
    let (namespace, name) = (&facts.namespace, &facts.name);
    let gauges = &context.gauges;
    if let Some(valid) = valid {
        let version = valid.version.clone().unwrap_or_default();
        gauges.info.set_only(namespace, name, &[("image", valid.image.as_str()), ("version", &version)], 1.0);
    }
    let workload = memcached_core::status::Workload::of(facts);
    gauges.desired.set(namespace, name, &[], f64::from(workload.desired));
    gauges.updated.set(namespace, name, &[], f64::from(workload.updated));
    gauges.ready.set(namespace, name, &[], f64::from(status.ready_replicas));
}
