//! The rollout of a StatefulSet, which leaves it to us (`OnDelete`): what separates each pod from what is desired, how far
//! it is, and what is written to it. The order of steps is `operator_model::rollout`'s.
//!
//! The label `controller-revision-hash` says of which template a pod is. A change in place is written to the pod together
//! with a note; the label follows when the change is seen in force. So a crash between any two writes is picked up from
//! what the pods say.

mod agent_status;
mod argument;
mod difference;
mod patch;
mod proof;

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::StatefulSet;
use k8s_openapi::api::core::v1::{Pod, PodCondition, PodTemplateSpec};
use memcached_api::label;
use operator_model::rollout::{Change, Pace, Progress, Proof, Slot};

use crate::memcached::status::container_failure;
use crate::memcached::validate::Validated;

pub use agent_status::AgentStatus;
pub(crate) use difference::edited;
pub use difference::{Difference, Effect, compare, effect, server_arguments};
pub use patch::{ChangeNote, RefusalNote, Target, annotate, change, confirm};
pub use proof::{build_proof, proof_name, verdict};

/// The label by which the StatefulSet controller tells of which template a pod is.
pub const REVISION: &str = "controller-revision-hash";

/// How long a pod that was changed in place may take to be ready again.
const DEADLINE: Duration = Duration::from_secs(120);

/// How long an annotation takes to reach its pod at most.
const ARRIVAL: Duration = Duration::from_secs(5);

/// A pod as the API server has it now, and what is known of it beside that.
#[derive(Debug, Clone)]
pub struct LivePod {
    pub pod: Pod,
    /// What its agent says; an error in words if it does not answer. None if it was not asked.
    pub agent: Option<Result<AgentStatus, String>>,
    /// Whether what is desired starts on its node.
    pub proof: Proof,
    /// memcached's image as the proof has it.
    pub image: Option<String>,
}

/// The pods of a StatefulSet, and the templates that they are of.
pub struct Pods<'a> {
    /// By ordinal; none where there is none at the moment.
    pub slots: &'a [Option<LivePod>],
    /// Templates by name of the revision.
    pub templates: &'a BTreeMap<String, PodTemplateSpec>,
    /// The revision that is desired.
    pub desired: &'a str,
    pub now: Timestamp,
}

/// How fast a cache is changed.
pub fn pace(cache: &Validated) -> Pace {
    let rollout = cache.spec.workload.as_ref().and_then(|workload| workload.rollout.clone()).unwrap_or_default();
    let seconds = |count: Option<i32>| Duration::from_secs(count.and_then(|count| count.try_into().ok()).unwrap_or(0));
    let availability = cache.spec.high_availability.as_ref();
    let shutdown = availability.and_then(|availability| availability.graceful_shutdown.as_ref());
    // A server that is told to stop goes on serving for so long.
    let delay = shutdown.filter(|shutdown| shutdown.enabled).map_or(0, |shutdown| shutdown.pre_stop_delay_seconds);
    Pace {
        max_unavailable: rollout.max_unavailable.and_then(|count| count.try_into().ok()).unwrap_or(1),
        pause: seconds(rollout.pause_seconds).max(seconds(rollout.min_ready_seconds)),
        deadline: DEADLINE + Duration::from_secs(delay.try_into().unwrap_or(0)),
    }
}

/// The revision that the StatefulSet controller makes pods of; none while it has not seen the newest template.
pub fn desired_revision(stateful_set: &StatefulSet) -> Option<&str> {
    let status = stateful_set.status.as_ref()?;
    let is_current = status.observed_generation >= stateful_set.metadata.generation;
    status.update_revision.as_deref().filter(|_| is_current)
}

/// Whether a pod, as far as a store keeps it, has to be looked at.
pub fn is_pending(pod: &Pod, desired: &str) -> bool {
    revision_label(pod) != Some(desired) || annotation(pod, label::CHANGE).is_some()
}

/// The number at the end of a pod's name.
pub fn ordinal(pod: &Pod) -> Option<usize> {
    pod.metadata.name.as_deref()?.rsplit_once('-')?.1.parse().ok()
}

/// The label that says of which template a pod is.
pub fn revision_label(pod: &Pod) -> Option<&str> {
    pod.metadata.labels.as_ref()?.get(REVISION).map(String::as_str)
}

/// An annotation of a pod.
pub fn annotation<'a>(pod: &'a Pod, key: &str) -> Option<&'a str> {
    pod.metadata.annotations.as_ref()?.get(key).map(String::as_str)
}

/// The change that was made to a pod and is not confirmed.
pub fn change_note(pod: &Pod) -> Option<ChangeNote> {
    serde_json::from_str(annotation(pod, label::CHANGE)?).ok()
}

/// The revision that a pod is of, or is being changed to.
pub fn revision_of(pod: &Pod) -> Option<String> {
    change_note(pod).map(|note| note.to).or_else(|| revision_label(pod).map(ToOwned::to_owned))
}

/// How often memcached's container was started again.
pub fn restart_count(pod: &Pod) -> i32 {
    let statuses = pod.status.as_ref().and_then(|status| status.container_statuses.as_deref()).unwrap_or_default();
    statuses.iter().find(|status| status.name == "memcached").map_or(0, |status| status.restart_count)
}

