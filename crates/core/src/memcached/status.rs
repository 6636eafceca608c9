//! What the cache is like, in four conditions: a pure function of what was observed.

use jiff::Timestamp;
use k8s_openapi::api::apps::v1::Deployment;
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use memcached_api::memcached::MemcachedStatus;
use memcached_api::memcached::reason;
use memcached_api::{condition, label};
use operator_model::image;
use operator_model::problem::Problem;
use operator_model::resource::{Applied, DEPLOYMENT, Resources};

use crate::memcached::build::labels;
use crate::memcached::observed::Observed;
use crate::memcached::validate::Validated;

#[path = "workload.rs"]
mod workload;

pub use workload::Workload;

/// Everything that a status tells of.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    pub name: String,
    pub namespace: String,
    pub generation: i64,
    /// The declared version.
    pub version: Option<String>,
    /// How many servers are declared; none where an autoscaler decides.
    pub replicas: Option<i32>,
    pub deployment: Option<Deployment>,
    pub pods: Vec<Pod>,
    /// What stands in the way: a reason and a sentence.
    pub problems: Vec<Problem>,
    pub paused: bool,
    /// In what this version of the operator would build the pods differently.
    pub newer_defaults: Vec<String>,
}

impl Facts {
    /// What is known of a cache after its children were applied.
    pub fn of(
        observed: &Observed,
        validated: Option<&Validated>,
        applied: &Resources<Applied>,
        newer_defaults: Vec<String>,
    ) -> Self {
        let cache = &observed.cache;
        let name = cache.metadata.name.clone().unwrap_or_default();
        let written = applied.get(DEPLOYMENT, &name).and_then(|object| object.clone().try_parse().ok());
        let seen = cache.status.as_ref().and_then(|old| old.observed_generation);
        Self {
            namespace: cache.metadata.namespace.clone().unwrap_or_default(),
            // What was not even begun has not been seen.
            generation: seen.filter(|_| !applied.is_begun()).or(cache.metadata.generation).unwrap_or_default(),
            version: validated
                .and_then(|valid| valid.version.clone())
                .or_else(|| cache.spec.image.as_deref().and_then(image::tag).map(str::to_owned)),
            replicas: validated.and_then(|valid| valid.spec.replicas.and(valid.fixed_replicas())),
            deployment: written.or_else(|| observed.own_deployment().cloned()),
            pods: observed.pods.clone(),
            problems: applied.problems().filter(|problem| !problem.is_transient).cloned().collect(),
            paused: cache.spec.paused.unwrap_or(false),
            newer_defaults,
            name,
        }
    }
}

/// How many differences are told one by one.
const SHOWN: usize = 8;

/// What newer defaults there are, and how to take them.
fn newer_defaults_message(facts: &Facts) -> String {
    let shown = facts.newer_defaults.iter().take(SHOWN).cloned().collect::<Vec<_>>().join(", ");
    let rest = match facts.newer_defaults.len().saturating_sub(SHOWN) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    format!(
        "this version of the operator builds pods differently ({shown}{rest}); nothing is restarted for that. \
         To take the new defaults: kubectl annotate memcached {} --namespace {} --overwrite {}=\"$(date)\"",
        facts.name,
        facts.namespace,
        label::RESTART_TRIGGER
    )
}

/// The status of a cache, keeping the times of conditions that stay as they were.
pub fn status(old: Option<&MemcachedStatus>, facts: &Facts, now: Timestamp) -> MemcachedStatus {
    let workload = Workload::of(facts);
    let degraded = degraded(facts, &workload);
    let verdicts = [
        available(&workload),
        progressing(facts, &workload, degraded.is_stuck),
        degraded.verdict,
        ready(facts, &workload),
    ];
    let is_available = verdicts.first().is_some_and(|verdict| verdict.status);
    let phase = phase(facts, &workload, &verdicts);
    let conditions = verdicts.into_iter().map(|verdict| verdict.condition(old, facts.generation, now)).collect();
    let mut nodes: Vec<String> = facts.pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
    nodes.sort();
    MemcachedStatus {
        conditions,
        ready_replicas: workload.ready,
        replicas: workload.replicas,
        selector: Some(selector(&facts.name)),
        observed_generation: Some(facts.generation),
        server_list: is_available.then(|| format!("{}.{}:11211", facts.name, facts.namespace)).into_iter().collect(),
        nodes,
        version: facts.version.clone(),
        phase: Some(phase.into()),
        pending_defaults: (!facts.newer_defaults.is_empty()).then(|| newer_defaults_message(facts)),
    }
}

struct Verdict {
    type_: &'static str,
    status: bool,
    reason: &'static str,
    message: String,
}

