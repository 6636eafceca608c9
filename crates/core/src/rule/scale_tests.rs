use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use memcached_api::spec::{Autoscaling, GracefulShutdown, Monitoring, PodDisruptionBudget};

use super::*;

fn fields(spec: &MemcachedSpec) -> Vec<String> {
    check(spec).into_iter().map(|violation| violation.field).collect()
}

fn cpu() -> ResourceRequirements {
    let requests = [("cpu".to_owned(), Quantity("100m".into()))].into();
    ResourceRequirements { requests: Some(requests), ..ResourceRequirements::default() }
}

fn autoscaled() -> MemcachedSpec {
    MemcachedSpec {
        resources: Some(cpu()),
        autoscaling: Some(Autoscaling { enabled: true, max_replicas: Some(3), ..Autoscaling::default() }),
        ..MemcachedSpec::default()
    }
}

fn budget(replicas: Option<i32>, min: Option<IntOrString>, max: Option<IntOrString>) -> MemcachedSpec {
    let budget = PodDisruptionBudget { enabled: true, min_available: min, max_unavailable: max };
    MemcachedSpec {
        replicas,
        high_availability: Some(HighAvailability {
            pod_disruption_budget: Some(budget),
            ..HighAvailability::default()
        }),
        ..MemcachedSpec::default()
    }
}

#[test]
fn an_autoscaler_decides_alone() {
    assert_eq!(fields(&autoscaled()), [""; 0]);
    let both = MemcachedSpec { replicas: Some(2), ..autoscaled() };
    assert_eq!(fields(&both), ["spec.replicas"]);
}

#[test]
fn an_autoscaler_needs_sensible_bounds() {
    let mut spec = autoscaled();
    let autoscaling = spec.autoscaling.as_mut().unwrap();
    autoscaling.min_replicas = Some(3);
    assert_eq!(fields(&spec), [""; 0]);
    spec.autoscaling.as_mut().unwrap().min_replicas = Some(4);
    assert_eq!(fields(&spec), ["spec.autoscaling.minReplicas"]);
    spec.autoscaling.as_mut().unwrap().max_replicas = None;
    assert_eq!(fields(&spec), ["spec.autoscaling.maxReplicas"]);
}

#[test]
fn scaling_by_cpu_needs_a_request_on_every_container() {
    let without = MemcachedSpec { resources: None, ..autoscaled() };
    assert_eq!(fields(&without), ["spec.resources.requests.cpu"]);
    let exporter_without =
        MemcachedSpec { monitoring: Some(Monitoring { enabled: true, ..Monitoring::default() }), ..autoscaled() };
    assert_eq!(fields(&exporter_without), ["spec.resources.requests.cpu"]);
    let with_both = MemcachedSpec {
        monitoring: Some(Monitoring { enabled: true, exporter_resources: Some(cpu()), ..Monitoring::default() }),
        ..autoscaled()
    };
    assert_eq!(fields(&with_both), [""; 0]);
}

#[test]
fn a_budget_is_one_number_that_leaves_something_to_disrupt() {
    let int = |n| Some(IntOrString::Int(n));
    let text = |t: &str| Some(IntOrString::String(t.into()));
    assert_eq!(fields(&budget(Some(3), int(2), None)), [""; 0]);
    assert_eq!(fields(&budget(Some(3), None, text("34%"))), [""; 0]);
    for (replicas, min, max) in [
        (Some(3), int(3), None),
        (Some(3), int(1), int(1)),
        (Some(3), None, None),
        (Some(3), text("2"), None),
        (None, None, text("101%")),
    ] {
        let refused = fields(&budget(replicas, min.clone(), max.clone()));
        assert_eq!(refused.len(), 1, "{min:?} {max:?}");
        assert!(refused[0].starts_with("spec.highAvailability.podDisruptionBudget"));
    }
}

#[test]
fn a_pod_lives_longer_than_it_waits() {
    let spec = |grace| MemcachedSpec {
        high_availability: Some(HighAvailability {
            graceful_shutdown: Some(GracefulShutdown {
                enabled: true,
                pre_stop_delay_seconds: 10,
                termination_grace_period_seconds: grace,
            }),
            ..HighAvailability::default()
        }),
        ..MemcachedSpec::default()
    };
    assert_eq!(fields(&spec(11)), [""; 0]);
    assert_eq!(fields(&spec(10)).len(), 1);
}