/// memcached's image, as a pod has it.
pub fn server_image(pod: &Pod) -> Option<String> {
    let containers = pod.spec.as_ref().map(|spec| spec.containers.as_slice()).unwrap_or_default();
    containers.iter().find(|container| container.name == difference::SERVER)?.image.clone()
}

impl Pods<'_> {
    /// The slots, as a rollout looks at them.
    pub fn slots(&self) -> Vec<Option<Slot>> {
        self.slots.iter().map(|live| live.as_ref().map(|live| self.slot(live))).collect()
    }

    /// What separates a pod from what is desired; none if its template is not known any more.
    pub fn difference(&self, pod: &Pod) -> Option<Difference> {
        let from = self.templates.get(&revision_of(pod)?)?;
        Some(compare(from, self.templates.get(self.desired)?))
    }

    fn slot(&self, live: &LivePod) -> Slot {
        let pod = &live.pod;
        let ready_since = ready_since(pod);
        let changed_at = annotation(pod, label::CHANGED_AT).and_then(|at| at.parse().ok());
        let since = ready_since.into_iter().chain(changed_at).max();
        Slot {
            change: self.change(live),
            is_ready: ready_since.is_some(),
            ready_for: since.map_or(Duration::ZERO, |since| self.elapsed(since)),
            is_terminating: pod.metadata.deletion_timestamp.is_some(),
            progress: change_note(pod).and_then(|note| self.judge(live, &note)),
            refused: refusal(pod).filter(|note| note.revision == self.desired).map(|note| note.reason),
        }
    }

    fn change(&self, live: &LivePod) -> Change {
        if revision_of(&live.pod).as_deref() == Some(self.desired) {
            return Change::None;
        }
        match self.difference(&live.pod).map(|difference| difference.effect) {
            // What it was made of is gone: nobody can say what separates it.
            None | Some(Effect::Recreate(_)) => Change::Recreate,
            Some(Effect::None | Effect::Live) => Change::Live,
            // Who serves nobody has nothing to lose by a try.
            Some(Effect::Warm | Effect::Cold(_)) if ready_since(&live.pod).is_none() => Change::InPlace(Proof::Good),
            Some(Effect::Warm | Effect::Cold(_)) => Change::InPlace(live.proof.clone()),
        }
    }

    /// How far a change is. One that nobody wants any more is judged, too, unless the next one can be made at once.
    fn judge(&self, live: &LivePod, note: &ChangeNote) -> Option<Progress> {
        let is_next = || matches!(self.change(live), Change::InPlace(Proof::Good) | Change::Recreate);
        if note.to != self.desired && ready_since(&live.pod).is_none() && is_next() {
            return None;
        }
        Some(self.progress(live, note))
    }

    /// Whether a change is in force, as the kubelet and the agent see it.
    fn progress(&self, live: &LivePod, note: &ChangeNote) -> Progress {
        let pod = &live.pod;
        let since = note.since.parse().map_or(Duration::ZERO, |since| self.elapsed(since));
        // What it was before it is again: there is nothing to go back to.
        let is_undone = revision_label(pod) == Some(&note.to);
        let waiting = || Progress::Waiting(if is_undone { since.min(DEADLINE / 2) } else { since });
        let has_restarted = restart_count(pod) > note.restarts;
        // What the kubelet says of the container before says nothing of this one.
        if let Some(failure) = container_failure(pod).filter(|_| has_restarted && !is_undone) {
            return Progress::Failed(failure.message);
        }
        let is_image_in_force = note.previous.is_none() || has_restarted || (is_undone && since >= DEADLINE / 4);
        if !is_image_in_force || ready_since(pod).is_none() {
            return waiting();
        }
        let Some(Ok(agent)) = &live.agent else {
            // Another image runs, and is ready: that is told by the kubelet. Of arguments only the agent can tell.
            let is_told = note.previous.is_some() && since >= DEADLINE / 4;
            return if is_told { Progress::Confirmed } else { Progress::Waiting(since.min(DEADLINE / 2)) };
        };
        let Some(target) = self.templates.get(&note.to) else { return waiting() };
        let is_restarted = note.restart.is_none() || note.restart == agent.orders.restart;
        if agent.memcached.phase == "Ready" && agent.memcached.args == server_arguments(target) && is_restarted {
            return Progress::Confirmed;
        }
        match &agent.orders.error {
            // The order takes a moment to arrive; until then its error is another one's.
            Some(error) if agent.memcached.phase == "Ready" && since >= ARRIVAL && !is_undone => {
                Progress::Failed(agent_status::shortened(error))
            }
            _ => waiting(),
        }
    }

    fn elapsed(&self, since: Timestamp) -> Duration {
        Duration::try_from(self.now.duration_since(since)).unwrap_or(Duration::ZERO)
    }
}

fn refusal(pod: &Pod) -> Option<RefusalNote> {
    serde_json::from_str(annotation(pod, label::REFUSED)?).ok()
}

fn ready_since(pod: &Pod) -> Option<Timestamp> {
    let is_ready = |condition: &&PodCondition| condition.type_ == "Ready" && condition.status == "True";
    let ready = pod.status.as_ref()?.conditions.iter().flatten().find(is_ready)?;
    Some(ready.last_transition_time.as_ref().map_or(Timestamp::UNIX_EPOCH, |time| time.0))
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
