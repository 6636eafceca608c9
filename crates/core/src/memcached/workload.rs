//! What the Deployment and its pods say, reduced to a few numbers.

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};

use super::Facts;

/// Why a container will not start, however long one waits.
const HOPELESS: [&str; 6] = [
    "ImagePullBackOff",
    "ErrImagePull",
    "InvalidImageName",
    "ErrImageNeverPull",
    "CreateContainerError",
    "CrashLoopBackOff",
];

/// The servers in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Workload {
    /// How many there should be.
    pub desired: i32,
    pub replicas: i32,
    pub ready: i32,
    pub updated: i32,
    /// The workload's controller has seen the newest template and count.
    pub is_current: bool,
    /// The workload's controller has given up waiting.
    pub deadline_exceeded: bool,
    exists: bool,
    failing: Option<String>,
}

impl Workload {
    /// What is known of the servers.
    pub fn of(facts: &Facts) -> Self {
        let Some(deployment) = &facts.deployment else {
            return Self { desired: facts.replicas.unwrap_or(1), ..Self::default() };
        };
        let status = deployment.status.clone().unwrap_or_default();
        let declared = deployment.spec.as_ref().and_then(|spec| spec.replicas);
        let conditions = status.conditions.unwrap_or_default();
        Self {
            desired: facts.replicas.or(declared).unwrap_or(1),
            replicas: status.replicas.unwrap_or(0),
            ready: status.ready_replicas.unwrap_or(0),
            updated: status.updated_replicas.unwrap_or(0),
            is_current: status.observed_generation >= deployment.metadata.generation
                && facts.replicas.is_none_or(|wanted| declared == Some(wanted)),
            deadline_exceeded: conditions
                .iter()
                .any(|c| c.type_ == "Progressing" && c.reason.as_deref() == Some("ProgressDeadlineExceeded")),
            exists: true,
            failing: facts.pods.iter().find_map(failure),
        }
    }

    /// What is under way, in words; none if nothing is.
    pub fn rollout(&self) -> Option<String> {
        if !self.exists {
            return Some("the servers are being created".into());
        }
        if !self.is_current {
            return Some("a change is being taken up".into());
        }
        let Self { desired, updated, replicas, ready, .. } = self;
        if updated < desired {
            return Some(format!("{updated} of {desired} servers are up to date"));
        }
        if replicas > updated {
            return Some(format!("{} servers of the previous kind are going", replicas - updated));
        }
        (ready < desired && !self.deadline_exceeded).then(|| format!("{ready} of {desired} servers are ready"))
    }

    /// Why a pod does not start, if one does not.
    pub fn failing_pods(&self) -> Option<String> {
        self.failing.clone()
    }
}

fn failure(pod: &Pod) -> Option<String> {
    let name = pod.metadata.name.as_deref().unwrap_or_default();
    let statuses = pod.status.as_ref()?.container_statuses.as_ref()?;
    statuses.iter().find_map(|status| waiting(name, status))
}

/// What a container said before it ended.
fn last_words(status: &ContainerStatus) -> Option<String> {
    let ended = status.last_state.as_ref()?.terminated.as_ref()?;
    let line = ended.message.as_deref()?.lines().rev().map(str::trim).find(|line| !line.is_empty())?;
    Some(line.chars().take(200).collect())
}

fn waiting(pod: &str, status: &ContainerStatus) -> Option<String> {
    let waiting = status.state.as_ref()?.waiting.as_ref()?;
    let reason = waiting.reason.as_deref().filter(|reason| HOPELESS.contains(reason))?;
    let detail = waiting.message.as_deref().unwrap_or("no details");
    let advice = if reason == "CrashLoopBackOff" {
        let said = last_words(status).map_or_else(String::new, |words| format!("it said {words:?}; "));
        format!("{said}see kubectl logs {pod} --container {}", status.name)
    } else {
        format!("check the image {:?} and imagePullSecrets", status.image)
    };
    Some(format!("container {} of pod {pod} does not start: {reason}: {detail}; {advice}", status.name))
}
