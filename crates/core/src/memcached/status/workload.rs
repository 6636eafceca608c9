//! What a workload's controller says of it, the same for both kinds.

use jiff::SignedDuration;
use k8s_openapi::api::apps::v1::{Deployment, DeploymentCondition, StatefulSet};
use memcached_api::memcached::spec::WorkloadType;

use super::StatusInput;
use super::pod_failure::{Failure, creation_failure};

/// The API server's default of `progressDeadlineSeconds`.
const DEFAULT_DEADLINE: i32 = 600;

/// A workload in numbers.
pub struct WorkloadNumbers {
    /// How many it is told to run.
    pub declared: Option<i32>,
    pub replicas: i32,
    pub ready: i32,
    pub updated: i32,
    /// Its controller has seen the newest template and count.
    pub is_observed: bool,
    /// Its controller has not seen the rollout end well.
    pub is_under_way: bool,
    /// Its controller has waited long enough.
    pub is_overdue: bool,
    /// How long a pod may take.
    pub deadline: SignedDuration,
    /// Why pods cannot be created.
    pub failure: Option<Failure>,
}

impl WorkloadNumbers {
    /// The workload of a cache; none if there is none.
    pub fn of(input: &StatusInput) -> Option<Self> {
        match input.workload {
            WorkloadType::Deployment => input.deployment.as_ref().map(Self::of_deployment),
            WorkloadType::StatefulSet => {
                let numbers = input.stateful_set.as_ref().map(Self::of_stateful_set)?;
                Some(Self { deadline: seconds(input.deadline), ..numbers })
            }
        }
    }

    fn of_deployment(deployment: &Deployment) -> Self {
        let status = deployment.status.clone().unwrap_or_default();
        let spec = deployment.spec.as_ref();
        let conditions = status.conditions.unwrap_or_default();
        let progress = progress_reason(&conditions);
        Self {
            declared: spec.and_then(|spec| spec.replicas),
            replicas: status.replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            is_observed: status.observed_generation >= deployment.metadata.generation,
            is_under_way: progress != Some("NewReplicaSetAvailable"),
            is_overdue: progress == Some("ProgressDeadlineExceeded"),
            deadline: seconds(spec.and_then(|spec| spec.progress_deadline_seconds)),
            failure: creation_failure(&conditions),
        }
    }

    /// A StatefulSet has neither a deadline nor conditions: its pods say the rest.
    fn of_stateful_set(stateful_set: &StatefulSet) -> Self {
        let status = stateful_set.status.clone().unwrap_or_default();
        let declared = stateful_set.spec.as_ref().and_then(|spec| spec.replicas);
        let updated = status.updated_replicas.unwrap_or(0);
        Self {
            declared,
            replicas: status.replicas,
            ready: status.ready_replicas.unwrap_or(0),
            updated,
            is_observed: status.observed_generation >= stateful_set.metadata.generation,
            is_under_way: declared.is_some_and(|declared| updated < declared),
            is_overdue: false,
            deadline: seconds(None),
            failure: None,
        }
    }
}

fn seconds(count: Option<i32>) -> SignedDuration {
    SignedDuration::from_secs(count.unwrap_or(DEFAULT_DEADLINE).into())
}

fn progress_reason(conditions: &[DeploymentCondition]) -> Option<&str> {
    conditions.iter().find(|condition| condition.type_ == "Progressing")?.reason.as_deref()
}
