//! The Services, the explanations, the columns.

use serde_json::json;

use super::{child, shows};
use crate::harness::Arena;

#[tokio::test]
async fn service_annotations() {
    let seen = [
        child("Service", "/metadata/annotations/a", json!("b"), json!(null)),
        child("Service", "/spec/clusterIP", json!("None"), json!("None")),
        child("Service", "/spec/ports/0/targetPort", json!("memcached"), json!("memcached")),
    ];
    shows("service", json!({"service": {"annotations": {"a": "b"}}}), json!({}), &seen).await;
}

#[tokio::test]
async fn a_second_service_for_clients() {
    let arena = Arena::shared().await;
    let place = arena.namespace("client").await;
    for type_ in ["ClusterIP", "NodePort", "LoadBalancer"] {
        place.declare("sessions", json!({"replicas": 0, "service": {"type": type_}})).await;
        place.settled("sessions").await;
        let client = place.get("service", "sessions-client").unwrap();
        assert_eq!(client["spec"]["type"], type_);
        assert_ne!(client["spec"]["clusterIP"], "None");
        let headless = place.get("service", "sessions").unwrap();
        assert_eq!(headless["spec"]["clusterIP"], "None", "the headless one is never changed");
    }
    place.declare("sessions", json!({"replicas": 0})).await;
    place.settled("sessions").await;
    assert!(place.get("service", "sessions-client").is_none());
}

#[tokio::test]
async fn a_load_balancer_is_set_up_and_taken_back() {
    let arena = Arena::shared().await;
    let place = arena.namespace("balancer").await;
    let client = json!({
        "annotations": {"example.com/internal": "true"}, "loadBalancerClass": "example.com/internal",
        "loadBalancerSourceRanges": ["10.1.2.3/8"], "externalTrafficPolicy": "Local", "internalTrafficPolicy": "Local",
    });
    let balanced = |client| json!({"replicas": 0, "service": {"type": "LoadBalancer", "client": client}});
    place.declare("sessions", balanced(client)).await;
    place.settled("sessions").await;
    let service = place.get("service", "sessions-client").unwrap();
    assert_eq!(service["metadata"]["annotations"]["example.com/internal"], "true");
    assert_eq!(service["spec"]["loadBalancerClass"], "example.com/internal");
    assert_eq!(service["spec"]["loadBalancerSourceRanges"], json!(["10.0.0.0/8"]));
    assert_eq!(service["spec"]["externalTrafficPolicy"], "Local");
    assert_eq!(service["spec"]["internalTrafficPolicy"], "Local");
    let headless = place.get("service", "sessions").unwrap();
    assert!(headless["metadata"]["annotations"].is_null(), "the headless one is never changed: {headless:#}");
    place.declare("sessions", balanced(json!({"loadBalancerClass": "example.com/internal"}))).await;
    place.settled("sessions").await;
    let service = place.get("service", "sessions-client").unwrap();
    assert!(service["metadata"]["annotations"].is_null() && service["spec"]["loadBalancerSourceRanges"].is_null());
    assert_eq!(service["spec"]["externalTrafficPolicy"], "Cluster");
    // From one type to the other: Kubernetes drops what does not go with it.
    place.declare("sessions", json!({"replicas": 0, "service": {"type": "ClusterIP"}})).await;
    place.settled("sessions").await;
    let service = place.get("service", "sessions-client").unwrap();
    assert_eq!((&service["spec"]["type"], service["spec"].get("loadBalancerClass")), (&json!("ClusterIP"), None));
}

#[tokio::test]
async fn every_field_is_explained() {
    let arena = Arena::shared().await;
    let text = arena.cluster.kubectl(&["explain", "memcached.spec.memcached"]).unwrap();
    for words in ["maxItemSize", "The largest item", "extraArgs", "maxMemoryMB"] {
        assert!(text.contains(words), "{words} is missing in:\n{text}");
    }
}

#[tokio::test]
async fn one_line_tells_the_story() {
    let arena = Arena::shared().await;
    let place = arena.namespace("columns").await;
    place.declare("sessions", json!({"replicas": 1})).await;
    place.ready("sessions").await;
    let table = place.namespace.kubectl(&["get", "mc"]).unwrap();
    let words = |line: Option<&str>| line.unwrap().split_whitespace().map(str::to_owned).collect::<Vec<_>>();
    let mut lines = table.lines();
    assert_eq!(words(lines.next()), ["NAME", "REPLICAS", "READY", "STATUS", "VERSION", "AGE"], "{table}");
    assert_eq!(words(lines.next())[..5], ["sessions", "1", "1", "Ready", "1.6"], "{table}");
}
