//! Disruption budgets and shutdown times that contradict the rest.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::memcached::rule::{self, Rule};
use memcached_api::memcached::spec::{HighAvailability, MemcachedSpec, PodDisruptionBudget};
use operator_model::int_or_percent::is_count_or_percentage;
use operator_model::violation::Violation;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    if let Some(availability) = &spec.high_availability {
        if let Some(budget) = &availability.pod_disruption_budget {
            violations.extend(check_number(&rule::BUDGET_MINIMUM, budget.min_available.as_ref()));
            violations.extend(check_number(&rule::BUDGET_MAXIMUM, budget.max_unavailable.as_ref()));
            violations.extend(check_budget(spec, budget));
        }
        violations.extend(check_shutdown(availability));
    }
    violations
}

/// The fewest servers there may be.
pub fn fewest(spec: &MemcachedSpec) -> i32 {
    match spec.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled) {
        Some(autoscaling) => autoscaling.min_replicas.unwrap_or(1),
        None => spec.replicas.unwrap_or(1),
    }
}

fn check_budget(spec: &MemcachedSpec, budget: &PodDisruptionBudget) -> Option<Violation> {
    if !budget.enabled {
        return None;
    }
    match (&budget.min_available, &budget.max_unavailable) {
        (Some(_), Some(_)) => Some(Violation::of(&rule::BUDGET_OF_BOTH, &[])),
        (None, None) => Some(Violation::of(&rule::BUDGET_OF_NEITHER, &[])),
        (Some(IntOrString::Int(min)), None) => {
            let fewest = fewest(spec);
            // Where there are none, none are disrupted.
            let is_scaled = spec.autoscaling.as_ref().is_some_and(|autoscaling| autoscaling.enabled);
            let leaves_none = *min >= fewest && (is_scaled || fewest != 0);
            leaves_none.then(|| Violation::of(&rule::BUDGET_LEAVES_NONE, &[fewest.into()]))
        }
        (Some(IntOrString::String(text)), None) => {
            (text == "100%").then(|| Violation::of(&rule::BUDGET_LEAVES_NO_PART, &[]))
        }
        (None, Some(_)) => None,
    }
}

fn check_number(rule: &Rule, number: Option<&IntOrString>) -> Option<Violation> {
    (!is_count_or_percentage(number?)).then(|| Violation::of(rule, &[]))
}

fn check_shutdown(availability: &HighAvailability) -> Option<Violation> {
    let shutdown = availability.graceful_shutdown.as_ref().filter(|shutdown| shutdown.enabled)?;
    let (grace, delay) = (shutdown.termination_grace_period_seconds, shutdown.pre_stop_delay_seconds);
    (grace <= delay).then(|| Violation::of(&rule::GRACE, &[grace, delay]))
}

#[cfg(test)]
#[path = "availability_tests.rs"]
mod tests;
