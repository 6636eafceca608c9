//! The second Service as Kubernetes takes it.

use memcached_api::memcached::rule;
use memcached_api::memcached::spec::{ClientService, MemcachedSpec, Service, ServiceType};

use operator_model::metadata::check_annotations;
use operator_model::name::is_key;
use operator_model::range::Range;
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let Some(Service { type_, client: Some(client), annotations: _ }) = &spec.service else {
        return violations;
    };
    violations.extend(check_type(*type_, client));
    let mut errors = FieldErrors::at("spec.service.client", &mut violations);
    check_annotations(&mut errors.field("annotations"), &client.annotations);
    if let Some(class) = client.load_balancer_class.as_deref() {
        let message = format!("{class:?} is no name of a class: give for example example.com/internal");
        errors.field("loadBalancerClass").require(is_key(class), message);
    }
    for (index, range) in client.load_balancer_source_ranges.iter().enumerate() {
        let message = format!("{range:?} is no range of addresses: give for example 10.0.0.0/8");
        errors.field("loadBalancerSourceRanges").index(index).require(Range::of(range).is_some(), message);
    }
    violations
}

/// What does not go with the type.
fn check_type(type_: Option<ServiceType>, client: &ClientService) -> Vec<Violation> {
    let Some(type_) = type_ else {
        return vec![Violation::of(&rule::CLIENT_WITHOUT_TYPE, &[])];
    };
    let is_balanced = type_ == ServiceType::LoadBalancer;
    let ranges = !is_balanced && !client.load_balancer_source_ranges.is_empty();
    let class = !is_balanced && client.load_balancer_class.is_some();
    let external = type_ == ServiceType::ClusterIP && client.external_traffic_policy.is_some();
    let broken =
        [(ranges, &rule::SOURCE_RANGES), (class, &rule::LOAD_BALANCER_CLASS), (external, &rule::EXTERNAL_TRAFFIC)];
    broken.into_iter().filter(|(is_broken, _)| *is_broken).map(|(_, rule)| Violation::of(rule, &[])).collect()
}

/// What a change breaks: a load balancer keeps its class.
pub fn check_update(old: &MemcachedSpec, new: &MemcachedSpec) -> Option<Violation> {
    let class = |spec: &MemcachedSpec| {
        let service = spec.service.clone().filter(|service| service.type_ == Some(ServiceType::LoadBalancer))?;
        Some(service.client.unwrap_or_default().load_balancer_class)
    };
    let is_changed = class(old).zip(class(new)).is_some_and(|(old, new)| old != new);
    is_changed.then(|| Violation::of(&rule::CLASS_STAYS, &[]))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(client: &Value) -> Vec<String> {
        let spec = json!({"service": {"type": "LoadBalancer", "client": client}});
        let found = check(&serde_json::from_value(spec).unwrap());
        found.into_iter().map(|violation| violation.field.replace("spec.service.client.", "")).collect()
    }

    #[test]
    fn the_second_service_is_one_that_kubernetes_takes() {
        let good = json!({
            "annotations": {"example.com/internal": "true"}, "loadBalancerClass": "example.com/internal",
            "loadBalancerSourceRanges": ["10.1.2.3/8", "2001:db8::/32"], "externalTrafficPolicy": "Local",
            "internalTrafficPolicy": "Cluster",
        });
        assert_eq!(fields(&good), [""; 0]);
        for (bad, field) in [
            (json!({"annotations": {"": "x"}}), "annotations"),
            (json!({"loadBalancerClass": ""}), "loadBalancerClass"),
            (json!({"loadBalancerClass": "a b"}), "loadBalancerClass"),
            (json!({"loadBalancerSourceRanges": ["10.0.0.0/8", "10.0.0.1"]}), "loadBalancerSourceRanges[1]"),
        ] {
            assert_eq!(fields(&bad), [field], "{bad}");
        }
    }
}