impl Verdict {
    fn new(type_: &'static str, status: bool, reason: &'static str, message: impl Into<String>) -> Self {
        Self { type_, status, reason, message: message.into() }
    }

    fn condition(self, old: Option<&MemcachedStatus>, generation: i64, now: Timestamp) -> Condition {
        let status = if self.status { "True" } else { "False" };
        let before = old.and_then(|old| old.conditions.iter().find(|c| c.type_ == self.type_));
        let since = before.filter(|c| c.status == status).map_or(Time(now), |c| c.last_transition_time.clone());
        Condition {
            type_: self.type_.into(),
            status: status.into(),
            reason: self.reason.into(),
            message: self.message,
            observed_generation: Some(generation),
            last_transition_time: since,
        }
    }
}

fn available(workload: &Workload) -> Verdict {
    if workload.ready > 0 {
        let message = format!("{} of {} servers are ready", workload.ready, workload.desired);
        return Verdict::new(condition::AVAILABLE, true, reason::AVAILABLE, message);
    }
    let message = if workload.desired == 0 { "scaled to zero" } else { "no server is ready" };
    Verdict::new(condition::AVAILABLE, false, reason::UNAVAILABLE, message)
}

fn progressing(facts: &Facts, workload: &Workload, is_stuck: bool) -> Verdict {
    let verdict = |status, reason, message: String| Verdict::new(condition::PROGRESSING, status, reason, message);
    if facts.paused {
        return verdict(false, reason::PROGRESSING_COMPLETE, "paused: the children are left alone".into());
    }
    if facts.problems.iter().any(|problem| problem.reason == reason::INVALID) {
        return verdict(false, reason::PROGRESSING_COMPLETE, "nothing is done before the declaration is right".into());
    }
    if is_stuck {
        return verdict(false, reason::PROGRESSING_COMPLETE, "the rollout does not get ahead; see Degraded".into());
    }
    match workload.rollout() {
        Some(what) => verdict(true, reason::PROGRESSING, what),
        None => verdict(false, reason::PROGRESSING_COMPLETE, "everything is rolled out".into()),
    }
}

struct Degradation {
    verdict: Verdict,
    /// Waiting will not help.
    is_stuck: bool,
}

fn degraded(facts: &Facts, workload: &Workload) -> Degradation {
    let failing = workload.failing_pods();
    let is_stuck = failing.is_some() || workload.deadline_exceeded;
    let verdict = |status, reason, message: String| Verdict::new(condition::DEGRADED, status, reason, message);
    let verdict = if let Some(worst) = facts.problems.iter().min_by_key(|problem| rank(problem.reason)) {
        let all: Vec<&str> = facts.problems.iter().map(|problem| problem.message.as_str()).collect();
        verdict(true, worst.reason, all.join("; "))
    } else if let Some(message) = failing {
        verdict(true, reason::DEGRADED, message)
    } else if workload.ready < workload.desired {
        let message = format!("{} of {} servers are ready", workload.ready, workload.desired);
        verdict(true, reason::DEGRADED, message)
    } else {
        verdict(false, reason::NOT_DEGRADED, "everything is as declared".into())
    };
    Degradation { verdict, is_stuck }
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

fn ready(facts: &Facts, workload: &Workload) -> Verdict {
    let is_ready = workload.desired > 0
        && workload.is_current
        && workload.updated == workload.desired
        && workload.ready >= workload.desired
        && !facts.problems.iter().any(|problem| problem.reason == reason::INVALID);
    if is_ready {
        let message = format!("all {} servers are ready", workload.desired);
        return Verdict::new(condition::READY, true, reason::READY, message);
    }
    let Workload { desired, ready, updated, .. } = workload;
    let message = match desired {
        0 => "scaled to zero".into(),
        _ if !workload.is_current => "a change is being taken up".into(),
        desired => format!("of {desired} servers {updated} are up to date, and {ready} are ready"),
    };
    Verdict::new(condition::READY, false, reason::NOT_READY, message)
}

/// A word or two for `kubectl get`.
fn phase(facts: &Facts, workload: &Workload, verdicts: &[Verdict; 4]) -> &'static str {
    let [available, progressing, degraded, ready] = verdicts;
    match degraded.reason {
        reason::INVALID => return "Invalid",
        reason::SECRET_NOT_FOUND => return "Secret missing",
        reason::NAME_TAKEN => return "Name taken",
        _ => {}
    }
    if facts.paused {
        return "Paused";
    }
    if ready.status && !progressing.status {
        return if degraded.status { "Degraded" } else { "Ready" };
    }
    if progressing.status {
        return "Rolling out";
    }
    match (workload.desired, available.status) {
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
