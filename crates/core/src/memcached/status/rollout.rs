//! How far the rollout is, as `kubectl rollout status` would tell.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::{Pod, PodCondition};

use memcached_api::label;
use memcached_api::memcached::spec::WorkloadType;

use super::StatusInput;
use super::pod_failure::{Failure, FailureKind, container_failure, scheduling_failure};
use super::workload::WorkloadNumbers;
use crate::memcached::rollout::{annotation, revision_label};

/// The replicas in numbers, and whether they make progress.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own that the Deployment or a pod states")]
pub struct RolloutStatus {
    /// What runs the pods.
    pub kind: WorkloadType,
    /// How many there should be.
    pub desired: i32,
    pub replicas: i32,
    pub ready: i32,
    pub updated: i32,
    /// The Deployment controller has observed the newest template and count.
    pub is_current: bool,
    /// What waiting does not mend.
    pub failure: Option<Failure>,
    /// There is a Deployment.
    exists: bool,
    /// The Deployment controller has not seen this rollout end well, or a pod is on its way to be ready, and in time. A
    /// rollout that has ended well is under way no more: a server that is lost later is none.
    is_under_way: bool,
    /// A pod of a StatefulSet has had its time.
    is_late: bool,
    /// What is being done to pods, in words.
    doing: Option<String>,
    /// What the scheduler says of a pod that it may yet find a node for.
    pending: Option<String>,
    /// When a pod that is starting now has had its time.
    recheck_at: Option<Timestamp>,
}

impl RolloutStatus {
    /// How far the rollout is now.
    pub fn of(input: &StatusInput, now: Timestamp) -> Self {
        let Some(workload) = WorkloadNumbers::of(input) else {
            return Self { kind: input.workload, desired: input.replicas.unwrap_or(1), ..Self::default() };
        };
        let declared = workload.declared;
        let mut rollout = Self {
            kind: input.workload,
            desired: input.replicas.or(declared).unwrap_or(1),
            replicas: workload.replicas,
            ready: workload.ready,
            // The StatefulSet controller goes by a label, which follows when a change is confirmed.
            updated: workload.updated - changing(input),
            is_current: workload.is_observed && input.replicas.is_none_or(|desired| declared == Some(desired)),
            exists: true,
            is_under_way: workload.is_under_way,
            doing: input.advance.doing.clone(),
            ..Self::default()
        };
        rollout.look_at_pods(&input.pods, workload.deadline, now);
        // What was said of an earlier generation is over with it.
        if rollout.is_current {
            let stalled = || (workload.is_overdue || rollout.is_late).then(|| rollout.stalled(workload.deadline));
            let stopped = input.advance.stopped.clone();
            let stopped = stopped.map(|message| Failure { kind: FailureKind::RolloutStopped, message });
            let failure = stopped.or_else(|| rollout.failure.clone()).or_else(|| workload.failure.clone());
            rollout.failure = failure.or_else(stalled);
        } else {
            rollout.failure = None;
        }
        rollout
    }

    fn look_at_pods(&mut self, pods: &[Pod], deadline: SignedDuration, now: Timestamp) {
        let pods: Vec<&Pod> = pods.iter().filter(|pod| pod.metadata.deletion_timestamp.is_none()).collect();
        self.failure = pods.iter().find_map(|pod| container_failure(pod));
        for pod in pods.into_iter().filter(|pod| has_never_been_ready(pod)) {
            let due = pod.metadata.creation_timestamp.as_ref().map(|time| time.0.saturating_add(deadline));
            let due = due.and_then(Result::ok);
            let is_in_time = due.is_none_or(|due| now < due);
            let unschedulable = scheduling_failure(pod);
            if is_in_time {
                self.is_under_way = true;
                self.recheck_at = self.recheck_at.into_iter().chain(due).min();
                self.pending = self.pending.take().or(unschedulable.map(|failure| failure.message));
            } else {
                // Of a Deployment its controller says so.
                self.is_late |= self.kind == WorkloadType::StatefulSet;
                self.failure = self.failure.take().or(unschedulable);
            }
        }
    }

    fn stalled(&self, deadline: SignedDuration) -> Failure {
        let kind = if self.pending.is_some() { FailureKind::Unschedulable } else { FailureKind::RolloutStalled };
        let pending = self.pending.iter().map(|words| format!("; {words}")).collect::<String>();
        let message = format!("rollout stalled: {self}, no progress for {} s{pending}", deadline.as_secs());
        Failure { kind, message }
    }

    /// What is under way, in words; none if nothing is, or if it has failed.
    ///
    /// A pod that no node takes yet is progress for as long as a rollout may stand still: nodes may be on their way.
    pub fn progress(&self) -> Option<String> {
        if !self.exists {
            return Some(format!("creating the {}", self.controller()));
        }
        if !self.is_current {
            return Some(self.waiting_for_controller());
        }
        if self.failure.is_some() {
            return None;
        }
        let Self { desired, updated, replicas, ready, .. } = self;
        let details = self.doing.iter().chain(&self.pending);
        let pending = details.map(|words| format!("; {words}")).collect::<String>();
        if updated < desired {
            return Some(format!("{self}{pending}"));
        }
        match replicas - updated {
            1 => return Some("waiting for 1 old pod to terminate".into()),
            more if more > 1 => return Some(format!("waiting for {more} old pods to terminate")),
            _ => {}
        }
        (ready < desired && self.is_under_way).then(|| format!("{self}{pending}"))
    }

    fn controller(&self) -> &'static str {
        match self.kind {
            WorkloadType::Deployment => "Deployment",
            WorkloadType::StatefulSet => "StatefulSet",
        }
    }

    pub(super) fn waiting_for_controller(&self) -> String {
        format!("waiting for the {} controller to observe the change", self.controller())
    }

    /// When the status may change although nothing else does: a pod that is starting has had its time then.
    pub fn recheck_at(&self) -> Option<Timestamp> {
        self.recheck_at.filter(|_| self.ready < self.desired)
    }
}

/// "1/3 updated, 2/3 ready".
impl std::fmt::Display for RolloutStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { desired, updated, ready, .. } = self;
        write!(f, "{updated}/{desired} updated, {ready}/{desired} ready")
    }
}

/// How many pods of a StatefulSet count as updated and are being changed all the same: back to where they were.
fn changing(input: &StatusInput) -> i32 {
    let update = input.stateful_set.as_ref().and_then(|set| set.status.as_ref()?.update_revision.as_deref());
    let is_changing =
        |pod: &&Pod| annotation(pod, label::CHANGE).is_some() && update.is_some() && revision_label(pod) == update;
    i32::try_from(input.pods.iter().filter(is_changing).count()).unwrap_or(0)
}

/// Whether a pod is still on its way to be ready for the first time, as far as one can tell: it has not been restarted,
/// and has not been ready since its containers run.
fn has_never_been_ready(pod: &Pod) -> bool {
    let Some(status) = &pod.status else { return true };
    let is_ready = |condition: &&PodCondition| condition.type_ == "Ready";
    let Some(ready) = status.conditions.iter().flatten().find(is_ready) else { return true };
    let containers = status.container_statuses.as_deref().unwrap_or_default();
    let started = containers.iter().filter_map(|status| status.state.as_ref()?.running.as_ref()?.started_at.as_ref());
    let last_start = started.map(|time| time.0).max();
    let since = ready.last_transition_time.as_ref().map(|time| time.0);
    let was_ready_before = last_start.zip(since).is_some_and(|(started, since)| since > started);
    ready.status != "True" && !was_ready_before && containers.iter().all(|status| status.restart_count == 0)
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
