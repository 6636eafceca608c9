//! Why pods do not become ready, however long one waits: what the kubelet, the scheduler and the controllers say.

use k8s_openapi::api::apps::v1::DeploymentCondition;
use k8s_openapi::api::core::v1::{ContainerStatus, Pod, PodCondition};
use memcached_api::memcached::reason;

/// A failure that waiting does not mend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    pub kind: FailureKind,
    pub message: String,
}

/// What kind of failure it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FailureKind {
    /// The image cannot be pulled.
    ImagePull,
    /// The container cannot be created: a missing ConfigMap, a volume, a security context.
    ContainerCreation,
    /// The container ends again and again.
    CrashLoop,
    /// Pods cannot be created: a quota, an admission policy.
    PodCreation,
    /// No node takes the pod.
    Unschedulable,
    /// The rollout made no progress within its deadline.
    RolloutStalled,
    /// The rollout was stopped: what is declared does not start.
    RolloutStopped,
}

impl FailureKind {
    /// The reason of the Event that tells of it. The condition's reason is `Degraded` for all of them.
    pub const fn reason(self) -> &'static str {
        match self {
            Self::ImagePull => reason::IMAGE_PULL_FAILED,
            Self::ContainerCreation => reason::CONTAINER_CREATION_FAILED,
            Self::CrashLoop => reason::CONTAINER_CRASHED,
            Self::PodCreation => reason::POD_CREATION_FAILED,
            Self::Unschedulable => reason::SCHEDULING_FAILED,
            Self::RolloutStalled => reason::ROLLOUT_STALLED,
            Self::RolloutStopped => reason::ROLLOUT_STOPPED,
        }
    }

    /// What the kubelet's reason for a waiting container means. None for one that will pass: `ContainerCreating`.
    fn of_waiting(reason: &str) -> Option<Self> {
        // The kubelet's own: pkg/kubelet/container/sync_result.go and pkg/kubelet/images/types.go.
        match reason {
            "ErrImagePull"
            | "ImagePullBackOff"
            | "ImageInspectError"
            | "ErrImageNeverPull"
            | "InvalidImageName"
            | "RegistryUnavailable"
            | "SignatureValidationFailed" => Some(Self::ImagePull),
            "CreateContainerConfigError"
            | "CreateContainerError"
            | "RunContainerError"
            | "PreCreateHookError"
            | "PreStartHookError"
            | "PostStartHookError" => Some(Self::ContainerCreation),
            "CrashLoopBackOff" => Some(Self::CrashLoop),
            _ => None,
        }
    }
}

/// Why a container of a pod does not start, init containers first: the others wait for them.
pub fn container_failure(pod: &Pod) -> Option<Failure> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let status = pod.status.as_ref()?;
    let init = status.init_container_statuses.iter().flatten().map(|container| ("init container", container));
    let main = status.container_statuses.iter().flatten().map(|container| ("container", container));
    init.chain(main).find_map(|(what, container)| waiting(name, what, container))
}

fn waiting(pod: &str, what: &str, status: &ContainerStatus) -> Option<Failure> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref()?;
    let kind = FailureKind::of_waiting(reason)?;
    let detail = waiting.message.as_deref().unwrap_or("no details");
    let advice = match kind {
        FailureKind::CrashLoop => {
            let last = termination_message(status).map_or_else(String::new, |line| format!("last message {line:?}; "));
            format!("{last}see kubectl logs {pod} --container {}", status.name)
        }
        FailureKind::ImagePull => format!("check the image {:?} and imagePullSecrets", status.image),
        _ => format!("see kubectl describe pod {pod}"),
    };
    let name = &status.name;
    let message = format!("{what} {name:?} in pod {pod:?} is waiting to start: {reason}: {detail}; {advice}");
    Some(Failure { kind, message })
}

/// The last line of the container's termination message.
fn termination_message(status: &ContainerStatus) -> Option<String> {
    let terminated = status.last_state.as_ref()?.terminated.as_ref()?;
    let line = terminated.message.as_deref()?.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

/// Why no node takes a pod, in the scheduler's words.
pub fn scheduling_failure(pod: &Pod) -> Option<Failure> {
    let is_unschedulable = |condition: &&PodCondition| {
        condition.type_ == "PodScheduled"
            && condition.status == "False"
            && condition.reason.as_deref() == Some("Unschedulable")
    };
    let condition = pod.status.as_ref()?.conditions.iter().flatten().find(is_unschedulable)?;
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let detail = condition.message.as_deref().unwrap_or("no details");
    let message = format!("pod {name:?} is unschedulable: {detail}");
    Some(Failure { kind: FailureKind::Unschedulable, message })
}

/// Why pods cannot be created, in the API server's words.
pub fn creation_failure(conditions: &[DeploymentCondition]) -> Option<Failure> {
    let is_failure =
        |condition: &&DeploymentCondition| condition.type_ == "ReplicaFailure" && condition.status == "True";
    let condition = conditions.iter().find(is_failure)?;
    let detail = condition.message.as_deref().unwrap_or("no details");
    Some(Failure { kind: FailureKind::PodCreation, message: format!("pods cannot be created: {detail}") })
}
