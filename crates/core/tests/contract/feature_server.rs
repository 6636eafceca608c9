//! Rows of the contract's spec table: what runs, how many, and how memcached is told.

use memcached_core::memcached::build::Child;
use serde_json::{Value, json};

use crate::diff::{changes, changes_on, without_insides_of};
use crate::fixture::{children, merged, refused, sessions, with_autoscaling, with_monitoring};

const NOTHING: [&str; 0] = [];

fn arguments(server: &Value) -> Vec<String> {
    changes(&json!({"memcached": server}))
}

#[test]
fn replicas_are_the_deployments() {
    assert_eq!(changes(&json!({"replicas": 3})), ["Deployment.spec.replicas: 1 → 3"]);
    assert_eq!(changes(&json!({"replicas": 0})), ["Deployment.spec.replicas: 1 → 0"]);
    assert_eq!(changes(&json!({"replicas": 1})), NOTHING);
}

#[test]
fn an_image_is_run_and_its_tag_shown() {
    assert_eq!(
        changes(&json!({"image": "example.org/memcached:1.6.45"})),
        [
            "Deployment.metadata.labels.app.kubernetes.io/version: 1.6 → 1.6.45",
            "server.image: memcached:1.6 → example.org/memcached:1.6.45",
            "template.metadata.labels.app.kubernetes.io/version: 1.6 → 1.6.45",
        ]
    );
    assert_eq!(changes(&json!({"image": "memcached:1.6"})), NOTHING);
}

#[test]
fn an_image_without_a_tag_has_no_version_label() {
    assert_eq!(
        changes(&json!({"image": "memcached@sha256:0123"})),
        [
            "- Deployment.metadata.labels.app.kubernetes.io/version: 1.6",
            "server.image: memcached:1.6 → memcached@sha256:0123",
            "- template.metadata.labels.app.kubernetes.io/version: 1.6",
        ]
    );
}

#[test]
fn a_tag_that_is_no_label_value_has_no_version_label() {
    for tag in ["1.6-", "_edge", &"9".repeat(64)] {
        let lines = changes(&json!({"image": format!("memcached:{tag}")}));
        assert!(lines.contains(&"- template.metadata.labels.app.kubernetes.io/version: 1.6".to_owned()), "{lines:?}");
    }
}

#[test]
fn a_version_is_shorthand_for_an_image() {
    let by_version = changes(&json!({"version": "1.6.45"}));
    assert_eq!(by_version, changes(&json!({"image": "memcached:1.6.45"})));
    assert_eq!(by_version, changes(&json!({"version": "1.6.45", "image": "memcached:1.6"})));
    assert_eq!(refused(&json!({"version": "1.6.45", "image": "other:1"})), ["spec.version"]);
}

#[test]
fn resources_are_the_servers() {
    let spec = json!({"resources": {"requests": {"cpu": "1"}, "limits": {"memory": "128Mi"}}});
    assert_eq!(changes(&spec), ["+ server.resources.limits.memory: 128Mi", "+ server.resources.requests.cpu: 1"]);
}

#[test]
fn each_number_of_the_server_is_one_argument() {
    const DEFAULT: &str = "server.args: -m 64 -c 1024 -t 4 -I 1m";
    for (field, arguments_after) in [
        (json!({"maxMemoryMB": 128}), "-m 128 -c 1024 -t 4 -I 1m"),
        (json!({"maxConnections": 2000}), "-m 64 -c 2000 -t 4 -I 1m"),
        (json!({"threads": 2}), "-m 64 -c 1024 -t 2 -I 1m"),
        (json!({"maxItemSize": "2m"}), "-m 64 -c 1024 -t 4 -I 2m"),
        (json!({"verbosity": 1}), "-m 64 -c 1024 -t 4 -I 1m -v"),
        (json!({"verbosity": 2}), "-m 64 -c 1024 -t 4 -I 1m -vv"),
        (json!({"extraArgs": ["-o", "modern"]}), "-m 64 -c 1024 -t 4 -I 1m -o modern"),
    ] {
        assert_eq!(arguments(&field), [format!("{DEFAULT} → {arguments_after}")], "{field}");
    }
}

#[test]
fn defaults_that_are_written_down_change_nothing() {
    let defaults = json!({
        "maxMemoryMB": 64, "maxConnections": 1024, "threads": 4, "maxItemSize": "1m", "verbosity": 0, "extraArgs": [],
    });
    assert_eq!(arguments(&defaults), NOTHING);
}

#[test]
fn an_autoscaler_takes_the_number_from_the_deployment() {
    let cpu = json!({"resources": {"requests": {"cpu": "250m"}}});
    let lines = without_insides_of(Child::Autoscaler, changes_on(&cpu, &with_autoscaling()));
    assert_eq!(lines, ["+ Autoscaler", "- Deployment.spec.replicas: 1"]);
    assert_eq!(changes(&json!({"autoscaling": {"enabled": false, "maxReplicas": 5}})), NOTHING);
}

