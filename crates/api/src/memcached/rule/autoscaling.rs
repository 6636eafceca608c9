//! How many servers, and who decides.

use super::Rule;

/// An autoscaler decides alone.
pub const REPLICAS_OR_AUTOSCALING: Rule = Rule::invalid(
    "spec",
    ".replicas",
    "!has(self.replicas) || !has(self.autoscaling) || !self.autoscaling.enabled",
    "not together with spec.autoscaling.enabled, which decides the number: remove it",
)
.forbidden();

/// An autoscaler has a bound.
pub const MAX_REPLICAS: Rule = Rule::invalid(
    "spec.autoscaling",
    ".maxReplicas",
    "!self.enabled || has(self.maxReplicas)",
    "required when autoscaling is enabled",
)
.required();

/// Bounds are in order.
pub const MIN_ABOVE_MAX: Rule = Rule::invalid(
    "spec.autoscaling",
    ".minReplicas",
    "!self.enabled || !has(self.minReplicas) || !has(self.maxReplicas) || self.minReplicas <= self.maxReplicas",
    "%d is more than maxReplicas %d",
)
.with(&["self.minReplicas", "self.maxReplicas"]);

/// Scaling by CPU utilisation compares with a request. One may also come from a limit: Kubernetes copies it.
pub const CPU_REQUEST: Rule = Rule::invalid(
    "spec",
    ".resources.requests.cpu",
    "!has(self.autoscaling) || !self.autoscaling.enabled \
     || (has(self.autoscaling.metrics) && size(self.autoscaling.metrics) > 0 \
         && !self.autoscaling.metrics.exists(m, has(m.resource) && m.resource.name == 'cpu' \
             && has(m.resource.target.averageUtilization))) \
     || (has(self.resources) \
         && ((has(self.resources.requests) && 'cpu' in self.resources.requests) \
             || (has(self.resources.limits) && 'cpu' in self.resources.limits)))",
    SCALE_BY_CPU,
)
.required();

/// So on the exporter.
pub const CPU_REQUEST_OF_EXPORTER: Rule = Rule::invalid(
    "spec",
    ".monitoring.exporterResources.requests.cpu",
    "!has(self.autoscaling) || !self.autoscaling.enabled || !has(self.monitoring) || !self.monitoring.enabled \
     || (has(self.workload) && has(self.workload.type) && self.workload.type == 'StatefulSet') \
     || (has(self.autoscaling.metrics) && size(self.autoscaling.metrics) > 0 \
         && !self.autoscaling.metrics.exists(m, has(m.resource) && m.resource.name == 'cpu' \
             && has(m.resource.target.averageUtilization))) \
     || (has(self.monitoring.exporterResources) \
         && ((has(self.monitoring.exporterResources.requests) && 'cpu' in self.monitoring.exporterResources.requests) \
             || (has(self.monitoring.exporterResources.limits) && 'cpu' in self.monitoring.exporterResources.limits)))",
    SCALE_BY_CPU,
)
.required();

const SCALE_BY_CPU: &str = "required on every container to scale by CPU utilisation: the autoscaler compares with it";

/// Where memory outlives the server it is not the container's.
pub const WARM_MEMORY: Rule = Rule::invalid(
    "spec",
    ".autoscaling.metrics",
    "!has(self.autoscaling) || !self.autoscaling.enabled || !has(self.warmRestart) || !self.warmRestart.enabled \
     || !has(self.autoscaling.metrics) \
     || !self.autoscaling.metrics.exists(m, (has(m.resource) && m.resource.name == 'memory') \
         || (has(m.containerResource) && m.containerResource.name == 'memory'))",
    "a memory metric does not go with warmRestart: the cache's memory is not the container's there",
);
