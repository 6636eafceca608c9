//! The second Service, `<name>-client`: what goes with its type.

use super::Rule;

const SERVICE: &str = "spec.service";

/// Without a type there is no second Service to set up.
pub const CLIENT_WITHOUT_TYPE: Rule = Rule::invalid(
    SERVICE,
    ".client",
    "!has(self.client) || has(self.type)",
    "needs spec.service.type: without it there is no second Service",
)
.forbidden();

/// Only a load balancer has sources.
pub const SOURCE_RANGES: Rule = Rule::invalid(
    SERVICE,
    ".client.loadBalancerSourceRanges",
    "!has(self.type) || self.type == 'LoadBalancer' || !has(self.client) \
     || !has(self.client.loadBalancerSourceRanges) || size(self.client.loadBalancerSourceRanges) == 0",
    "only with spec.service.type LoadBalancer",
)
.forbidden();

/// Only a load balancer has a class.
pub const LOAD_BALANCER_CLASS: Rule = Rule::invalid(
    SERVICE,
    ".client.loadBalancerClass",
    "!has(self.type) || self.type == 'LoadBalancer' || !has(self.client) || !has(self.client.loadBalancerClass)",
    "only with spec.service.type LoadBalancer",
)
.forbidden();

/// Only what is reachable from outside has a policy for traffic from there.
pub const EXTERNAL_TRAFFIC: Rule = Rule::invalid(
    SERVICE,
    ".client.externalTrafficPolicy",
    "!has(self.type) || self.type != 'ClusterIP' || !has(self.client) || !has(self.client.externalTrafficPolicy)",
    "only with spec.service.type NodePort or LoadBalancer",
)
.forbidden();

/// Kubernetes never changes the class of a load balancer, and gives one that has none no class later.
pub const CLASS_STAYS: Rule = Rule::invalid(
    "spec",
    ".service.client.loadBalancerClass",
    "!has(oldSelf.service) || !has(oldSelf.service.type) || oldSelf.service.type != 'LoadBalancer' \
     || !has(self.service) || !has(self.service.type) || self.service.type != 'LoadBalancer' \
     || (has(oldSelf.service.client) && has(oldSelf.service.client.loadBalancerClass) \
         ? oldSelf.service.client.loadBalancerClass : '') \
        == (has(self.service.client) && has(self.service.client.loadBalancerClass) \
         ? self.service.client.loadBalancerClass : '')",
    "cannot be changed while spec.service.type is LoadBalancer: use another type first",
);