#[test]
fn an_autoscaler_takes_wishes_as_they_are() {
    let over = |declared: Value| changes_on(&with_autoscaling(), &json!({"autoscaling": declared}));
    assert_eq!(over(json!({"minReplicas": 2})), ["Autoscaler.spec.minReplicas: 1 → 2"]);
    assert_eq!(over(json!({"maxReplicas": 8})), ["Autoscaler.spec.maxReplicas: 7 → 8"]);
    assert_eq!(
        over(json!({"behavior": {"scaleDown": {"stabilizationWindowSeconds": 60}}})),
        ["Autoscaler.spec.behavior.scaleDown.stabilizationWindowSeconds: 300 → 60"]
    );
    let target = json!({"type": "Utilization", "averageUtilization": 50});
    let metrics = json!([{"type": "Resource", "resource": {"name": "cpu", "target": target}}]);
    assert_eq!(
        over(json!({"metrics": metrics})),
        ["Autoscaler.spec.metrics[0].resource.target.averageUtilization: 80 → 50"]
    );
}

#[test]
fn monitoring_adds_an_exporter_and_a_port() {
    assert_eq!(
        changes(&with_monitoring()),
        [
            "+ Service.spec.ports[metrics].name: metrics",
            "+ Service.spec.ports[metrics].port: 9150",
            "+ Service.spec.ports[metrics].protocol: TCP",
            "+ Service.spec.ports[metrics].targetPort: metrics",
            "+ exporter.image: prom/memcached-exporter:v0.15.4",
            "+ exporter.imagePullPolicy: IfNotPresent",
            "+ exporter.name: exporter",
            "+ exporter.ports[metrics].containerPort: 9150",
            "+ exporter.ports[metrics].name: metrics",
            "+ exporter.ports[metrics].protocol: TCP",
            "+ exporter.securityContext.allowPrivilegeEscalation: false",
            "+ exporter.securityContext.capabilities.drop: ALL",
            "+ exporter.securityContext.readOnlyRootFilesystem: true",
        ]
    );
    let off = json!({"monitoring": {"enabled": false, "exporterImage": "x:1", "serviceMonitor": {}}});
    assert_eq!(changes(&off), NOTHING);
}

#[test]
fn the_exporter_is_the_users_where_one_is_named() {
    let over = |declared: Value| changes_on(&with_monitoring(), &json!({"monitoring": declared}));
    assert_eq!(over(json!({"exporterImage": "mine:1"})), ["exporter.image: prom/memcached-exporter:v0.15.4 → mine:1"]);
    assert_eq!(over(json!({"exporterImage": "prom/memcached-exporter:v0.15.4"})), NOTHING);
    assert_eq!(
        over(json!({"exporterResources": {"limits": {"memory": "32Mi"}}})),
        ["+ exporter.resources.limits.memory: 32Mi"]
    );
}

#[test]
fn a_service_monitor_comes_with_its_section() {
    let monitored = merged(&with_monitoring(), &json!({"monitoring": {"serviceMonitor": {}}}));
    let lines = changes_on(&with_monitoring(), &monitored);
    assert_eq!(without_insides_of(Child::ServiceMonitor, lines), ["+ ServiceMonitor"]);
    let over = |declared: Value| changes_on(&monitored, &json!({"monitoring": {"serviceMonitor": declared}}));
    assert_eq!(over(json!({"interval": "15s"})), ["ServiceMonitor.spec.endpoints[0].interval: 30s → 15s"]);
    assert_eq!(over(json!({"scrapeTimeout": "5s"})), ["ServiceMonitor.spec.endpoints[0].scrapeTimeout: 10s → 5s"]);
    assert_eq!(
        over(json!({"additionalLabels": {"release": "p", "app.kubernetes.io/name": "stolen"}})),
        ["+ ServiceMonitor.metadata.labels.release: p"],
        "and ours stay ours"
    );
}

#[test]
fn annotations_are_the_headless_services_alone() {
    let service = json!({"service": {"type": "ClusterIP"}});
    let annotated = json!({"service": {"annotations": {"example.org/a": "b"}}});
    assert_eq!(changes_on(&service, &annotated), ["+ Service.metadata.annotations.example.org/a: b"]);
}

#[test]
fn a_service_type_adds_a_second_service() {
    for type_ in ["ClusterIP", "NodePort", "LoadBalancer"] {
        let lines = changes(&json!({"service": {"type": type_}}));
        assert!(lines.contains(&format!("+ ClientService.spec.type: {type_}")), "{lines:?}");
        assert_eq!(without_insides_of(Child::ClientService, lines), ["+ ClientService"]);
    }
}

#[test]
fn a_restart_trigger_is_copied_to_the_pods() {
    let mut cache = sessions(&json!({}));
    let plain = memcached_core::memcached::validate(&cache).unwrap();
    let trigger = ("memcached.c5c3.io/restart-trigger".to_owned(), "1".to_owned());
    cache.metadata.annotations = Some([trigger, ("example.org/other".to_owned(), "2".to_owned())].into());
    let triggered = memcached_core::memcached::validate(&cache).unwrap();
    assert_eq!(
        crate::diff::changes_between(&plain, &triggered),
        ["+ template.metadata.annotations.memcached.c5c3.io/restart-trigger: 1"]
    );
}

#[test]
fn a_pause_changes_no_child() {
    assert_eq!(changes(&json!({"paused": true})), NOTHING);
}

#[test]
fn children_are_owned_by_the_stored_version() {
    let everything = crate::fixture::accepted(&crate::fixture::with_everything());
    for (kind, object) in children(&everything) {
        let owners = object["metadata"]["ownerReferences"].as_array().unwrap().clone();
        assert_eq!(owners.len(), 1, "{kind:?}");
        assert_eq!(owners[0]["apiVersion"], "memcached.c5c3.io/v1beta1", "{kind:?}");
        assert_eq!(owners[0]["controller"], true, "{kind:?}");
    }
}
