//! Who decides how many servers there are, and by what; metrics and behaviour as a HorizontalPodAutoscaler takes them.

use memcached_api::memcached::rule;
use memcached_api::memcached::spec::{Autoscaling, MemcachedSpec, WorkloadType};
use operator_model::autoscaling::{
    check_behavior, check_metrics, is_cpu_utilization, is_cpu_utilization_of, is_memory,
};
use operator_model::pod::resources::requests_cpu;
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec, workload: WorkloadType) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(autoscaling) = spec.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled) else {
        return violations;
    };
    let mut refuse = |rule, numbers: &[i64]| violations.push(Violation::of(rule, numbers));
    if spec.replicas.is_some() {
        refuse(&rule::REPLICAS_OR_AUTOSCALING, &[]);
    }
    match (autoscaling.min_replicas, autoscaling.max_replicas) {
        (_, None) => refuse(&rule::MAX_REPLICAS, &[]),
        (Some(min), Some(max)) if min > max => refuse(&rule::MIN_ABOVE_MAX, &[min.into(), max.into()]),
        _ => {}
    }
    for rule in missing_requests(spec, autoscaling, workload) {
        refuse(rule, &[]);
    }
    let warm = spec.warm_restart.as_ref().is_some_and(|warm| warm.enabled);
    if warm && autoscaling.metrics.iter().any(is_memory) {
        refuse(&rule::WARM_MEMORY, &[]);
    }
    check_autoscaler(spec, autoscaling, &mut violations);
    violations
}

fn check_autoscaler(spec: &MemcachedSpec, autoscaling: &Autoscaling, violations: &mut Vec<Violation>) {
    let has_exporter = spec.monitoring.as_ref().is_some_and(|monitoring| monitoring.enabled);
    let containers: &[&str] = if has_exporter { &["memcached", "exporter"] } else { &["memcached"] };
    let mut errors = FieldErrors::at("spec.autoscaling", violations);
    check_metrics(&mut errors.field("metrics"), &autoscaling.metrics, containers);
    if let Some(behavior) = &autoscaling.behavior {
        check_behavior(&mut errors.field("behavior"), behavior);
    }
}

/// Containers without a request for the CPU that the autoscaler compares with.
fn missing_requests(
    spec: &MemcachedSpec,
    autoscaling: &Autoscaling,
    workload: WorkloadType,
) -> Vec<&'static rule::Rule> {
    // The agent's metrics come from memcached's own container.
    let monitoring = spec.monitoring.as_ref().filter(|monitoring| monitoring.enabled);
    let monitoring = monitoring.filter(|_| workload == WorkloadType::Deployment);
    let metrics = &autoscaling.metrics;
    let on_pods = metrics.is_empty() || metrics.iter().any(is_cpu_utilization);
    let on = |name: &str| on_pods || metrics.iter().any(|metric| is_cpu_utilization_of(metric, name));
    let mut missing = Vec::new();
    if on("memcached") && !requests_cpu(spec.resources.as_ref()) {
        missing.push(&rule::CPU_REQUEST);
    }
    if on("exporter") && monitoring.is_some_and(|monitoring| !requests_cpu(monitoring.exporter_resources.as_ref())) {
        missing.push(&rule::CPU_REQUEST_OF_EXPORTER);
    }
    missing
}

#[cfg(test)]
#[path = "autoscaling_tests.rs"]
mod tests;
