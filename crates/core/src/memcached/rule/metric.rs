//! Metrics and behaviour as a HorizontalPodAutoscaler takes them.

use memcached_api::memcached::spec::MemcachedSpec;
use operator_model::autoscaling::{check_behavior, check_metrics};
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(autoscaling) = spec.autoscaling.as_ref().filter(|autoscaling| autoscaling.enabled) else {
        return violations;
    };
    let has_exporter = spec.monitoring.as_ref().is_some_and(|monitoring| monitoring.enabled);
    let containers: &[&str] = if has_exporter { &["memcached", "exporter"] } else { &["memcached"] };
    let mut errors = FieldErrors::at("spec.autoscaling", &mut violations);
    check_metrics(&mut errors.field("metrics"), &autoscaling.metrics, containers);
    if let Some(behavior) = &autoscaling.behavior {
        check_behavior(&mut errors.field("behavior"), behavior);
    }
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(autoscaling: &Value, has_exporter: bool) -> Vec<String> {
        let mut autoscaling = autoscaling.clone();
        autoscaling["enabled"] = json!(true);
        let spec = json!({"autoscaling": autoscaling, "monitoring": {"enabled": has_exporter}});
        check(&serde_json::from_value(spec).unwrap()).into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn the_exporter_is_a_container_only_where_there_is_monitoring() {
        let exporter = json!({"metrics": [{"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "exporter", "target": {"type": "Utilization", "averageUtilization": 1},
        }}]});
        assert_eq!(fields(&exporter, true), [""; 0]);
        assert_eq!(fields(&exporter, false), ["spec.autoscaling.metrics[0].containerResource.container"]);
    }

    #[test]
    fn behaviour_is_within_bounds() {
        let down = json!({"behavior": {"scaleDown": {"selectPolicy": "Most"}}});
        assert_eq!(fields(&down, false), ["spec.autoscaling.behavior.scaleDown.selectPolicy"]);
    }
}
