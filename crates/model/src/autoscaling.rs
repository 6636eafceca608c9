//! Metrics and behaviour as a HorizontalPodAutoscaler takes them.

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscalerBehavior, MetricIdentifier, MetricSpec, MetricTarget,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::quantity::billionths;
use crate::selector::check_selector;
use crate::violation::FieldErrors;

/// Metrics to scale by; `containers` are those that the pods have.
pub fn check_metrics(errors: &mut FieldErrors<'_>, metrics: &[MetricSpec], containers: &[&str]) {
    for (index, metric) in metrics.iter().enumerate() {
        check_metric(&mut errors.index(index), metric, containers);
    }
}

/// How fast to scale, in both directions.
pub fn check_behavior(errors: &mut FieldErrors<'_>, behavior: &HorizontalPodAutoscalerBehavior) {
    let HorizontalPodAutoscalerBehavior { scale_down, scale_up } = behavior;
    for (field, rules) in [("scaleDown", scale_down), ("scaleUp", scale_up)] {
        if let Some(rules) = rules {
            check_rules(&mut errors.field(field), rules);
        }
    }
}

/// Whether a metric is about memory, of pods or of one container.
pub fn is_memory(metric: &MetricSpec) -> bool {
    metric.resource.as_ref().is_some_and(|resource| resource.name == "memory")
        || metric.container_resource.as_ref().is_some_and(|resource| resource.name == "memory")
}

/// Whether a metric compares the CPU of pods with what all their containers request.
pub fn is_cpu_utilization(metric: &MetricSpec) -> bool {
    metric.resource.as_ref().is_some_and(|r| r.name == "cpu" && r.target.average_utilization.is_some())
}

/// Whether a metric compares the CPU of this container with what it requests.
pub fn is_cpu_utilization_of(metric: &MetricSpec, container: &str) -> bool {
    metric
        .container_resource
        .as_ref()
        .is_some_and(|r| r.container == container && r.name == "cpu" && r.target.average_utilization.is_some())
}

fn check_metric(errors: &mut FieldErrors<'_>, metric: &MetricSpec, containers: &[&str]) {
    let MetricSpec { type_, container_resource, external, object, pods, resource } = metric;
    let given = [
        ("Resource", resource.is_some()),
        ("ContainerResource", container_resource.is_some()),
        ("Pods", pods.is_some()),
        ("Object", object.is_some()),
        ("External", external.is_some()),
    ];
    let given: Vec<&str> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
    let message = format!("{type_:?} does not say what is given: {}", given.join(", "));
    errors.field("type").require(given == [type_.as_str()], message);
    if let Some(source) = resource {
        errors.field("resource.name").require(!source.name.is_empty(), "required");
        check_target(&mut errors.field("resource.target"), &source.target, &["Utilization", "AverageValue"]);
    }
    if let Some(source) = container_resource {
        errors.field("containerResource.name").require(!source.name.is_empty(), "required");
        let is_there = containers.contains(&source.container.as_str());
        let message = format!("there is no container {:?}", source.container);
        errors.field("containerResource.container").require(is_there, message);
        check_target(&mut errors.field("containerResource.target"), &source.target, &["Utilization", "AverageValue"]);
    }
    if let Some(source) = pods {
        check_name(&mut errors.field("pods.metric"), &source.metric);
        check_target(&mut errors.field("pods.target"), &source.target, &["AverageValue"]);
    }
    if let Some(source) = object {
        check_name(&mut errors.field("object.metric"), &source.metric);
        check_target(&mut errors.field("object.target"), &source.target, &["Value", "AverageValue"]);
        let target = &source.described_object;
        let is_named = !target.kind.is_empty() && !target.name.is_empty();
        errors.field("object.describedObject").require(is_named, "give a kind and a name");
    }
    if let Some(source) = external {
        check_name(&mut errors.field("external.metric"), &source.metric);
        check_target(&mut errors.field("external.target"), &source.target, &["Value", "AverageValue"]);
    }
}

fn check_name(errors: &mut FieldErrors<'_>, metric: &MetricIdentifier) {
    let is_step =
        !metric.name.is_empty() && !metric.name.contains(['/', '%']) && metric.name != "." && metric.name != "..";
    errors.field("name").require(is_step, format!("{:?} cannot be the name of a metric", metric.name));
    check_selector(&mut errors.field("selector"), metric.selector.as_ref());
}

/// A target has the one number that its type says, and it is more than nothing.
fn check_target(errors: &mut FieldErrors<'_>, target: &MetricTarget, allowed: &[&str]) {
    let MetricTarget { type_, average_utilization, average_value, value } = target;
    errors.field("type").require_one_of(Some(type_), allowed);
    let given = [
        ("Utilization", average_utilization.is_some()),
        ("AverageValue", average_value.is_some()),
        ("Value", value.is_some()),
    ];
    let given: Vec<&str> = given.into_iter().filter(|(_, is_given)| *is_given).map(|(name, _)| name).collect();
    errors.require(given == [type_.as_str()], format!("{type_} takes exactly the number of that name"));
    let is_positive = |amount: &Quantity| billionths(amount).is_some_and(|amount| amount > 0);
    errors
        .field("averageUtilization")
        .require(average_utilization.is_none_or(|percent| percent > 0), "give more than 0");
    errors.field("averageValue").require(average_value.as_ref().is_none_or(is_positive), "give more than 0");
    errors.field("value").require(value.as_ref().is_none_or(is_positive), "give more than 0");
}

fn check_rules(errors: &mut FieldErrors<'_>, rules: &HPAScalingRules) {
    let HPAScalingRules { policies, select_policy, stabilization_window_seconds, tolerance } = rules;
    let window = stabilization_window_seconds.map(i64::from);
    errors.field("stabilizationWindowSeconds").require_within(window, 0, 3600);
    errors.field("selectPolicy").require_one_of(select_policy.as_deref(), &["Max", "Min", "Disabled"]);
    let is_empty = policies.as_ref().is_some_and(Vec::is_empty);
    errors.field("policies").require(!is_empty, "give at least one, or leave it out");
    let is_amount = tolerance.as_ref().is_none_or(|tolerance| billionths(tolerance).is_some());
    errors.field("tolerance").require(is_amount, "is no amount: give for example 0.1");
    for (index, policy) in policies.iter().flatten().enumerate() {
        let mut errors = errors.field("policies");
        let mut errors = errors.index(index);
        errors.field("type").require_one_of(Some(&policy.type_), &["Pods", "Percent"]);
        errors.field("value").require(policy.value > 0, "give more than 0");
        errors.field("periodSeconds").require_within(Some(i64::from(policy.period_seconds)), 1, 1800);
    }
}

#[cfg(test)]
#[path = "autoscaling_tests.rs"]
mod tests;
