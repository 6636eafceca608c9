//! How far the rollout of the Deployment is, as `kubectl rollout status` would tell.

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition};
use k8s_openapi::api::core::v1::{Pod, PodCondition};

use super::StatusInput;
use super::pod_failure::{Failure, FailureKind, container_failure, creation_failure, scheduling_failure};

/// The API server's default of `progressDeadlineSeconds`.
const DEFAULT_DEADLINE: i32 = 600;

/// The replicas in numbers, and whether they make progress.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[allow(clippy::struct_excessive_bools, reason = "each is a fact of its own that the Deployment or a pod states")]
pub struct RolloutStatus {
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
    /// What the scheduler says of a pod that it may yet find a node for.
    pending: Option<String>,
    /// When a pod that is starting now has had its time.
    recheck_at: Option<Timestamp>,
}

impl RolloutStatus {
    /// How far the rollout is now.
    pub fn of(input: &StatusInput, now: Timestamp) -> Self {
        let Some(deployment) = &input.deployment else {
            return Self { desired: input.replicas.unwrap_or(1), ..Self::default() };
        };
        let status = deployment.status.clone().unwrap_or_default();
        let spec = deployment.spec.as_ref();
        let declared = spec.and_then(|spec| spec.replicas);
        let conditions = status.conditions.unwrap_or_default();
        let mut rollout = Self {
            desired: input.replicas.or(declared).unwrap_or(1),
            replicas: status.replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            is_current: status.observed_generation >= deployment.metadata.generation
                && input.replicas.is_none_or(|desired| declared == Some(desired)),
            exists: true,
            is_under_way: progress_reason(&conditions) != Some("NewReplicaSetAvailable"),
            ..Self::default()
        };
        let deadline = deadline(deployment);
        rollout.look_at_pods(&input.pods, deadline, now);
        // What was said of an earlier generation is over with it.
        if rollout.is_current {
            let is_overdue = progress_reason(&conditions) == Some("ProgressDeadlineExceeded");
            let stalled = || is_overdue.then(|| rollout.stalled(deadline));
            rollout.failure = rollout.failure.clone().or_else(|| creation_failure(&conditions)).or_else(stalled);
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
            return Some("creating the Deployment".into());
        }
        if !self.is_current {
            return Some("waiting for the Deployment controller to observe the change".into());
        }
        if self.failure.is_some() {
            return None;
        }
        let Self { desired, updated, replicas, ready, .. } = self;
        let pending = self.pending.iter().map(|words| format!("; {words}")).collect::<String>();
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

fn deadline(deployment: &Deployment) -> SignedDuration {
    let seconds = deployment.spec.as_ref().and_then(|spec| spec.progress_deadline_seconds).unwrap_or(DEFAULT_DEADLINE);
    SignedDuration::from_secs(seconds.into())
}

fn progress_reason(conditions: &[DeploymentCondition]) -> Option<&str> {
    conditions.iter().find(|condition| condition.type_ == "Progressing")?.reason.as_deref()
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
