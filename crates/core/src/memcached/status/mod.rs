//! What the cache is like, in four conditions: a pure function of what was observed.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::{Deployment, StatefulSet};
use k8s_openapi::api::core::v1::Pod;
use memcached_api::Memcached;
use memcached_api::label;
use memcached_api::memcached::spec::{Rollout, WorkloadType};
use memcached_api::memcached::{MemcachedStatus, condition, reason};
use operator_model::condition::Assessment;
use operator_model::image;
use operator_model::problem::Problem;
use operator_model::resource::{Applied, DEPLOYMENT, Resources, STATEFUL_SET};

use crate::memcached::build::labels;
use crate::memcached::observed::Observed;
use crate::memcached::validate::Validated;

mod pod_failure;
mod rollout;
mod workload;

pub(crate) use pod_failure::container_failure;
pub use pod_failure::{Failure, FailureKind};
pub use rollout::RolloutStatus;

/// Everything that a status tells of.
#[derive(Debug, Clone, Default)]
pub struct StatusInput {
    pub name: String,
    pub namespace: String,
    pub generation: i64,
    /// The declared version.
    pub version: Option<String>,
    /// How many servers are declared; none where an autoscaler decides.
    pub replicas: Option<i32>,
    pub workload: WorkloadType,
    /// Whether that is certain: a spec that cannot work does not say it.
    pub is_workload_known: bool,
    pub deployment: Option<Deployment>,
    pub stateful_set: Option<StatefulSet>,
    /// How long a pod of a StatefulSet may take, in seconds, if it is said.
    pub deadline: Option<i32>,
    /// How far we are with the pods of a StatefulSet.
    pub advance: Advance,
    pub pods: Vec<Pod>,
    /// What stands in the way: a reason and a sentence.
    pub problems: Vec<Problem>,
    pub paused: bool,
    /// In what this version of the operator would build the pods differently.
    pub newer_defaults: Vec<String>,
}

impl StatusInput {
    /// What is known of a cache after its children were applied.
    pub fn of(
        observed: &Observed,
        validated: Option<&Validated>,
        applied: &Resources<Applied>,
        newer_defaults: Vec<String>,
    ) -> Self {
        let cache = &observed.cache;
        let name = cache.metadata.name.clone().unwrap_or_default();
        let deployment = applied.get(DEPLOYMENT, &name).and_then(|object| object.clone().try_parse().ok());
        let stateful_set = applied.get(STATEFUL_SET, &name).and_then(|object| object.clone().try_parse().ok());
        let workload = validated.map(|valid| valid.workload).or_else(|| observed.running_workload());
        let seen = cache.status.as_ref().and_then(|old| old.observed_generation);
        Self {
            namespace: cache.metadata.namespace.clone().unwrap_or_default(),
            // What was not even begun has not been seen.
            generation: seen.filter(|_| !applied.is_begun()).or(cache.metadata.generation).unwrap_or_default(),
            version: validated
                .and_then(|valid| valid.version.clone())
                .or_else(|| cache.spec.image.as_deref().and_then(image::tag).map(str::to_owned)),
            replicas: validated.and_then(|valid| valid.spec.replicas.and(valid.fixed_replicas())),
            workload: workload.unwrap_or_default(),
            is_workload_known: workload.is_some(),
            deployment: deployment.or_else(|| observed.own_deployment().cloned()),
            stateful_set: stateful_set.or_else(|| observed.own_stateful_set().cloned()),
            deadline: rollout_of(cache).and_then(|rollout| rollout.progress_deadline_seconds),
            advance: Advance::default(),
            pods: observed.serving_pods(),
            problems: applied.problems().filter(|problem| !problem.is_transient).cloned().collect(),
            paused: cache.spec.paused.unwrap_or(false),
            newer_defaults,
            name,
        }
    }
}

fn rollout_of(cache: &Memcached) -> Option<&Rollout> {
    cache.spec.workload.as_ref()?.rollout.as_ref()
}

/// How far the rollout of a StatefulSet is, beyond what its status tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Advance {
    /// What is being done, in words.
    pub doing: Option<String>,
    /// Why nothing more is done.
    pub stopped: Option<String>,
}

/// How many differences are told one by one.
const SHOWN: usize = 8;

/// What newer defaults there are, and how to take them.
fn newer_defaults_message(input: &StatusInput) -> String {
    let shown = input.newer_defaults.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let rest = match input.newer_defaults.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "this version of the operator builds pods differently ({shown}{rest}); nothing is restarted for that. \
         To take the new defaults: kubectl annotate memcached {} --namespace {} --overwrite {}=\"$(date)\"",
        input.name,
        input.namespace,
        label::RESTART_TRIGGER
    )
}

/// The status of a cache, keeping the times of conditions that stay as they were.
pub fn status(old: Option<&MemcachedStatus>, input: &StatusInput, now: Timestamp) -> MemcachedStatus {
    let rollout = RolloutStatus::of(input, now);
    let conditions =
        [available(&rollout), progressing(input, &rollout), degraded(input, &rollout), ready(input, &rollout)];
    let is_available = conditions.first().is_some_and(|condition| condition.status);
    let phase = phase(input, &rollout, &conditions);
    let before = old.map(|old| old.conditions.as_slice()).unwrap_or_default();
    let conditions = conditions.into_iter().map(|new| new.into_condition(before, input.generation, now)).collect();
    let mut nodes: Vec<String> = input.pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
    nodes.sort();
    MemcachedStatus {
        conditions,
        ready_replicas: rollout.ready,
        replicas: rollout.replicas,
        selector: Some(selector(&input.name)),
        observed_generation: Some(input.generation),
        server_list: if is_available { server_list(input, &rollout) } else { Vec::new() },
        nodes,
        version: input.version.clone(),
        workload_type: input
            .is_workload_known
            .then_some(input.workload)
            .or_else(|| old.and_then(|old| old.workload_type)),
        phase: Some(phase.into()),
        pending_defaults: (!input.newer_defaults.is_empty()).then(|| newer_defaults_message(input)),
    }
}

