//! Certificates and passwords in pods of a StatefulSet: taken live. The pod is told of the change, whereupon the kubelet
//! refreshes its volumes at once; its agent says when they are in force, and that is written to the pod.

use std::time::Duration;

use futures::future::join_all;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ResourceExt;
use memcached_api::memcached::reason;
use memcached_api::{Memcached, label};
use memcached_core::memcached::rollout::{annotate, annotation};
use memcached_core::memcached::{Observed, Validated, secret};
use operator_kit::children::{ApplyError, Children};
use operator_kit::controller::Context;
use operator_model::problem::Problem;

use super::rollout::{Rollouts, is_controlled_by, read_pod};

/// How soon pods that were told are asked again; every further time takes twice as long.
const SOON: Duration = Duration::from_secs(1);

/// The longest time between two questions.
const LATEST: Duration = Duration::from_secs(60);

/// So many questions without an answer are told.
const SILENCE: u32 = 6;

/// What came of it.
#[derive(Debug, Default)]
pub struct Taken {
    pub requeue: Option<Duration>,
    pub problem: Option<ApplyError>,
    /// A pod cannot use what it was told of, or does not say.
    pub refused: Option<Problem>,
}

enum State {
    /// It was seen before.
    InForce,
    /// It is in force since now.
    Taken,
    Waiting,
    /// Its agent does not answer, for this reason.
    Silent(String),
    Refused(String),
}

/// Tells pods of changed Secrets, and sees to it that they are in force.
pub async fn announce(
    rollouts: &Rollouts,
    valid: &Validated,
    observed: &Observed,
    stateful_set: &StatefulSet,
    children: &Children<'_>,
    context: &Context<Memcached>,
) -> Taken {
    let Some(hash) = secret::hash(valid, &observed.secrets).filter(|_| !valid.paused) else { return Taken::default() };
    let pods: Vec<&Pod> = observed.servers().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
    let turn = Turn { rollouts, hash: &hash, stateful_set, children };
    // All at once: one that does not answer must not hold up the others, nor other caches.
    let states = join_all(pods.iter().map(|pod| turn.announce_to(pod))).await;
    let mut taken = Taken::default();
    let (mut refused, mut silent, mut is_news) = (Vec::new(), Vec::new(), false);
    for (pod, state) in pods.iter().zip(states) {
        let name = pod.name_any();
        match state {
            Ok(State::InForce) => continue,
            Ok(State::Taken) => {
                is_news = true;
                continue;
            }
            Ok(State::Waiting) => {}
            Ok(State::Silent(why)) => silent.push(format!("pod {name:?}: {why}")),
            Ok(State::Refused(why)) => refused.push(format!("pod {name:?}: {why}; what it had before stays in force")),
            Err(error) => taken.problem = Some(error),
        }
        taken.requeue = Some(SOON);
    }
    let uid = observed.cache.uid().unwrap_or_default();
    let attempts = rollouts.attempts(&uid, taken.requeue.is_some());
    taken.requeue = taken.requeue.map(|soon| soon.saturating_mul(1 << attempts.min(6)).min(LATEST));
    if !refused.is_empty() {
        taken.refused = Some(Problem::new(reason::SECRETS_REFUSED, refused.join("; "), None));
    } else if !silent.is_empty() && attempts >= SILENCE {
        let message = format!(
            "whether changed Secrets are in force is not known, for agents cannot be asked at port 9151: {}",
            silent.join("; ")
        );
        taken.refused = Some(Problem::new(reason::AGENT_SILENT, message, None));
    }
    if is_news && taken.requeue.is_none() {
        let note = "all servers have taken the Secrets as they are now";
        context.tell(&observed.cache, reason::SECRETS_IN_FORCE, note).await;
    }
    taken
}

struct Turn<'a> {
    rollouts: &'a Rollouts,
    hash: &'a str,
    stateful_set: &'a StatefulSet,
    children: &'a Children<'a>,
}

impl Turn<'_> {
    async fn announce_to(&self, pod: &Pod) -> Result<State, ApplyError> {
        let (name, hash) = (pod.name_any(), self.hash);
        let is_told = annotation(pod, label::SECRET_HASH) == Some(hash);
        if is_told && annotation(pod, label::SECRET_HASH_IN_FORCE) == Some(hash) {
            return Ok(State::InForce);
        }
        // A store does not keep whose it is.
        let live = read_pod(self.children, &name).await?.filter(|pod| is_controlled_by(pod, self.stateful_set));
        let Some(live) = live else { return Ok(State::InForce) };
        if !is_told {
            self.children.patch_pod(&name, &annotate(&live, label::SECRET_HASH, hash)).await?;
            return Ok(State::Waiting);
        }
        if live.status.as_ref().and_then(|status| status.phase.as_deref()) != Some("Running") {
            // It reads them when it starts; its next change tells.
            return Ok(State::Waiting);
        }
        let agent = match self.rollouts.ask(&live).await {
            Ok(agent) => agent,
            Err(why) => return Ok(State::Silent(why)),
        };
        match agent.has_secrets(hash) {
            Ok(false) => Ok(State::Waiting),
            Err(why) => Ok(State::Refused(why)),
            Ok(true) => {
                self.children.patch_pod(&name, &annotate(&live, label::SECRET_HASH_IN_FORCE, hash)).await?;
                Ok(State::Taken)
            }
        }
    }
}
