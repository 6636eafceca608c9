//! Certificates and passwords in pods of a StatefulSet: taken live. The pod is told of the change, whereupon the kubelet
//! refreshes its volumes at once; its agent says when they are in force, and that is written to the pod.

use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::api::ResourceExt;
use memcached_api::memcached::reason;
use memcached_api::{Memcached, label};
use memcached_core::memcached::rollout::{annotate, annotation};
use memcached_core::memcached::{Observed, Validated, secret};
use operator_kit::children::{ApplyError, Children};
use operator_kit::controller::Context;
use operator_model::problem::Problem;

use super::rollout::Rollouts;

/// How soon pods that were told are asked again.
const SOON: Duration = Duration::from_secs(1);

/// What came of it.
#[derive(Debug, Default)]
pub struct Taken {
    pub requeue: Option<Duration>,
    pub problem: Option<ApplyError>,
    /// A pod cannot use what it was told of.
    pub refused: Option<Problem>,
}

/// Tells pods of changed Secrets, and sees to it that they are in force.
pub async fn announce(
    rollouts: &Rollouts,
    valid: &Validated,
    observed: &Observed,
    children: &Children<'_>,
    context: &Context<Memcached>,
) -> Taken {
    let Some(hash) = secret::hash(valid, &observed.secrets).filter(|_| !valid.paused) else { return Taken::default() };
    let mut taken = Taken::default();
    let mut is_news = false;
    for pod in observed.servers().filter(|pod| pod.metadata.deletion_timestamp.is_none()) {
        match announce_to(rollouts, pod, &hash, children).await {
            Ok(State::InForce) => {}
            Ok(State::Taken) => is_news = true,
            Ok(State::Waiting) => taken.requeue = Some(SOON),
            Ok(State::Refused(why)) => {
                let message = format!("pod {:?}: {why}; what it had before stays in force", pod.name_any());
                taken.refused = Some(Problem::new(reason::SECRETS_REFUSED, message, None));
                taken.requeue = Some(SOON.saturating_mul(5));
            }
            Err(error) => taken.problem = Some(error),
        }
    }
    if is_news && taken.requeue.is_none() && taken.problem.is_none() {
        context
            .tell(&observed.cache, reason::SECRETS_IN_FORCE, "all servers have taken the Secrets as they are now")
            .await;
    }
    taken
}

enum State {
    /// It was seen before.
    InForce,
    /// It is in force since now.
    Taken,
    Waiting,
    Refused(String),
}

async fn announce_to(rollouts: &Rollouts, pod: &Pod, hash: &str, children: &Children<'_>) -> Result<State, ApplyError> {
    let name = pod.name_any();
    let is_told = annotation(pod, label::SECRET_HASH) == Some(hash);
    if is_told && annotation(pod, label::SECRET_HASH_IN_FORCE) == Some(hash) {
        return Ok(State::InForce);
    }
    if !is_told {
        children.patch_pod(&name, &annotate(pod, label::SECRET_HASH, hash)).await?;
        return Ok(State::Waiting);
    }
    let Some(live) = super::rollout::read_pod(children, &name).await? else { return Ok(State::Waiting) };
    let Ok(agent) = rollouts.ask(&live).await else { return Ok(State::Waiting) };
    match agent.has_secrets(hash) {
        Ok(false) => Ok(State::Waiting),
        Err(why) => Ok(State::Refused(why)),
        Ok(true) => {
            children.patch_pod(&name, &annotate(&live, label::SECRET_HASH_IN_FORCE, hash)).await?;
            Ok(State::Taken)
        }
    }
}
