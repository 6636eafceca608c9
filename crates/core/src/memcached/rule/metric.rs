//! Metrics and behaviour as a HorizontalPodAutoscaler takes them.

use k8s_openapi::api::autoscaling::v2::{
    HPAScalingRules, HorizontalPodAutoscalerBehavior, MetricIdentifier, MetricSpec, MetricTarget,
};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use memcached_api::memcached::spec::MemcachedSpec;

use super::syntax::check_selector;
use operator_model::quantity::billionths;
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(autoscaling) = spec.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled) else {
        return violations;
    };
    let has_exporter = spec.monitoring.as_ref().is_some_and(|monitoring| monitoring.enabled);
    let mut errors = FieldErrors::at("spec.autoscaling", &mut violations);
    for (index, metric) in autoscaling.metrics.iter().enumerate() {
        check_metric(&mut errors.field("metrics").index(index), metric, has_exporter);
    }
    if let Some(HorizontalPodAutoscalerBehavior { scale_down, scale_up }) = &autoscaling.behavior {
        for (field, rules) in [("behavior.scaleDown", scale_down), ("behavior.scaleUp", scale_up)] {
            if let Some(rules) = rules {
                check_rules(&mut errors.field(field), rules);
            }
        }
    }
    violations
}

fn check_metric(errors: &mut FieldErrors<'_>, metric: &MetricSpec, has_exporter: bool) {
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
        let is_there = source.container == "memcached" || (has_exporter && source.container == "exporter");
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
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(autoscaling: &Value) -> Vec<String> {
        let mut autoscaling = autoscaling.clone();
        autoscaling["enabled"] = json!(true);
        let spec = serde_json::from_value(json!({"autoscaling": autoscaling})).unwrap();
        check(&spec).into_iter().map(|violation| violation.field.replace("spec.autoscaling.", "")).collect()
    }

    #[test]
    fn a_metric_has_the_source_and_the_target_that_it_says() {
        let cpu =
            |target: Value| json!({"metrics": [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]});
        assert_eq!(fields(&cpu(json!({"type": "Utilization", "averageUtilization": 80}))), [""; 0]);
        assert_eq!(fields(&cpu(json!({"type": "AverageValue", "averageValue": "500m"}))), [""; 0]);
        for bad in [
            json!({"type": "Utilization"}),
            json!({"type": "Utilization", "averageValue": "1"}),
            json!({"type": "Value", "value": "1"}),
        ] {
            assert!(fields(&cpu(bad.clone())).iter().any(|f| f.starts_with("metrics[0].resource.target")), "{bad}");
        }
        assert_eq!(fields(&json!({"metrics": [{"type": "Pods"}]})), ["metrics[0].type"]);
        let exporter = json!({"metrics": [{"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "exporter", "target": {"type": "Utilization", "averageUtilization": 1},
        }}]});
        assert_eq!(fields(&exporter), ["metrics[0].containerResource.container"]);
    }

    #[test]
    fn behaviour_is_within_bounds() {
        let down = |rules: Value| json!({"behavior": {"scaleDown": rules}});
        let policy = json!({"type": "Pods", "value": 1, "periodSeconds": 60});
        assert_eq!(fields(&down(json!({"stabilizationWindowSeconds": 3600, "policies": [policy]}))), [""; 0]);
        for (bad, field) in [
            (json!({"stabilizationWindowSeconds": 3601}), "stabilizationWindowSeconds"),
            (json!({"selectPolicy": "Most"}), "selectPolicy"),
            (json!({"policies": []}), "policies"),
            (json!({"policies": [{"type": "Pods", "value": 0, "periodSeconds": 60}]}), "policies[0].value"),
            (json!({"policies": [{"type": "Pods", "value": 1, "periodSeconds": 1801}]}), "policies[0].periodSeconds"),
        ] {
            assert_eq!(fields(&down(bad.clone())), [format!("behavior.scaleDown.{field}")], "{bad}");
        }
    }
}
