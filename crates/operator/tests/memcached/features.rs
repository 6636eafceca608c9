//! Each field of the contract changes what it should, on the real API server.

use serde_json::{Value, json};

use crate::harness::{Arena, server};

fn pod(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]
}

fn every_pod_field() -> Value {
    json!({
        "replicas": 2,
        "image": "registry.example.org/memcached:1.6.45",
        "resources": {"requests": {"cpu": "100m", "memory": "256Mi"}, "limits": {"memory": "256Mi"}},
        "memcached": {
            "maxMemoryMB": 128, "maxConnections": 2048, "threads": 2, "maxItemSize": "2m", "verbosity": 2,
            "extraArgs": ["-o", "modern"],
        },
        "highAvailability": {
            "antiAffinityPreset": "hard",
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
            ],
            "gracefulShutdown": {"enabled": true, "preStopDelaySeconds": 5, "terminationGracePeriodSeconds": 20},
        },
        "nodeSelector": {"type": "kwok"},
        "tolerations": [{"key": "cache", "operator": "Exists"}],
        "priorityClassName": "system-cluster-critical",
        "imagePullSecrets": [{"name": "pull"}],
        "imagePullPolicy": "Always",
        "podLabels": {"team": "x"},
        "podAnnotations": {"note": "y"},
        "env": [{"name": "A", "value": "b"}],
        "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "workload": {"type": "Deployment", "rollout": {"minReadySeconds": 1, "progressDeadlineSeconds": 300}},
    })
}

#[tokio::test]
async fn everything_about_pods_reaches_the_deployment() {
    let arena = Arena::shared().await;
    let place = arena.namespace("pods").await;
    place.declare("sessions", every_pod_field()).await;
    place.settled("sessions").await;
    let deployment = place.get("deployment", "sessions").unwrap();
    let container = server(&deployment);
    assert_eq!(container["image"], "registry.example.org/memcached:1.6.45");
    assert_eq!(container["args"], json!(["-m", "128", "-c", "2048", "-t", "2", "-I", "2m", "-vv", "-o", "modern"]));
    assert_eq!(container["resources"]["limits"]["memory"], "256Mi");
    assert_eq!(container["lifecycle"]["preStop"]["exec"]["command"], json!(["sleep", "5"]));
    assert_eq!(container["imagePullPolicy"], "Always");
    assert_eq!(container["env"], json!([{"name": "A", "value": "b"}]));
    assert_eq!(container["volumeMounts"][0]["mountPath"], "/scratch");
    let template = pod(&deployment);
    assert_eq!(template["terminationGracePeriodSeconds"], 20);
    assert_eq!(template["nodeSelector"], json!({"type": "kwok"}));
    assert_eq!(template["priorityClassName"], "system-cluster-critical");
    assert_eq!(template["imagePullSecrets"], json!([{"name": "pull"}]));
    assert_eq!(
        template["topologySpreadConstraints"][0]["labelSelector"]["matchLabels"]["app.kubernetes.io/instance"],
        "sessions"
    );
    assert!(template["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"].is_array());
    assert_eq!(deployment["spec"]["strategy"]["rollingUpdate"], json!({"maxSurge": 0, "maxUnavailable": 1}));
    assert_eq!(deployment["spec"]["minReadySeconds"], 1);
    let metadata = &deployment["spec"]["template"]["metadata"];
    assert_eq!(metadata["labels"]["team"], "x");
    assert_eq!(metadata["labels"]["app.kubernetes.io/version"], "1.6.45");
    assert_eq!(metadata["annotations"]["note"], "y");
}

#[tokio::test]
async fn pods_satisfy_the_restricted_standard_unless_told_otherwise() {
    let arena = Arena::shared().await;
    let place = arena.namespace("restricted").await;
    place
        .namespace
        .kubectl(&["label", "namespace", place.name(), "pod-security.kubernetes.io/enforce=restricted"])
        .unwrap();
    place.declare("plain", json!({"replicas": 1, "monitoring": {"enabled": true}})).await;
    place.ready("plain").await;
    place.declare("own", json!({"replicas": 0, "security": {"podSecurityContext": {"runAsUser": 7}}})).await;
    place.settled("own").await;
    let deployment = place.get("deployment", "own").unwrap();
    assert_eq!(pod(&deployment)["securityContext"], json!({"runAsUser": 7}), "the user's value replaces ours whole");
}

#[tokio::test]
async fn security_modes_mount_what_they_need() {
    let arena = Arena::shared().await;
    let place = arena.namespace("modes").await;
    let spec = json!({
        "replicas": 0,
        "security": {
            "sasl": {"enabled": true, "credentialsSecretRef": {"name": "creds"}},
            "tls": {"enabled": true, "certificateSecretRef": {"name": "certs"}, "enableClientCert": true},
        },
    });
    place.declare("sessions", spec).await;
    place.settled("sessions").await;
    let deployment = place.get("deployment", "sessions").unwrap();
    let command = server(&deployment)["command"].to_string();
    assert!(command.contains("ssl_verify_mode=2") && command.contains("notls:127.0.0.1:11213"), "{command}");
    let volumes = pod(&deployment)["volumes"].as_array().unwrap().clone();
    let names: Vec<_> = volumes.iter().map(|volume| volume["name"].clone()).collect();
    assert_eq!(names, ["sasl-credentials", "tls-certificates"]);
    assert_eq!(volumes[1]["secret"]["items"].as_array().unwrap().len(), 3);
    let service = place.get("service", "sessions").unwrap();
    let ports: Vec<_> = service["spec"]["ports"].as_array().unwrap().iter().map(|p| p["name"].clone()).collect();
    assert_eq!(ports, ["memcached", "memcached-tls"]);
}

#[tokio::test]
async fn every_field_is_explained() {
    let arena = Arena::shared().await;
    let text = arena.cluster.kubectl(&["explain", "memcached.spec.memcached"]).unwrap();
    for words in ["maxItemSize", "The largest item", "extraArgs", "maxMemoryMB"] {
        assert!(text.contains(words), "{words} is missing in:\n{text}");
    }
    let columns = arena.cluster.kubectl(&["get", "mc", "--all-namespaces"]).unwrap_or_default();
    assert!(columns.is_empty() || columns.contains("REPLICAS"), "{columns}");
}
