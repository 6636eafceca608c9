//! Security contexts, authentication, TLS, network policy. What answers on the ports is tried on the node.

use serde_json::{Value, json};

use super::{child, pod, server, shows};
use crate::harness::Arena;

fn secured(section: Value) -> Value {
    json!({"security": section})
}

#[tokio::test]
async fn pod_security_context() {
    let seen = [
        pod("/securityContext", json!({"runAsUser": 7}), restricted()),
        pod("/automountServiceAccountToken", json!(false), json!(false)),
    ];
    shows("context", secured(json!({"podSecurityContext": {"runAsUser": 7}})), json!({}), &seen).await;
}

fn restricted() -> Value {
    json!({
        "runAsNonRoot": true, "runAsUser": 11211, "runAsGroup": 11211, "fsGroup": 11211,
        "seccompProfile": {"type": "RuntimeDefault"},
    })
}

#[tokio::test]
async fn container_security_context() {
    let ours = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
    });
    let seen = [server("/securityContext", json!({"privileged": false}), ours)];
    shows("context", secured(json!({"containerSecurityContext": {"privileged": false}})), json!({}), &seen).await;
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
}

#[tokio::test]
async fn authentication() {
    let on = |mode: Value| {
        let sasl = json!({"enabled": true, "credentialsSecretRef": {"name": "creds"}, "mode": mode});
        secured(json!({"sasl": sasl}))
    };
    let off = || secured(json!({"sasl": {"enabled": false}}));
    let secret = json!({"secretName": "creds", "items": [{"key": "password-file", "path": "password-file"}], "defaultMode": 420});
    let seen = [
        server("/args/8", json!("-Y"), json!(null)),
        server("/args/9", json!("/etc/memcached/sasl/password-file"), json!(null)),
        pod("/volumes/0/name", json!("sasl-credentials"), json!(null)),
        pod("/volumes/0/secret", secret, json!(null)),
        server("/volumeMounts/0/mountPath", json!("/etc/memcached/sasl"), json!(null)),
        server("/volumeMounts/0/readOnly", json!(true), json!(null)),
        server("/env", json!(null), json!(null)),
    ];
    shows("ascii", on(json!("ASCII")), off(), &seen).await;
    let seen = [
        server("/args/8", json!(null), json!(null)),
        server("/env/0/name", json!("MEMCACHED_SASL_PWDB"), json!(null)),
        server("/env/0/value", json!("/etc/memcached/sasl/password-file"), json!(null)),
        server("/volumeMounts/0/mountPath", json!("/etc/memcached/sasl"), json!(null)),
    ];
    shows("sasl", on(json!("SASL")), off(), &seen).await;
}

fn tls(mut section: Value) -> Value {
    section["enabled"] = json!(true);
    if section["issuerRef"].is_null() {
        section["certificateSecretRef"] = json!({"name": "certs"});
    }
    secured(json!({"tls": section}))
}

fn items(keys: &[&str]) -> Value {
    keys.iter().map(|key| json!({"key": key, "path": key})).collect()
}

#[tokio::test]
async fn encryption() {
    let seen = [
        server("/args/8", json!("-Z"), json!(null)),
        server("/args/10", json!("ssl_chain_cert=/etc/memcached/tls/tls.crt"), json!(null)),
        server("/args/12", json!("ssl_key=/etc/memcached/tls/tls.key"), json!(null)),
        server("/args/14", json!(null), json!(null)),
        server("/ports/1/name", json!("memcached-tls"), json!(null)),
        server("/ports/1/containerPort", json!(11212), json!(null)),
        pod("/volumes/0/name", json!("tls-certificates"), json!(null)),
        pod("/volumes/0/secret/items", items(&["tls.crt", "tls.key"]), json!(null)),
        server("/volumeMounts/0/mountPath", json!("/etc/memcached/tls"), json!(null)),
        child("Service", "/spec/ports/1/name", json!("memcached-tls"), json!(null)),
        child("Service", "/spec/ports/1/port", json!(11212), json!(null)),
    ];
    shows("tls", tls(json!({})), secured(json!({"tls": {"enabled": false}})), &seen).await;
}

