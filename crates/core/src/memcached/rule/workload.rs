//! Names, images and what runs the pods.

use memcached_api::Memcached;
use memcached_api::memcached::rule;
use memcached_api::memcached::spec::{MemcachedSpec, Rollout, Workload, WorkloadType};

use crate::memcached::pod_defaults::DEFAULT_IMAGE;
use operator_model::image;
use operator_model::name::is_dns_label;
use operator_model::violation::{FieldErrors, Violation};

pub fn check(name: &str, spec: &MemcachedSpec, workload: WorkloadType) -> Vec<Violation> {
    let mut violations = Vec::new();
    violations.extend(check_name(name, spec, workload));
    violations.extend(check_image(spec));
    violations.extend(check_rollout(spec));
    violations.extend(check_pace(spec));
    violations.extend(check_expansion(spec, workload));
    if spec.warm_restart.as_ref().is_some_and(|warm| warm.enabled) {
        match (&spec.extstore, workload) {
            (Some(_), _) => violations.push(Violation::of(&rule::WARM_AND_DISK, &[])),
            (None, WorkloadType::StatefulSet) => {}
            (None, WorkloadType::Deployment) => violations.push(Violation::of(&rule::WARM_DEPLOYMENT, &[])),
        }
    }
    violations
}

fn type_of(spec: &MemcachedSpec) -> Option<WorkloadType> {
    spec.workload.as_ref().and_then(|workload| workload.type_)
}

/// What a change breaks: what runs the pods stays. Where it was not said, the status says what there is, which is a
/// Deployment if it does not: to write that down is no change, and to leave it out again neither.
pub fn check_update(old: &Memcached, new: &Memcached) -> Option<Violation> {
    let told = || new.status.as_ref().and_then(|status| status.workload_type);
    let running = type_of(&old.spec).or_else(told).unwrap_or_default();
    let stays = type_of(&new.spec).is_none_or(|new| new == running);
    (!stays).then(other_workload)
}

/// Something else runs the pods than is declared.
pub fn other_workload() -> Violation {
    Violation::of(&rule::WORKLOAD_TYPE, &[])
}

/// The name becomes a Service, which is stricter than a custom resource, and a label. A StatefulSet's becomes a label
/// together with a hash, and the second Service's is longer.
fn check_name(name: &str, spec: &MemcachedSpec, workload: WorkloadType) -> Option<Violation> {
    let has_client = spec.service.as_ref().is_some_and(|service| service.type_.is_some());
    let longest = match workload {
        WorkloadType::StatefulSet => 52,
        WorkloadType::Deployment if has_client => 56,
        WorkloadType::Deployment => 63,
    };
    let is_good = is_dns_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase()) && name.len() <= longest;
    (!is_good).then(|| Violation::of(&rule::NAME, &[i64::try_from(longest).unwrap_or_default()]))
}

fn check_image(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let own = spec.image.as_deref().filter(|image| !image.is_empty());
    let exporter = spec.monitoring.as_ref().and_then(|monitoring| monitoring.exporter_image.as_deref());
    let exporter = exporter.filter(|image| !image.is_empty());
    for (field, image) in [("spec.image", own), ("spec.monitoring.exporterImage", exporter)] {
        if let Some(image) = image.filter(|image| !image::is_reference(image)) {
            let message = format!("{image:?} is no image: give for example memcached:1.6");
            violations.push(Violation::new(field, message));
        }
    }
    if let Some(version) = &spec.version {
        if own.is_some_and(|image| image != DEFAULT_IMAGE) {
            violations.push(Violation::of(&rule::IMAGE_AND_VERSION, &[]));
        }
        if !image::is_tag(version) {
            let message = format!("{version:?} cannot be the tag of an image: give for example 1.6.45");
            violations.push(Violation::new("spec.version", message));
        }
    }
    violations
}

/// The kubelet expands variables in a container's arguments; what the agent is ordered to run it with is literal.
fn check_expansion(spec: &MemcachedSpec, workload: WorkloadType) -> Vec<Violation> {
    let words = spec.memcached.iter().flat_map(|server| &server.extra_args).enumerate();
    let expanded = words.filter(|(_, word)| workload == WorkloadType::StatefulSet && word.contains("$("));
    let message = "variables are not expanded in a StatefulSet: write their values";
    expanded.map(|(index, _)| Violation::new(format!("spec.memcached.extraArgs[{index}]"), message)).collect()
}

