//! Replicas, autoscaling, disruption budgets and shutdown times that contradict each other.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::spec::{HighAvailability, MemcachedSpec};

use super::Violation;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = check_autoscaling(spec);
    if let Some(availability) = &spec.high_availability {
        violations.extend(check_budget(spec, availability));
        violations.extend(check_shutdown(availability));
    }
    violations
}

fn check_autoscaling(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(autoscaling) = spec.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled) else {
        return violations;
    };
    let mut refuse = |field: &str, message: String| violations.push(Violation::new(field, message));
    if spec.replicas.is_some() {
        let message = "not together with spec.autoscaling.enabled, which decides the number: remove it";
        refuse("spec.replicas", message.into());
    }
    match autoscaling.max_replicas {
        None => refuse("spec.autoscaling.maxReplicas", "required when autoscaling is enabled".into()),
        Some(max) => {
            let min = autoscaling.min_replicas.unwrap_or(1);
            if min > max {
                refuse("spec.autoscaling.minReplicas", format!("{min} is more than maxReplicas {max}"));
            }
        }
    }
    let on_cpu = autoscaling.metrics.iter().any(|metric| is_utilization(metric, "cpu"));
    if (on_cpu || autoscaling.metrics.is_empty()) && !requests_cpu(spec) {
        refuse(
            "spec.resources.requests.cpu",
            "required on every container to scale by CPU utilisation: the autoscaler compares with it".into(),
        );
    }
    let warm = spec.warm_restart.as_ref().is_some_and(|warm| warm.enabled);
    if warm && autoscaling.metrics.iter().any(|metric| is_resource(metric, "memory")) {
        refuse(
            "spec.autoscaling.metrics",
            "a memory metric does not go with warmRestart: the cache's memory is not the container's there".into(),
        );
    }
    violations
}

fn is_resource(metric: &k8s_openapi::api::autoscaling::v2::MetricSpec, name: &str) -> bool {
    metric.resource.as_ref().is_some_and(|resource| resource.name == name)
}

fn is_utilization(metric: &k8s_openapi::api::autoscaling::v2::MetricSpec, name: &str) -> bool {
    is_resource(metric, name) && metric.resource.as_ref().is_some_and(|r| r.target.average_utilization.is_some())
}

/// A request may also come from a limit: Kubernetes copies it.
fn requests_cpu(spec: &MemcachedSpec) -> bool {
    let has_cpu = |resources: Option<&k8s_openapi::api::core::v1::ResourceRequirements>| {
        resources.is_some_and(|r| [&r.requests, &r.limits].into_iter().flatten().any(|map| map.contains_key("cpu")))
    };
    let monitoring = spec.monitoring.as_ref().filter(|monitoring| monitoring.enabled);
    has_cpu(spec.resources.as_ref()) && monitoring.is_none_or(|m| has_cpu(m.exporter_resources.as_ref()))
}

fn check_budget(spec: &MemcachedSpec, availability: &HighAvailability) -> Option<Violation> {
    const PATH: &str = "spec.highAvailability.podDisruptionBudget";
    let budget = availability.pod_disruption_budget.as_ref().filter(|budget| budget.enabled)?;
    let refuse = |field: &str, message: String| Some(Violation::new(format!("{PATH}.{field}"), message));
    match (&budget.min_available, &budget.max_unavailable) {
        (Some(_), Some(_)) => refuse("maxUnavailable", "not together with minAvailable: give one of the two".into()),
        (None, None) => Some(Violation::new(PATH, "give one of minAvailable and maxUnavailable")),
        (Some(IntOrString::Int(min)), None) => {
            let replicas = spec.replicas.filter(|count| *count > 0)?;
            let message = format!("{min} leaves none of {replicas} replicas to disrupt: at most {}", replicas - 1);
            (*min >= replicas).then(|| Violation::new(format!("{PATH}.minAvailable"), message))
        }
        (Some(IntOrString::String(text)), None) => check_percentage(PATH, "minAvailable", text),
        (None, Some(IntOrString::String(text))) => check_percentage(PATH, "maxUnavailable", text),
        (None, Some(IntOrString::Int(_))) => None,
    }
}

fn check_percentage(path: &str, field: &str, text: &str) -> Option<Violation> {
    let number = text.strip_suffix('%').and_then(|number| number.parse::<u8>().ok());
    let is_good = number.is_some_and(|number| number <= 100);
    (!is_good).then(|| {
        Violation::new(format!("{path}.{field}"), format!("{text:?} is neither a number nor a percentage up to 100%"))
    })
}

fn check_shutdown(availability: &HighAvailability) -> Option<Violation> {
    let shutdown = availability.graceful_shutdown.as_ref().filter(|shutdown| shutdown.enabled)?;
    let (grace, delay) = (shutdown.termination_grace_period_seconds, shutdown.pre_stop_delay_seconds);
    (grace <= delay).then(|| {
        Violation::new(
            "spec.highAvailability.gracefulShutdown.terminationGracePeriodSeconds",
            format!("{grace} is not more than preStopDelaySeconds {delay}: the server would be killed while it waits"),
        )
    })
}

#[cfg(test)]
#[path = "scale_tests.rs"]
mod tests;
