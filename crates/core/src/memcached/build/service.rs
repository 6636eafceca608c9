//! The headless Service that clients find servers by, and a second one of another type on request.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::memcached::spec::ServiceType;

use super::Child;
use super::metadata::{labels, metadata};
use crate::memcached::validate::Validated;
use operator_model::range::Range;

/// A named port of the pods.
pub fn ports(cache: &Validated) -> Vec<(&'static str, i32)> {
    let mut ports = vec![("memcached", 11211)];
    ports.extend(cache.tls.is_some().then_some(("memcached-tls", 11212)));
    ports.extend(cache.monitoring.is_some().then_some(("metrics", 9150)));
    ports
}

fn service_ports(ports: Vec<(&'static str, i32)>) -> Vec<ServicePort> {
    let port = |(name, port): (&str, i32)| ServicePort {
        name: Some(name.into()),
        port,
        protocol: Some("TCP".into()),
        target_port: Some(IntOrString::String(name.into())),
        ..ServicePort::default()
    };
    ports.into_iter().map(port).collect()
}

pub fn build_service(cache: &Validated) -> Service {
    let mut meta = metadata(cache, &cache.name);
    let annotations = cache.spec.service.as_ref().map(|service| service.annotations.clone()).unwrap_or_default();
    meta.annotations = (!annotations.is_empty()).then_some(annotations);
    Service {
        metadata: meta,
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".into()),
            selector: Some(labels(&cache.name)),
            ports: Some(service_ports(ports(cache))),
            // Slots keep their names while a pod is away: what they stand for is who is asked, not who answers.
            publish_not_ready_addresses: cache.has_agent().then_some(true),
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// For clients that cannot find servers by name. Metrics are for Prometheus, not for them.
pub fn build_client_service(cache: &Validated) -> Option<Service> {
    let service = cache.spec.service.as_ref()?;
    let client = service.client.clone().unwrap_or_default();
    let type_ = match service.type_? {
        ServiceType::ClusterIP => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
    };
    let ports = ports(cache).into_iter().filter(|(name, _)| *name != "metrics").collect();
    let mut meta = metadata(cache, &Child::ClientService.name(&cache.name));
    meta.annotations = (!client.annotations.is_empty()).then_some(client.annotations);
    // As every version of Kubernetes takes them.
    let ranges: Vec<String> =
        client.load_balancer_source_ranges.iter().filter_map(|range| Some(Range::of(range)?.to_string())).collect();
    Some(Service {
        metadata: meta,
        spec: Some(ServiceSpec {
            type_: Some(type_.into()),
            selector: Some(labels(&cache.name)),
            ports: Some(service_ports(ports)),
            load_balancer_class: client.load_balancer_class,
            load_balancer_source_ranges: (!ranges.is_empty()).then_some(ranges),
            external_traffic_policy: client.external_traffic_policy.map(|policy| policy.name().to_owned()),
            internal_traffic_policy: client.internal_traffic_policy.map(|policy| policy.name().to_owned()),
            ..ServiceSpec::default()
        }),
        status: None,
    })
}