/// How fast the operator goes itself.
fn check_pace(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(rollout) = spec.workload.as_ref().and_then(|workload| workload.rollout.as_ref()) else {
        return violations;
    };
    let mut errors = FieldErrors::at("spec.workload.rollout", &mut violations);
    errors.field("maxUnavailable").require_within(rollout.max_unavailable.map(i64::from), 1, 64);
    errors.field("pauseSeconds").require_within(rollout.pause_seconds.map(i64::from), 0, 3600);
    violations
}

/// The API server refuses a Deployment that would call every rollout stuck.
fn check_rollout(spec: &MemcachedSpec) -> Option<Violation> {
    let Workload { type_: _, rollout } = spec.workload.as_ref()?;
    let Rollout { min_ready_seconds, progress_deadline_seconds, max_unavailable: _, pause_seconds: _ } =
        rollout.as_ref()?;
    let (deadline, wait) = ((*progress_deadline_seconds)?, (*min_ready_seconds)?);
    (deadline <= wait).then(|| Violation::of(&rule::DEADLINE, &[deadline.into(), wait.into()]))
}

#[cfg(test)]
mod tests {
    use WorkloadType::{Deployment, StatefulSet};
    use memcached_api::memcached::MemcachedStatus;
    use memcached_api::memcached::spec::{Service, ServiceType};

    use super::*;

    fn with_type(type_: Option<WorkloadType>) -> MemcachedSpec {
        MemcachedSpec { workload: Some(Workload { type_, rollout: None }), ..MemcachedSpec::default() }
    }

    #[test]
    fn names_that_cannot_become_a_service_are_refused() {
        let plain = MemcachedSpec::default();
        for good in ["a", "sessions-2", &"a".repeat(63)] {
            assert_eq!(check_name(good, &plain, Deployment), None, "{good}");
        }
        for bad in ["", "2nd", "a.b", "A", "a-", &"a".repeat(64)] {
            assert_eq!(check_name(bad, &plain, Deployment).unwrap().field, "metadata.name", "{bad}");
        }
    }

    #[test]
    fn names_leave_room_for_what_is_made_of_them() {
        let plain = MemcachedSpec::default();
        let client = Service { type_: Some(ServiceType::ClusterIP), ..Service::default() };
        let client = MemcachedSpec { service: Some(client), ..MemcachedSpec::default() };
        for (spec, workload, longest) in [(plain, StatefulSet, 52), (client, Deployment, 56)] {
            assert_eq!(check_name(&"a".repeat(longest), &spec, workload), None);
            let refused = check_name(&"a".repeat(longest + 1), &spec, workload).unwrap();
            assert!(refused.message.contains(&longest.to_string()));
        }
    }

    #[test]
    fn an_image_of_the_users_and_a_version_contradict_each_other() {
        let mut spec = MemcachedSpec { version: Some("1.6.45".into()), ..MemcachedSpec::default() };
        assert_eq!(check_image(&spec), []);
        spec.image = Some(DEFAULT_IMAGE.into());
        assert_eq!(check_image(&spec), []);
        spec.image = Some("example.org/memcached:1".into());
        assert_eq!(check_image(&spec)[0].field, "spec.version");
    }

    #[test]
    fn images_and_versions_are_spelled_right() {
        let fields = |spec: &MemcachedSpec| check_image(spec).into_iter().map(|v| v.field).collect::<Vec<_>>();
        let spec = MemcachedSpec { image: Some("memcached 1.6".into()), ..MemcachedSpec::default() };
        assert_eq!(fields(&spec), ["spec.image"]);
        let spec = MemcachedSpec { version: Some("1.6:45".into()), ..MemcachedSpec::default() };
        assert_eq!(fields(&spec), ["spec.version"]);
    }

    #[test]
    fn what_runs_the_pods_stays() {
        let cache = |type_, running| {
            let status = Some(MemcachedStatus { workload_type: running, ..MemcachedStatus::default() });
            Memcached { status, ..Memcached::new("a", with_type(type_)) }
        };
        let is_refused = |old, new, running| check_update(&cache(old, running), &cache(new, running)).is_some();
        assert!(!is_refused(Some(Deployment), Some(Deployment), None));
        assert!(is_refused(Some(Deployment), Some(StatefulSet), Some(Deployment)));
        assert!(is_refused(Some(StatefulSet), Some(Deployment), Some(StatefulSet)));
        assert!(!is_refused(Some(StatefulSet), None, Some(StatefulSet)), "what there is goes on");
        assert!(!is_refused(None, Some(Deployment), None), "writing down what there is");
        assert!(!is_refused(None, Some(StatefulSet), Some(StatefulSet)), "writing down what there is");
        assert!(is_refused(None, Some(StatefulSet), None), "what there is, is a Deployment");
        assert!(is_refused(None, Some(Deployment), Some(StatefulSet)));
        assert!(!is_refused(None, None, None));
    }
}
