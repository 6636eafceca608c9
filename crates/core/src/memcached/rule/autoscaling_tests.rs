use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use memcached_api::memcached::spec::{Autoscaling, Monitoring};

use serde_json::{Value, json};

use super::*;

fn fields(spec: &MemcachedSpec) -> Vec<String> {
    check(spec, WorkloadType::Deployment).into_iter().map(|violation| violation.field).collect()
}

fn cpu() -> ResourceRequirements {
    let requests = [("cpu".to_owned(), Quantity("100m".into()))].into();
    ResourceRequirements { requests: Some(requests), ..ResourceRequirements::default() }
}

fn autoscaled() -> MemcachedSpec {
    MemcachedSpec {
        resources: Some(cpu()),
        autoscaling: Some(Autoscaling { enabled: true, max_replicas: Some(3), ..Autoscaling::default() }),
        ..MemcachedSpec::default()
    }
}

#[test]
fn an_autoscaler_decides_alone() {
    assert_eq!(fields(&autoscaled()), [""; 0]);
    let both = MemcachedSpec { replicas: Some(2), ..autoscaled() };
    assert_eq!(fields(&both), ["spec.replicas"]);
}

#[test]
fn an_autoscaler_needs_sensible_bounds() {
    let mut spec = autoscaled();
    let autoscaling = spec.autoscaling.as_mut().unwrap();
    autoscaling.min_replicas = Some(3);
    assert_eq!(fields(&spec), [""; 0]);
    spec.autoscaling.as_mut().unwrap().min_replicas = Some(4);
    assert_eq!(fields(&spec), ["spec.autoscaling.minReplicas"]);
    spec.autoscaling.as_mut().unwrap().max_replicas = None;
    assert_eq!(fields(&spec), ["spec.autoscaling.maxReplicas"]);
}

#[test]
fn scaling_by_cpu_needs_a_request_on_every_container() {
    let without = MemcachedSpec { resources: None, ..autoscaled() };
    assert_eq!(fields(&without), ["spec.resources.requests.cpu"]);
    let exporter_without =
        MemcachedSpec { monitoring: Some(Monitoring { enabled: true, ..Monitoring::default() }), ..autoscaled() };
    assert_eq!(fields(&exporter_without), ["spec.monitoring.exporterResources.requests.cpu"]);
    let with_both = MemcachedSpec {
        monitoring: Some(Monitoring { enabled: true, exporter_resources: Some(cpu()), ..Monitoring::default() }),
        ..autoscaled()
    };
    assert_eq!(fields(&with_both), [""; 0]);
}

fn fields_of(autoscaling: &Value, has_exporter: bool) -> Vec<String> {
    let mut autoscaling = autoscaling.clone();
    autoscaling["enabled"] = json!(true);
    autoscaling["maxReplicas"] = json!(3);
    let resources = json!({"requests": {"cpu": "100m"}});
    let monitoring = json!({"enabled": has_exporter, "exporterResources": resources});
    let spec = json!({"autoscaling": autoscaling, "monitoring": monitoring, "resources": resources});
    fields(&serde_json::from_value(spec).unwrap())
}

#[test]
fn the_exporter_is_a_container_only_where_there_is_monitoring() {
    let exporter = json!({"metrics": [{"type": "ContainerResource", "containerResource": {
        "name": "cpu", "container": "exporter", "target": {"type": "Utilization", "averageUtilization": 1},
    }}]});
    assert_eq!(fields_of(&exporter, true), [""; 0]);
    assert_eq!(fields_of(&exporter, false), ["spec.autoscaling.metrics[0].containerResource.container"]);
}

#[test]
fn behaviour_is_within_bounds() {
    let down = json!({"behavior": {"scaleDown": {"selectPolicy": "Most"}}});
    assert_eq!(fields_of(&down, false), ["spec.autoscaling.behavior.scaleDown.selectPolicy"]);
}
