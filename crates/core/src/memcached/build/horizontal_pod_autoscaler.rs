//! The HorizontalPodAutoscaler, where the declaration leaves the number of servers to one.

use k8s_openapi::api::autoscaling::v2::{
    CrossVersionObjectReference, HPAScalingRules, HorizontalPodAutoscaler, HorizontalPodAutoscalerBehavior,
    HorizontalPodAutoscalerSpec, MetricSpec, MetricTarget, ResourceMetricSource,
};

use super::metadata::metadata;
use crate::memcached::validate::{Scale, Validated};

pub fn build_autoscaler(cache: &Validated) -> Option<HorizontalPodAutoscaler> {
    let Scale::Auto(scale) = &cache.scale else {
        return None;
    };
    let metrics = if scale.metrics.is_empty() { vec![cpu_at_eighty_percent()] } else { scale.metrics.clone() };
    Some(HorizontalPodAutoscaler {
        metadata: metadata(cache, &cache.name),
        spec: Some(HorizontalPodAutoscalerSpec {
            scale_target_ref: CrossVersionObjectReference {
                api_version: Some("apps/v1".into()),
                kind: if cache.has_agent() { "StatefulSet" } else { "Deployment" }.into(),
                name: cache.name.clone(),
            },
            min_replicas: Some(scale.min),
            max_replicas: scale.max,
            metrics: Some(metrics),
            behavior: Some(scale.behavior.clone().unwrap_or_else(slow_to_shrink)),
        }),
        status: None,
    })
}

fn cpu_at_eighty_percent() -> MetricSpec {
    MetricSpec {
        type_: "Resource".into(),
        resource: Some(ResourceMetricSource {
            name: "cpu".into(),
            target: MetricTarget {
                type_: "Utilization".into(),
                average_utilization: Some(80),
                ..MetricTarget::default()
            },
        }),
        ..MetricSpec::default()
    }
}

/// A server that goes takes its part of the cache with it: shrink only after five minutes of agreement.
fn slow_to_shrink() -> HorizontalPodAutoscalerBehavior {
    let rules = HPAScalingRules { stabilization_window_seconds: Some(300), ..HPAScalingRules::default() };
    HorizontalPodAutoscalerBehavior { scale_down: Some(rules), scale_up: None }
}
