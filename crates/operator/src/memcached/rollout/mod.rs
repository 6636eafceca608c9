//! The rollout of a StatefulSet, whose controller leaves the pods to us. One step a reconcile; what comes next is decided
//! from what is seen then.

mod turn;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::Pod;
use kube::api::ResourceExt;
use memcached_api::Memcached;
use memcached_core::memcached::rollout::{self, AgentStatus};
use memcached_core::memcached::status::Advance;
use memcached_core::memcached::{Observed, Validated};
use operator_kit::children::{ApplyError, Children};
use operator_kit::controller::Context;
use operator_model::resource::POD;

use super::agent::Agents;
use turn::Turn;

/// How soon a pod that is being changed is looked at again: of a restart inside of its container nobody tells.
const SOON: Duration = Duration::from_millis(500);

/// How soon a rollout that waits for somebody else is looked at again.
const LATER: Duration = Duration::from_secs(10);

/// How soon a rollout that was stopped is looked at again: what was missing may be there by then.
const STOPPED: Duration = Duration::from_secs(60);

/// How many caches and pods are remembered; what is forgotten costs a repetition.
const MOST_REMEMBERED: usize = 10_000;

/// How far it got.
#[derive(Debug, Default)]
pub struct Advanced {
    pub advance: Advance,
    pub requeue: Option<Duration>,
    pub problem: Option<ApplyError>,
}

/// The rollouts of all caches.
#[derive(Default)]
pub struct Rollouts {
    agents: Agents,
    /// The revisions for which pods are going to be replaced, by uid of the pod: that is told before it is done.
    announced: Mutex<HashMap<String, String>>,
    /// How often agents were asked in vain, by uid of the cache.
    attempts: Mutex<HashMap<String, u32>>,
}

impl Rollouts {
    /// Takes the next step, if there is one to take.
    pub async fn advance(
        &self,
        valid: &Validated,
        observed: &Observed,
        stateful_set: Option<&StatefulSet>,
        children: &Children<'_>,
        context: &Context<Memcached>,
    ) -> Advanced {
        let Some(stateful_set) = stateful_set.filter(|_| !valid.paused) else { return Advanced::default() };
        let Some(desired) = rollout::desired_revision(stateful_set) else { return Advanced::default() };
        let is_pending = observed.servers().any(|pod| rollout::is_pending(pod, desired));
        if !is_pending {
            let problem = delete_proofs(observed, children, &[]).await.err();
            return Advanced { problem, ..Advanced::default() };
        }
        let turn = Turn {
            cache: &observed.cache,
            valid,
            children,
            context,
            rollouts: self,
            templates: BTreeMap::new(),
            slots: Vec::new(),
            desired: desired.to_owned(),
            stateful_set: stateful_set.uid().unwrap_or_default(),
            now: Timestamp::now(),
        };
        match Box::pin(turn.take(observed, stateful_set)).await {
            Ok(advanced) => advanced,
            // A pod has gone in the meantime.
            Err(error) if error.code() == Some(404) => Advanced::again(),
            Err(error) => Advanced { problem: Some(error), ..Advanced::default() },
        }
    }

    /// What an agent says, in words if it does not.
    pub async fn ask(&self, pod: &Pod) -> Result<AgentStatus, String> {
        self.agents.ask(pod).await
    }

    /// How often the agents of a cache were asked in vain before; forgotten when that is over.
    pub fn attempts(&self, cache: &str, is_in_vain: bool) -> u32 {
        let mut attempts = self.attempts.lock().unwrap_or_else(PoisonError::into_inner);
        if !is_in_vain {
            attempts.remove(cache);
            return 0;
        }
        // Caches that are gone leave their numbers behind.
        if attempts.len() > MOST_REMEMBERED {
            attempts.clear();
        }
        let count = attempts.entry(cache.to_owned()).or_default();
        *count = count.saturating_add(1);
        *count - 1
    }

    /// Whether it was told before that a pod is going to be replaced for a revision.
    fn is_announced(&self, pod: &Pod, revision: &str) -> bool {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        // Only against saying it twice.
        if announced.len() > MOST_REMEMBERED {
            announced.clear();
        }
        announced.insert(pod.uid().unwrap_or_default(), revision.to_owned()).as_deref() == Some(revision)
    }
}

/// Whether a StatefulSet has made a pod.
pub fn is_controlled_by(pod: &Pod, stateful_set: &StatefulSet) -> bool {
    let uid = stateful_set.metadata.uid.as_deref();
    pod.owner_references().iter().any(|owner| owner.controller == Some(true) && Some(owner.uid.as_str()) == uid)
}

/// Deletes pods that proved something; those of `kept` are still needed.
async fn delete_proofs(observed: &Observed, children: &Children<'_>, kept: &[String]) -> Result<(), ApplyError> {
    for proof in observed.proofs().filter(|proof| !kept.contains(&proof.name_any())) {
        if let Some(live) = read_pod(children, &proof.name_any()).await? {
            children.delete_pod(&live).await?;
        }
    }
    Ok(())
}

pub async fn read_pod(children: &Children<'_>, name: &str) -> Result<Option<Pod>, ApplyError> {
    Ok(children.read(POD, name).await?.and_then(|object| object.try_parse().ok()))
}

impl Advanced {
    fn stopped(why: &str) -> Self {
        let advice = "servers that are lost meanwhile come back as declared: declare something else soon";
        let advance = Advance { doing: None, stopped: Some(format!("rollout stopped: {why}; {advice}")) };
        Self { advance, requeue: Some(STOPPED), problem: None }
    }

    fn doing(what: String, requeue: Duration) -> Self {
        Self { advance: Advance { doing: Some(what), stopped: None }, requeue: Some(requeue), problem: None }
    }

    /// Something else is seen soon.
    fn again() -> Self {
        Self { requeue: Some(SOON), ..Self::default() }
    }
}
