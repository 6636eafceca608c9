//! Who may connect, as a NetworkPolicy takes it.

use memcached_api::memcached::spec::MemcachedSpec;
use operator_model::network_policy::check_peers;
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let policy = spec.security.as_ref().and_then(|security| security.network_policy.as_ref());
    let Some(policy) = policy.filter(|policy| policy.enabled) else {
        return violations;
    };
    let mut errors = FieldErrors::at("spec.security.networkPolicy", &mut violations);
    check_peers(&mut errors.field("allowedSources"), &policy.allowed_sources);
    check_peers(&mut errors.field("metricsSources"), &policy.metrics_sources);
    violations
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn sources_are_peers_while_the_policy_is_enabled() {
        for field in ["allowedSources", "metricsSources"] {
            let fields = |is_enabled: bool| {
                let policy = json!({"enabled": is_enabled, field: [{"podSelector": {}}, {}]});
                let spec = serde_json::from_value(json!({"security": {"networkPolicy": policy}})).unwrap();
                check(&spec).into_iter().map(|violation| violation.field).collect::<Vec<_>>()
            };
            assert_eq!(fields(true), [format!("spec.security.networkPolicy.{field}[1]")]);
            assert_eq!(fields(false), [""; 0]);
        }
    }
}
