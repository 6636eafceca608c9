//! The headless Service that clients find servers by, and a second one of another type on request.

use k8s_openapi::api::core::v1::{Service, ServicePort, ServiceSpec};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::memcached::spec::ServiceType;

use super::Child;
use super::meta::{labels, metadata};
use crate::memcached::validate::Validated;

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
            ..ServiceSpec::default()
        }),
        status: None,
    }
}

/// For clients that cannot find servers by name. Metrics are for Prometheus, not for them.
pub fn build_client_service(cache: &Validated) -> Option<Service> {
    let type_ = match cache.spec.service.as_ref()?.type_? {
        ServiceType::ClusterIP => "ClusterIP",
        ServiceType::NodePort => "NodePort",
        ServiceType::LoadBalancer => "LoadBalancer",
    };
    let ports = ports(cache).into_iter().filter(|(name, _)| *name != "metrics").collect();
    Some(Service {
        metadata: metadata(cache, &Child::ClientService.name(&cache.name)),
        spec: Some(ServiceSpec {
            type_: Some(type_.into()),
            selector: Some(labels(&cache.name)),
            ports: Some(service_ports(ports)),
            ..ServiceSpec::default()
        }),
        status: None,
    })
}
