//! Reasons of conditions and Events: a closed set, never variable text.

pub use operator_model::reason::{
    API_UNAVAILABLE, CONFLICT, CONTESTED, INVALID, KIND_MISSING, NAME_TAKEN, REFUSED, SECRET_NOT_FOUND,
    SECRET_UNREADABLE,
};

/// `Available` is true.
pub const AVAILABLE: &str = "Available";
/// `Available` is false.
pub const UNAVAILABLE: &str = "Unavailable";
/// `Progressing` is true.
pub const PROGRESSING: &str = "Progressing";
/// `Progressing` is false.
pub const PROGRESSING_COMPLETE: &str = "ProgressingComplete";
/// `Degraded` is true: fewer servers are ready than desired without progress, or past the progress deadline.
pub const DEGRADED: &str = "Degraded";
/// `Degraded` is false.
pub const NOT_DEGRADED: &str = "NotDegraded";
/// `Ready` is true.
pub const READY: &str = "MemcachedReady";
/// `Ready` is false.
pub const NOT_READY: &str = "MemcachedNotReady";

/// An Event: the memory limit is below what the server needs when it is full and busy.
pub const MEMORY_TIGHT: &str = "MemoryTight";
/// An Event: the image may be another one tomorrow.
pub const VERSION_NOT_FIXED: &str = "VersionNotFixed";
/// An Event: the exporter that was named may not be able to log in.
pub const EXPORTER_MAY_BE_BLIND: &str = "ExporterMayBeBlind";
/// An Event: a rollout takes the only server away.
pub const ROLLOUT_INTERRUPTS: &str = "RolloutInterrupts";
/// An Event: the disruption budget protects nothing, or blocks everything.
pub const BUDGET_USELESS: &str = "BudgetUseless";
/// An Event: an image cannot be pulled.
pub const IMAGE_PULL_FAILED: &str = "ImagePullFailed";
/// An Event: a container cannot be created.
pub const CONTAINER_CREATION_FAILED: &str = "ContainerCreationFailed";
/// An Event: a container ends again and again.
pub const CONTAINER_CRASHED: &str = "ContainerCrashed";
/// An Event: pods cannot be created.
pub const POD_CREATION_FAILED: &str = "PodCreationFailed";
/// An Event: no node takes a pod.
pub const SCHEDULING_FAILED: &str = "SchedulingFailed";
/// An Event: a rollout made no progress within its deadline.
pub const ROLLOUT_STALLED: &str = "RolloutStalled";
/// An Event: a pod was changed in place.
pub const POD_CHANGED: &str = "PodChangedInPlace";
/// An Event: a pod will be replaced, and what it holds is lost.
pub const POD_WILL_BE_REPLACED: &str = "PodWillBeReplaced";
/// An Event: a pod that did not come back was changed back.
pub const CHANGE_UNDONE: &str = "ChangeUndone";
/// An Event: a rollout stands still until something else is declared.
pub const ROLLOUT_STOPPED: &str = "RolloutStopped";
/// An Event: changed certificates and passwords are in force.
pub const SECRETS_IN_FORCE: &str = "SecretsInForce";
/// An Event: changed certificates or passwords cannot be used; those before them stay in force.
pub const SECRETS_REFUSED: &str = "SecretsRefused";
/// Agents that have to be asked do not answer.
pub const AGENT_SILENT: &str = "AgentSilent";
/// An Event: a load balancer lets everybody in who can reach it.
pub const LOAD_BALANCER_OPEN: &str = "LoadBalancerOpen";
/// An Event: plaintext is served beside TLS.
pub const PLAINTEXT_SERVED: &str = "PlaintextServed";
/// An Event: the NetworkPolicy lets everybody in.
pub const NETWORK_POLICY_OPEN: &str = "NetworkPolicyOpen";
/// An Event: what stood in the way is gone.
pub const RECOVERED: &str = "Recovered";