#[tokio::test]
async fn client_certificates() {
    let seen = [
        server("/args/14", json!("ssl_ca_cert=/etc/memcached/tls/ca.crt"), json!(null)),
        pod("/volumes/0/secret/items", items(&["tls.crt", "tls.key", "ca.crt"]), items(&["tls.crt", "tls.key"])),
        server("/command/2", json!("ssl_verify_mode=2"), json!("notls:*:11211,*:11212")),
    ];
    shows("mtls", tls(json!({"enableClientCert": true})), tls(json!({"enableClientCert": false})), &seen).await;
}

#[tokio::test]
async fn encryption_modes() {
    let seen = [server("/command/2", json!("notls:127.0.0.1:11213,*:11211,*:11212"), json!("notls:*:11211,*:11212"))];
    shows("tls", tls(json!({"mode": "Required"})), tls(json!({"mode": "Alongside"})), &seen).await;
}

#[tokio::test]
async fn certificates_from_an_issuer() {
    let issuer = json!({"name": "ca", "kind": "ClusterIssuer", "group": "cert-manager.io"});
    let seen = [
        child("Certificate", "/spec/issuerRef", issuer.clone(), json!(null)),
        child("Certificate", "/spec/usages", json!(["server auth", "client auth"]), json!(null)),
        server("/args/8", json!("-Z"), json!("-Z")),
    ];
    shows("issuer", tls(json!({"issuerRef": issuer})), tls(json!({})), &seen).await;
}

fn policy(mut section: Value) -> Value {
    section["enabled"] = json!(true);
    json!({"monitoring": {"enabled": true}, "security": {"networkPolicy": section}})
}

fn ports(numbers: &[i32]) -> Value {
    numbers.iter().map(|port| json!({"protocol": "TCP", "port": port})).collect()
}

#[tokio::test]
async fn network_policy() {
    let seen = [
        child("NetworkPolicy", "/spec/ingress/0/ports", ports(&[11211]), json!(null)),
        child("NetworkPolicy", "/spec/ingress/0/from", json!(null), json!(null)),
        child("NetworkPolicy", "/spec/policyTypes", json!(["Ingress"]), json!(null)),
    ];
    let on = secured(json!({"networkPolicy": {"enabled": true}}));
    shows("policy", on, secured(json!({"networkPolicy": {"enabled": false}})), &seen).await;
}

#[tokio::test]
async fn network_policy_knows_every_port_that_exists() {
    let on = json!({
        "monitoring": {"enabled": true},
        "security": {
            "networkPolicy": {"enabled": true},
            "tls": {"enabled": true, "certificateSecretRef": {"name": "certs"}},
        },
    });
    let seen = [child("NetworkPolicy", "/spec/ingress/0/ports", ports(&[11211, 11212, 9150]), ports(&[11211, 9150]))];
    shows("policy", on, policy(json!({})), &seen).await;
}

#[tokio::test]
async fn allowed_sources() {
    let sources = json!([{"podSelector": {"matchLabels": {"app": "shop"}}}]);
    let seen = [
        child("NetworkPolicy", "/spec/ingress/0/from", sources.clone(), json!(null)),
        child("NetworkPolicy", "/spec/ingress/0/ports", ports(&[11211, 9150]), ports(&[11211, 9150])),
    ];
    shows("sources", policy(json!({"allowedSources": sources})), policy(json!({})), &seen).await;
}

#[tokio::test]
async fn metrics_sources() {
    let sources = json!([{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]);
    let seen = [
        child("NetworkPolicy", "/spec/ingress/0/ports", ports(&[11211]), ports(&[11211, 9150])),
        child("NetworkPolicy", "/spec/ingress/1/ports", ports(&[9150]), json!(null)),
        child("NetworkPolicy", "/spec/ingress/1/from", sources.clone(), json!(null)),
    ];
    shows("sources", policy(json!({"metricsSources": sources})), policy(json!({})), &seen).await;
}
