//! Everything that a decision needs, from stores where possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::Deployment;
use kube::api::{DynamicObject, ResourceExt};
use memcached_api::{Memcached, label};
use memcached_core::memcached::build::labels;
use memcached_core::memcached::{Observed, secret};
use operator_kit::children::{ApplyError, Children};
use operator_kit::controller::Context;
use operator_model::problem::Problem;
use operator_model::resource::{CONTROLLER_REVISION, DEPLOYMENT, HORIZONTAL_POD_AUTOSCALER, POD, ResourceType};

/// The labels by which an orphan of a cache is recognised.
pub fn identity(cache: &str) -> impl Fn(ResourceType) -> BTreeMap<String, String> + Send + Sync + use<> {
    let name = cache.to_owned();
    move |resource| match resource {
        CONTROLLER_REVISION => [(label::TEMPLATE_OF.to_owned(), name.clone())].into(),
        _ => labels(&name),
    }
}

/// The cache whose pod template a revision keeps: an orphan has no controller that says it.
pub fn template_of(revision: &DynamicObject) -> Option<String> {
    revision.labels().get(label::TEMPLATE_OF).cloned()
}

/// The cache that a pod serves: its controller is a ReplicaSet, its labels say more. Pods of other kinds of ours carry
/// another name.
pub fn instance_of(pod: &DynamicObject) -> Option<String> {
    let is_server = pod.labels().get(label::NAME).is_some_and(|name| name == label::NAME_VALUE);
    pod.labels().get(label::INSTANCE).filter(|_| is_server).cloned()
}

/// Observes everything that concerns a cache.
pub async fn observe(cache: Arc<Memcached>, children: &Children<'_>, context: &Context<Memcached>) -> Observed {
    let referenced = context.shared().secrets.refer(&context.request(&cache), &secret::referenced(&cache)).await;
    let mut problems = referenced.problems;
    let (deployment, is_deployment_known) = match observe_deployment(&cache, children).await {
        Ok(deployment) => (deployment, true),
        Err(error) => {
            problems.push(Problem::from(&error));
            (None, false)
        }
    };
    let revisions = typed(children.list(CONTROLLER_REVISION)).into_iter();
    Observed {
        revisions: revisions.filter(|revision| Observed::is_usable(&cache, revision)).collect(),
        pods: typed(children.list(POD)),
        secrets: referenced.secrets,
        deployment,
        is_deployment_known,
        problems,
        cache,
    }
}

/// The Deployment of the cache's name. Where somebody else decides its count, only a fresh one will do.
async fn observe_deployment(cache: &Memcached, children: &Children<'_>) -> Result<Option<Deployment>, ApplyError> {
    let name = cache.name_any();
    let known = children.get(DEPLOYMENT, &name);
    // What we created without a count is ours by default, until an autoscaler first changes it.
    let is_autoscaled = children.get(HORIZONTAL_POD_AUTOSCALER, &name).is_some();
    let owns_count = |live: &DynamicObject| children.owns_field(live, &["spec", "replicas"], is_autoscaled);
    let is_fresh = cache.spec.replicas.is_some() || known.as_ref().is_some_and(owns_count);
    let live = if is_fresh { known } else { children.read(DEPLOYMENT, &name).await? };
    Ok(live.and_then(|live| live.try_parse().ok()))
}

fn typed<K: kube::Resource + serde::de::DeserializeOwned>(objects: Vec<DynamicObject>) -> Vec<K> {
    objects.into_iter().filter_map(|object| object.try_parse().ok()).collect()
}
