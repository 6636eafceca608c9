//! Who can reach a cache and should perhaps not.

use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use memcached_api::memcached::reason;
use memcached_api::memcached::spec::{ServiceType, TlsMode};
use operator_model::range::Range;

use super::Warning;
use crate::memcached::validate::Validated;

pub fn warnings(cache: &Validated) -> impl Iterator<Item = Warning> {
    [load_balancer(cache), plaintext(cache), network_policy(cache)].into_iter().flatten()
}

/// On most clouds a load balancer is public unless it is told otherwise.
fn load_balancer(cache: &Validated) -> Option<Warning> {
    let service = cache.spec.service.as_ref().filter(|service| service.type_ == Some(ServiceType::LoadBalancer))?;
    let ranges = service.client.iter().flat_map(|client| &client.load_balancer_source_ranges);
    let mut ranges = ranges.filter_map(|range| Range::of(range)).peekable();
    let is_limited = ranges.peek().is_some() && !ranges.any(|range| range.is_everything());
    let is_authenticated = cache.sasl.is_some() || cache.tls.as_ref().is_some_and(|tls| tls.client_certificates);
    (!is_limited && !is_authenticated).then(|| Warning {
        reason: reason::LOAD_BALANCER_OPEN,
        field: "spec.service.type",
        message:
            "everybody who can reach the load balancer can use the cache, on most clouds the whole internet: turn on \
                  security.sasl or client certificates, or limit service.client.loadBalancerSourceRanges"
                .into(),
    })
}

fn plaintext(cache: &Validated) -> Option<Warning> {
    cache.tls.as_ref().filter(|tls| tls.mode == TlsMode::Alongside).map(|_| Warning {
        reason: reason::PLAINTEXT_SERVED,
        field: "spec.security.tls.mode",
        message: "Alongside still serves plaintext on 11211: use Required once all clients speak TLS".into(),
    })
}

fn network_policy(cache: &Validated) -> Option<Warning> {
    let sources = &cache.network_policy.as_ref()?.allowed_sources;
    (sources.is_empty() || sources.iter().any(is_everybody)).then(|| Warning {
        reason: reason::NETWORK_POLICY_OPEN,
        field: "spec.security.networkPolicy.allowedSources",
        message: "lets everybody in: name the pods, namespaces or addresses of the clients".into(),
    })
}

/// Whether a source is every address, or every pod of the cluster.
fn is_everybody(peer: &NetworkPolicyPeer) -> bool {
    let NetworkPolicyPeer { ip_block, namespace_selector, pod_selector } = peer;
    let is_every_address = ip_block.as_ref().is_some_and(|block| {
        let is_whole = block.except.as_ref().is_none_or(Vec::is_empty);
        is_whole && Range::of(&block.cidr).is_some_and(|range| range.is_everything())
    });
    let is_every_pod = namespace_selector.as_ref().is_some_and(|namespaces| *namespaces == LabelSelector::default())
        && pod_selector.as_ref().is_none_or(|pods| *pods == LabelSelector::default());
    is_every_address || is_every_pod
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::memcached::fixture::memcached;
    use crate::memcached::validate::validate;

    fn reasons(spec: &Value) -> Vec<&'static str> {
        let spec = serde_json::from_value(spec.clone()).unwrap();
        warnings(&validate(&memcached(|it| *it = spec)).unwrap()).map(|warning| warning.reason).collect()
    }

    fn balanced(client: &Value, security: &Value) -> Value {
        json!({"service": {"type": "LoadBalancer", "client": client}, "security": security})
    }

    #[test]
    fn a_load_balancer_needs_authentication_or_ranges() {
        let (plain, open) = (json!({}), ["LoadBalancerOpen"]);
        let ranges = |ranges: &[&str]| json!({"loadBalancerSourceRanges": ranges});
        assert_eq!(reasons(&balanced(&plain, &plain)), open);
        assert_eq!(reasons(&balanced(&ranges(&["10.0.0.0/8", "0.0.0.0/0"]), &plain)), open);
        let encrypted = json!({"tls": {
            "enabled": true, "mode": "Required", "certificateSecretRef": {"name": "certs"},
        }});
        assert_eq!(reasons(&balanced(&plain, &encrypted)), open, "encryption asks nobody who they are");
        assert_eq!(reasons(&balanced(&ranges(&["10.0.0.0/8"]), &plain)), [""; 0]);
        let passwords = json!({"sasl": {"enabled": true, "credentialsSecretRef": {"name": "passwords"}}});
        assert_eq!(reasons(&balanced(&plain, &passwords)), [""; 0]);
        let certificates = json!({"tls": {
            "enabled": true, "enableClientCert": true, "certificateSecretRef": {"name": "certs"},
        }});
        assert_eq!(reasons(&balanced(&plain, &certificates)), [""; 0]);
        assert_eq!(reasons(&json!({"service": {"type": "ClusterIP"}})), [""; 0]);
    }

    #[test]
    fn plaintext_beside_tls_is_told() {
        let tls = |mode: Value| {
            let tls = json!({"enabled": true, "mode": mode, "certificateSecretRef": {"name": "certs"}});
            json!({"security": {"tls": tls}})
        };
        assert_eq!(reasons(&tls(json!("Alongside"))), ["PlaintextServed"]);
        assert_eq!(reasons(&tls(json!(null))), ["PlaintextServed"], "it is the default");
        assert_eq!(reasons(&tls(json!("Required"))), [""; 0]);
    }

    #[test]
    fn a_network_policy_that_lets_everybody_in_is_told() {
        let policy =
            |sources: Value| json!({"security": {"networkPolicy": {"enabled": true, "allowedSources": sources}}});
        for everybody in [
            json!([]),
            json!([{"podSelector": {}}, {"ipBlock": {"cidr": "0.0.0.0/0"}}]),
            json!([{"ipBlock": {"cidr": "::/0", "except": []}}]),
            json!([{"namespaceSelector": {}}]),
            json!([{"namespaceSelector": {}, "podSelector": {}}]),
        ] {
            assert_eq!(reasons(&policy(everybody.clone())), ["NetworkPolicyOpen"], "{everybody}");
        }
        for some in [
            json!([{"podSelector": {}}]),
            json!([{"namespaceSelector": {}, "podSelector": {"matchLabels": {"app": "web"}}}]),
            json!([{"ipBlock": {"cidr": "0.0.0.0/0", "except": ["10.0.0.0/8"]}}]),
        ] {
            assert_eq!(reasons(&policy(some.clone())), [""; 0], "{some}");
        }
        let off = json!({"security": {"networkPolicy": {"enabled": false}}});
        assert_eq!(reasons(&off), [""; 0]);
    }
}