/// Where clients connect: the Service of a Deployment, every slot of a StatefulSet. A slot stays on the list while its pod
/// is away: whoever shards by the list must not move keys for that.
fn server_list(input: &StatusInput, rollout: &RolloutStatus) -> Vec<String> {
    let StatusInput { name, namespace, .. } = input;
    match input.workload {
        WorkloadType::Deployment => vec![format!("{name}.{namespace}:11211")],
        WorkloadType::StatefulSet => {
            (0..rollout.desired).map(|slot| format!("{name}-{slot}.{name}.{namespace}.svc:11211")).collect()
        }
    }
}

/// A condition as it is now; its time depends on what it was before.
fn new_condition(type_: &'static str, status: bool, reason: &'static str, message: impl Into<String>) -> Assessment {
    Assessment { type_, status, reason, message: message.into() }
}

fn available(rollout: &RolloutStatus) -> Assessment {
    let RolloutStatus { ready, desired, .. } = rollout;
    let (status, reason) = if *ready > 0 { (true, reason::AVAILABLE) } else { (false, reason::UNAVAILABLE) };
    let message =
        if *desired == 0 && *ready == 0 { "scaled to zero".into() } else { format!("{ready}/{desired} ready") };
    new_condition(condition::AVAILABLE, status, reason, message)
}

fn progressing(input: &StatusInput, rollout: &RolloutStatus) -> Assessment {
    let new = |status, reason, message: String| new_condition(condition::PROGRESSING, status, reason, message);
    let complete = |message: &str| new(false, reason::PROGRESSING_COMPLETE, message.into());
    if input.paused {
        return complete("paused: children are not changed");
    }
    if input.problems.iter().any(|problem| problem.reason == reason::INVALID) {
        return complete("the spec is invalid: children are not changed");
    }
    match rollout.progress() {
        Some(what) => new(true, reason::PROGRESSING, what),
        None if rollout.failure.is_some() => complete("rollout stalled; see Degraded"),
        None => complete("rollout complete"),
    }
}

/// Fewer ready than desired and not progressing, or past the progress deadline; or something stands in the way.
fn degraded(input: &StatusInput, rollout: &RolloutStatus) -> Assessment {
    let new = |status, reason, message: String| new_condition(condition::DEGRADED, status, reason, message);
    if let Some(worst) = input.problems.iter().min_by_key(|problem| rank(problem.reason)) {
        let all: Vec<&str> = input.problems.iter().map(|problem| problem.message.as_str()).collect();
        return new(true, worst.reason, all.join("; "));
    }
    if let Some(failure) = &rollout.failure {
        return new(true, reason::DEGRADED, failure.message.clone());
    }
    if rollout.ready < rollout.desired && rollout.progress().is_none() {
        return new(true, reason::DEGRADED, format!("{}/{} ready", rollout.ready, rollout.desired));
    }
    new(false, reason::NOT_DEGRADED, "no failure observed".into())
}

/// Who has to act comes first: what the user wrote, what the user has to bring, what others hold, what will pass.
fn rank(reason: &str) -> usize {
    const ORDER: [&str; 7] = [
        reason::INVALID,
        reason::SECRET_NOT_FOUND,
        reason::SECRET_UNREADABLE,
        reason::NAME_TAKEN,
        reason::CONTESTED,
        reason::REFUSED,
        reason::KIND_MISSING,
    ];
    ORDER.iter().position(|known| *known == reason).unwrap_or(ORDER.len())
}

fn ready(input: &StatusInput, rollout: &RolloutStatus) -> Assessment {
    let is_ready = rollout.desired > 0
        && rollout.is_current
        && rollout.updated == rollout.desired
        && rollout.ready >= rollout.desired
        && !input.problems.iter().any(|problem| problem.reason == reason::INVALID);
    if is_ready {
        return new_condition(condition::READY, true, reason::READY, rollout.to_string());
    }
    let message = match rollout.desired {
        0 => "scaled to zero".into(),
        _ if !rollout.is_current => rollout.waiting_for_controller(),
        _ => rollout.to_string(),
    };
    new_condition(condition::READY, false, reason::NOT_READY, message)
}

/// A word or two for `kubectl get`.
fn phase(input: &StatusInput, rollout: &RolloutStatus, conditions: &[Assessment; 4]) -> &'static str {
    let [available, progressing, degraded, ready] = conditions;
    match degraded.reason {
        reason::INVALID => return "Invalid",
        reason::SECRET_NOT_FOUND => return "Secret missing",
        reason::NAME_TAKEN => return "Name taken",
        _ => {}
    }
    if input.paused {
        return "Paused";
    }
    if ready.status && !progressing.status {
        return if degraded.status { "Degraded" } else { "Ready" };
    }
    if progressing.status {
        return "Rolling out";
    }
    match (rollout.desired, available.status) {
        (0, _) => "Scaled to zero",
        (_, true) => "Degraded",
        (_, false) => "Unavailable",
    }
}

/// The labels of the servers as a selector in words.
fn selector(name: &str) -> String {
    labels(name).into_iter().map(|(key, value)| format!("{key}={value}")).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
