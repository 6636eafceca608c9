//! The rules of the contract: what cannot work is refused, with the field and the remedy.

mod argument;
mod extstore;
mod item;
mod memory;
mod monitoring;
mod scale;
mod security;

use std::fmt;

use memcached_api::spec::{MemcachedSpec, WorkloadType};

use crate::image;

/// A rule that a declaration breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field, as a path: `spec.memcached.maxItemSize`.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
}

impl Violation {
    fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Every rule that the declaration breaks.
pub fn check(name: &str, spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(check_name(name));
    violations.extend(check_image(spec));
    violations.extend(check_workload(spec));
    violations.extend(memory::check(spec));
    violations.extend(item::check(spec));
    violations.extend(extstore::check(spec));
    violations.extend(argument::check(spec));
    violations.extend(scale::check(spec));
    violations.extend(monitoring::check(spec));
    violations.extend(security::check(spec));
    violations
}

/// The name becomes a Service, which is stricter than a custom resource, and a label.
fn check_name(name: &str) -> Option<Violation> {
    let is_inner = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_good = name.len() <= 52
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && !name.ends_with('-')
        && name.chars().all(is_inner);
    (!is_good).then(|| {
        Violation::new(
            "metadata.name",
            format!(
                "{name:?} cannot be the name of a Service: use up to 52 lower-case letters, digits and '-', \
                 starting with a letter and not ending with '-'"
            ),
        )
    })
}

fn check_image(spec: &MemcachedSpec) -> Option<Violation> {
    let own = spec.image.as_deref().filter(|image| !image.is_empty() && *image != image::DEFAULT)?;
    spec.version.as_ref()?;
    Some(Violation::new("spec.version", format!("not together with spec.image {own:?}: give one of the two")))
}

fn check_workload(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let type_ = spec.workload.as_ref().and_then(|workload| workload.type_).unwrap_or_default();
    if type_ == WorkloadType::StatefulSet {
        violations.push(Violation::new(
            "spec.workload.type",
            "StatefulSet is not available in this version: use Deployment, or leave it out",
        ));
    }
    violations.extend(check_rollout(spec));
    if spec.warm_restart.as_ref().is_some_and(|warm| warm.enabled) {
        let message = match (&spec.extstore, type_) {
            (Some(_), _) => "not together with spec.extstore: memcached cannot keep both across a restart",
            (None, WorkloadType::Deployment) => "needs spec.workload.type StatefulSet: a Deployment replaces its pods",
            (None, WorkloadType::StatefulSet) => return violations,
        };
        violations.push(Violation::new("spec.warmRestart.enabled", message));
    }
    violations
}

/// The API server refuses a Deployment that would call every rollout stuck.
fn check_rollout(spec: &MemcachedSpec) -> Option<Violation> {
    let rollout = spec.workload.as_ref()?.rollout.as_ref()?;
    let (deadline, wait) = (rollout.progress_deadline_seconds?, rollout.min_ready_seconds.unwrap_or(0));
    (deadline <= wait).then(|| {
        Violation::new(
            "spec.workload.rollout.progressDeadlineSeconds",
            format!("{deadline} is not more than minReadySeconds {wait}: every rollout would count as stuck"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_cannot_become_a_service_are_refused() {
        for good in ["a", "sessions-2", &"a".repeat(52)] {
            assert_eq!(check_name(good), None, "{good}");
        }
        for bad in ["", "2nd", "a.b", "A", "a-", &"a".repeat(53)] {
            assert_eq!(check_name(bad).unwrap().field, "metadata.name", "{bad}");
        }
    }

    #[test]
    fn an_image_of_the_users_and_a_version_contradict_each_other() {
        let mut spec = MemcachedSpec { version: Some("1.6.45".into()), ..MemcachedSpec::default() };
        assert_eq!(check_image(&spec), None);
        spec.image = Some(image::DEFAULT.into());
        assert_eq!(check_image(&spec), None);
        spec.image = Some("example.org/memcached:1".into());
        assert_eq!(check_image(&spec).unwrap().field, "spec.version");
    }
}
