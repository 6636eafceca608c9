//! What a declaration would do to the pods of a cache that runs, and to what they hold.

use std::error::Error;
use std::fmt::Write as _;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams, ResourceExt};
use kube::{Client, Config};
use memcached_api::{Memcached, label};
use memcached_core::memcached::build::labels;
use memcached_core::memcached::revision::decide;
use memcached_core::memcached::rollout::effect;
use memcached_core::memcached::{Observed, PodDefaults, validate_observed};

use super::refused;

/// Tells it, a line a pod.
pub async fn explain(mut new: Memcached, running: &str, settings: &PodDefaults) -> Result<String, Box<dyn Error>> {
    let config = Config::infer().await.map_err(|error| format!("no cluster to look at: {error}"))?;
    let namespace = new.metadata.namespace.clone().unwrap_or_else(|| config.default_namespace.clone());
    let client = Client::try_from(config)?;
    let observed = observe(&client, &namespace, running).await?;
    let old = validate_observed(&observed.cache, settings, &observed);
    // As it would be if it were applied.
    new.metadata = observed.cache.metadata.clone();
    new.status.clone_from(&observed.cache.status);
    let valid = validate_observed(&new, settings, &observed).map_err(|violations| refused(&violations))?;
    let before = match &old {
        Ok(old) => decide(old, None, &observed.revisions, observed.reflecting()).template,
        Err(violations) => return Err(format!("the cache that runs: {}", refused(violations)).into()),
    };
    let after = decide(&valid, None, &observed.revisions, observed.reflecting()).template;
    let effect = effect(valid.workload, &before, &after);
    let mut text = format!("{namespace}/{running}\n");
    let desired = valid.fixed_replicas().or_else(|| observed.running_replicas(valid.workload)).unwrap_or(1);
    let mut count = 0;
    for pod in observed.serving_pods() {
        let is_surplus = valid.has_agent() && ordinal(&pod) >= desired;
        let what = if is_surplus { "ends, and what it holds is lost".to_owned() } else { effect.to_string() };
        writeln!(text, "  pod {:<30} {what}", pod.name_any())?;
        count += 1;
    }
    if count < desired {
        writeln!(text, "  {} more, which start empty", desired - count)?;
    } else if count > desired && !valid.has_agent() {
        writeln!(text, "  {} of these end, and what they hold is lost", count - desired)?;
    }
    Ok(text)
}

fn ordinal(pod: &Pod) -> i32 {
    let number = memcached_core::memcached::rollout::ordinal(pod);
    number.and_then(|number| number.try_into().ok()).unwrap_or(i32::MAX)
}

async fn observe(client: &Client, namespace: &str, name: &str) -> Result<Observed, Box<dyn Error>> {
    let caches: Api<Memcached> = Api::namespaced(client.clone(), namespace);
    let cache = caches.get_opt(name).await?.ok_or_else(|| format!("there is no Memcached {namespace}/{name}"))?;
    let selector: Vec<String> = labels(name).into_iter().map(|(key, value)| format!("{key}={value}")).collect();
    let pods: Api<Pod> = Api::namespaced(client.clone(), namespace);
    let revisions: Api<ControllerRevision> = Api::namespaced(client.clone(), namespace);
    let kept = ListParams::default().labels(&format!("{}={name}", label::TEMPLATE_OF));
    let revisions = revisions.list(&kept).await?.items.into_iter();
    Ok(Observed {
        revisions: revisions.filter(|revision| Observed::is_usable(&cache, revision)).collect(),
        pods: pods.list(&ListParams::default().labels(&selector.join(","))).await?.items,
        deployment: Api::<Deployment>::namespaced(client.clone(), namespace).get_opt(name).await?,
        stateful_set: Api::<StatefulSet>::namespaced(client.clone(), namespace).get_opt(name).await?,
        is_workload_known: true,
        cache: Arc::new(cache),
        ..Observed::default()
    })
}
