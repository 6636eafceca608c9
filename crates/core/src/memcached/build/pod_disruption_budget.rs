//! The PodDisruptionBudget.

use k8s_openapi::api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::metadata::{metadata, selector};
use crate::memcached::validate::Validated;

pub fn build_budget(cache: &Validated) -> Option<PodDisruptionBudget> {
    let budget = cache.spec.high_availability.as_ref()?.pod_disruption_budget.as_ref()?;
    if !budget.enabled {
        return None;
    }
    let neither = budget.min_available.is_none() && budget.max_unavailable.is_none();
    Some(PodDisruptionBudget {
        metadata: metadata(cache, &cache.name),
        spec: Some(PodDisruptionBudgetSpec {
            min_available: budget.min_available.clone().or_else(|| neither.then_some(IntOrString::Int(1))),
            max_unavailable: budget.max_unavailable.clone(),
            selector: Some(selector(&cache.name)),
            ..PodDisruptionBudgetSpec::default()
        }),
        status: None,
    })
}
