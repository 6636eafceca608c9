//! Everything that a decision needs, from stores where possible.

use std::collections::BTreeMap;
use std::sync::Arc;

use kube::api::{DynamicObject, ResourceExt};
use memcached_api::memcached::spec::WorkloadType;
use memcached_api::{Memcached, label};
use memcached_core::memcached::build::labels;
use memcached_core::memcached::{Observed, secret};
use operator_kit::children::{ApplyError, Children};
use operator_kit::controller::Context;
use operator_model::problem::Problem;
use operator_model::resource::{
    CONTROLLER_REVISION, DEPLOYMENT, HORIZONTAL_POD_AUTOSCALER, POD, ResourceType, STATEFUL_SET,
};

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
    let mut is_workload_known = true;
    let mut known = |live: Result<Option<DynamicObject>, ApplyError>| match live {
        Ok(live) => live,
        Err(error) => {
            problems.push(Problem::from(&error));
            is_workload_known = false;
            None
        }
    };
    let deployment = known(observe_workload(&cache, DEPLOYMENT, children).await);
    let stateful_set = known(observe_workload(&cache, STATEFUL_SET, children).await);
    let revisions = typed(children.list(CONTROLLER_REVISION)).into_iter();
    Observed {
        revisions: revisions.filter(|revision| Observed::is_usable(&cache, revision)).collect(),
        pods: typed(children.list(POD)),
        secrets: referenced.secrets,
        deployment: deployment.and_then(|live| live.try_parse().ok()),
        stateful_set: stateful_set.and_then(|live| live.try_parse().ok()),
        is_workload_known,
        problems,
        cache,
    }
}

/// The workload of the cache's name. Where somebody else decides its count, only a fresh one will do.
async fn observe_workload(
    cache: &Memcached,
    resource: ResourceType,
    children: &Children<'_>,
) -> Result<Option<DynamicObject>, ApplyError> {
    let name = cache.name_any();
    let known = children.get(resource, &name);
    if known.is_none() && is_of_other_workload(cache, resource) {
        return Ok(None);
    }
    // What we created without a count is ours by default, until an autoscaler first changes it.
    let is_autoscaled = children.get(HORIZONTAL_POD_AUTOSCALER, &name).is_some();
    let owns_count = |live: &DynamicObject| children.owns_field(live, &["spec", "replicas"], is_autoscaled);
    let is_fresh = cache.spec.replicas.is_some() || known.as_ref().is_some_and(owns_count);
    if is_fresh { Ok(known) } else { children.read(resource, &name).await }
}

/// Whether the cache is known to be run by another kind of workload: of this kind there is nothing to ask for then.
fn is_of_other_workload(cache: &Memcached, resource: ResourceType) -> bool {
    let type_ = cache.status.as_ref().and_then(|status| status.workload_type);
    let type_ = type_.or_else(|| cache.spec.workload.as_ref().and_then(|workload| workload.type_));
    match type_ {
        Some(WorkloadType::StatefulSet) => resource == DEPLOYMENT,
        _ => resource == STATEFUL_SET,
    }
}

fn typed<K: kube::Resource + serde::de::DeserializeOwned>(objects: Vec<DynamicObject>) -> Vec<K> {
    objects.into_iter().filter_map(|object| object.try_parse().ok()).collect()
}
