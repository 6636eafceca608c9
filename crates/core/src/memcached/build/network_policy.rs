//! The NetworkPolicy: the ports that exist, for those who may use them.

use k8s_openapi::api::networking::v1::{
    NetworkPolicy, NetworkPolicyIngressRule, NetworkPolicyPeer, NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

use super::agent::PORT as AGENT_PORT;
use super::metadata::{metadata, selector};
use super::service::ports;
use crate::memcached::validate::Validated;
use operator_model::range::Range;

pub fn build_network_policy(cache: &Validated) -> Option<NetworkPolicy> {
    let policy = cache.network_policy.as_ref()?;
    let agent = cache.has_agent().then(|| rule(&[AGENT_PORT.1], &[operator(cache)]));
    let ports: Vec<i32> = ports(cache).into_iter().map(|(_, port)| port).collect();
    let rules = if policy.metrics_sources.is_empty() {
        vec![rule(&ports, &policy.allowed_sources)]
    } else {
        let (metrics, data): (Vec<i32>, Vec<i32>) = ports.into_iter().partition(|port| *port == 9150);
        let mut rules = vec![rule(&data, &policy.allowed_sources)];
        rules.extend((!metrics.is_empty()).then(|| rule(&metrics, &policy.metrics_sources)));
        rules
    };
    Some(NetworkPolicy {
        metadata: metadata(cache, &cache.name),
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(selector(&cache.name)),
            policy_types: Some(vec!["Ingress".into()]),
            ingress: Some(rules.into_iter().chain(agent).collect()),
            egress: None,
        }),
    })
}

/// Asks agents what is in force. By its namespace: what its pods are labelled with is whoever installs it's to say.
fn operator(cache: &Validated) -> NetworkPolicyPeer {
    let labels = [("kubernetes.io/metadata.name".to_owned(), cache.settings.operator_namespace.clone())].into();
    NetworkPolicyPeer {
        namespace_selector: Some(LabelSelector { match_labels: Some(labels), ..LabelSelector::default() }),
        ..NetworkPolicyPeer::default()
    }
}

/// Without sources everybody may: an empty `from` means nobody to some readers and everybody to Kubernetes, so
/// it is left out.
fn rule(ports: &[i32], sources: &[NetworkPolicyPeer]) -> NetworkPolicyIngressRule {
    let port = |number: &i32| NetworkPolicyPort {
        port: Some(IntOrString::Int(*number)),
        protocol: Some("TCP".into()),
        end_port: None,
    };
    NetworkPolicyIngressRule {
        ports: Some(ports.iter().map(port).collect()),
        from: (!sources.is_empty()).then(|| sources.iter().cloned().map(plain).collect()),
    }
}

/// Ranges in the spelling that every version of Kubernetes takes.
fn plain(mut peer: NetworkPolicyPeer) -> NetworkPolicyPeer {
    let spell = |text: &mut String| {
        if let Some(range) = Range::of(text) {
            *text = range.to_string();
        }
    };
    if let Some(block) = &mut peer.ip_block {
        spell(&mut block.cidr);
        block.except.iter_mut().flatten().for_each(spell);
    }
    peer
}
