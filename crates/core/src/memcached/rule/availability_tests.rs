use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::memcached::spec::{Autoscaling, GracefulShutdown, HighAvailability, PodDisruptionBudget};

use super::*;

fn fields(spec: &MemcachedSpec) -> Vec<String> {
    check(spec).into_iter().map(|violation| violation.field).collect()
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
        (Some(3), int(-1), None),
        (Some(3), None, int(-1)),
        (Some(3), text("100%"), None),
        (Some(3), text("%"), None),
        (None, int(1), None),
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

#[test]
fn an_absent_count_is_one_and_an_autoscalers_is_its_least() {
    let int = |n| Some(IntOrString::Int(n));
    assert_eq!(fields(&budget(None, int(0), None)), [""; 0]);
    assert_eq!(fields(&budget(Some(0), int(1), None)), [""; 0], "none are not disrupted");
    let auto = |min, least| {
        let mut spec = budget(None, int(min), None);
        spec.autoscaling = Some(Autoscaling { enabled: true, min_replicas: least, ..Autoscaling::default() });
        fields(&spec).len()
    };
    assert_eq!((auto(1, Some(2)), auto(2, Some(2)), auto(1, None), auto(0, None)), (0, 1, 1, 0));
}
