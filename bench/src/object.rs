//! The objects of a measurement: what is declared, the Secrets it refers to, and the children that it becomes.
//! The children are alike to what our operator builds, so that the bare limit is the limit of the same work.

use serde_json::{Value, json};

use crate::plan::Scenario;
use crate::request::{Kind, Metadata};

/// Objects a namespace, where they are spread.
const PER_NAMESPACE: usize = 50;
/// The servers of each object.
pub const REPLICAS: i64 = 3;
/// Connections before the change, and after.
const CONNECTIONS: u32 = 1024;
const MORE_CONNECTIONS: u32 = 2048;

/// A declared object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub namespace: String,
    pub name: String,
    /// Known once it is created.
    pub uid: String,
}

impl Target {
    /// The one that the API server has created.
    #[must_use]
    pub fn created(self, metadata: Metadata) -> Self {
        Self { uid: metadata.uid, ..self }
    }

    /// The path of the object itself.
    pub fn path(&self) -> String {
        self.path_of(Kind::Memcached)
    }

    /// The path of its child of a kind, which has its name.
    pub fn path_of(&self, kind: Kind) -> String {
        format!("{}/{}", kind.within(&self.namespace), self.name)
    }
}

/// The objects of a scenario, not yet created.
pub fn targets(scenario: Scenario, size: usize) -> Vec<Target> {
    let target = |number: usize| {
        let place = if scenario == Scenario::CreateOneNamespace { 0 } else { number / PER_NAMESPACE };
        Target { namespace: format!("bench-{place:04}"), name: format!("cache-{number:05}"), uid: String::new() }
    };
    (0..size).map(target).collect()
}

/// The namespaces of objects, each once.
pub fn namespaces(targets: &[Target]) -> Vec<String> {
    let mut names: Vec<String> = targets.iter().map(|target| target.namespace.clone()).collect();
    names.dedup();
    names
}

/// What a user declares.
pub fn memcached(target: &Target, has_secrets: bool) -> Value {
    let mut object = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1",
        "kind": "Memcached",
        "metadata": {"name": target.name, "namespace": target.namespace},
        "spec": {
            "replicas": REPLICAS,
            "memcached": {"maxMemoryMB": 64},
            "highAvailability": {
                "antiAffinityPreset": "soft",
                "podDisruptionBudget": {"enabled": true, "minAvailable": 1},
            },
        },
    });
    if has_secrets && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut) {
        let security = json!({
            "sasl": {"enabled": true, "credentialsSecretRef": {"name": credentials_name(target)}},
            "tls": {"enabled": true, "certificateSecretRef": {"name": certificate_name(target)}},
        });
        spec.insert("security".into(), security);
    }
    object
}

/// The two Secrets that an object refers to; values are as long as real ones.
pub fn secrets(target: &Target) -> [Value; 2] {
    let secret = |name: String, data: Value| {
        json!({
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": target.namespace},
            "stringData": data,
        })
    };
    let credentials = json!({"password-file": format!("{}:not-a-secret\n", target.name)});
    let filler = |length: usize| format!("{} {}\n", target.name, "x".repeat(length));
    let certificate = json!({"tls.crt": filler(1200), "tls.key": filler(1700), "ca.crt": filler(1200)});
    [secret(credentials_name(target), credentials), secret(certificate_name(target), certificate)]
}

fn credentials_name(target: &Target) -> String {
    format!("{}-credentials", target.name)
}

fn certificate_name(target: &Target) -> String {
    format!("{}-certificate", target.name)
}

/// The one field that is changed in all objects.
pub fn change() -> Value {
    json!({"spec": {"memcached": {"maxConnections": MORE_CONNECTIONS}}})
}

/// The children of an object as declared at first, in the order in which they are created.
pub fn children(target: &Target, has_secrets: bool) -> [(Kind, Value); 4] {
    [
        (Kind::ControllerRevision, revision(target, 1, has_secrets)),
        (Kind::Service, service(target)),
        (Kind::Deployment, deployment(target, has_secrets)),
        (Kind::PodDisruptionBudget, budget(target)),
    ]
}

/// What the change makes of the children: the revision that is added, and the patch of the Deployment.
pub fn changed_children(target: &Target) -> (Value, Value) {
    let template = template(target, MORE_CONNECTIONS, false);
    (revision(target, 2, false), json!({"spec": {"template": template}}))
}

/// The status of an object whose children are there; `generation` is the one that was seen.
pub fn status(target: &Target, generation: i64) -> Value {
    let condition = |type_: &str, status: &str, reason: &str| {
        json!({
            "type": type_, "status": status, "reason": reason, "observedGeneration": generation,
            "message": "0/3 ready", "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let selector = labels(target);
    let pairs: Vec<String> =
        selector.as_object().into_iter().flatten().filter_map(|(k, v)| Some(format!("{k}={}", v.as_str()?))).collect();
    json!({"status": {
        "observedGeneration": generation,
        "replicas": 0,
        "readyReplicas": 0,
        "selector": pairs.join(","),
        "conditions": [
            condition("Available", "False", "Unavailable"),
            condition("Progressing", "True", "RolloutInProgress"),
            condition("Degraded", "False", "AsDesired"),
            condition("Ready", "False", "NotReady"),
        ],
    }})
}

fn labels(target: &Target) -> Value {
    json!({
        "app.kubernetes.io/name": "memcached",
        "app.kubernetes.io/instance": target.name,
        "app.kubernetes.io/managed-by": "memcached-operator",
    })
}

fn metadata(target: &Target, name: &str) -> Value {
    json!({
        "name": name,
        "namespace": target.namespace,
        "labels": labels(target),
        "ownerReferences": [{
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "name": target.name, "uid": target.uid,
            "controller": true, "blockOwnerDeletion": true,
        }],
    })
}

fn revision(target: &Target, number: u32, has_secrets: bool) -> Value {
    let connections = if number == 1 { CONNECTIONS } else { MORE_CONNECTIONS };
    json!({
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": metadata(target, &format!("{}-{number:010}", target.name)),
        "revision": number,
        "data": {"inputs": {"connections": connections}, "template": template(target, connections, has_secrets)},
    })
}

fn service(target: &Target) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(target, &target.name),
        "spec": {
            "clusterIP": "None",
            "selector": labels(target),
            "ports": [{"name": "memcached", "port": 11211, "targetPort": "memcached", "protocol": "TCP"}],
        },
    })
}

fn budget(target: &Target) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(target, &target.name),
        "spec": {"minAvailable": 1, "selector": {"matchLabels": labels(target)}},
    })
}

fn deployment(target: &Target, has_secrets: bool) -> Value {
    json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(target, &target.name),
        "spec": {
            "replicas": REPLICAS,
            "selector": {"matchLabels": labels(target)},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": template(target, CONNECTIONS, has_secrets),
        },
    })
}

fn template(target: &Target, connections: u32, has_secrets: bool) -> Value {
    let names = if has_secrets { vec![credentials_name(target), certificate_name(target)] } else { Vec::new() };
    let volumes: Vec<Value> = names.iter().map(|name| json!({"name": name, "secret": {"secretName": name}})).collect();
    let term = json!({"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": labels(target)}});
    let preferred = json!([{"weight": 100, "podAffinityTerm": term}]);
    json!({
        "metadata": {"labels": labels(target)},
        "spec": {
            "automountServiceAccountToken": false,
            "affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}},
            "containers": [container(&names, connections)],
            "securityContext": {
                "fsGroup": 11211, "runAsGroup": 11211, "runAsUser": 11211, "runAsNonRoot": true,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "volumes": volumes,
        },
    })
}

fn container(volumes: &[String], connections: u32) -> Value {
    let mounts: Vec<Value> = volumes
        .iter()
        .map(|name| json!({"name": name, "mountPath": format!("/etc/memcached/{name}"), "readOnly": true}))
        .collect();
    json!({
        "name": "memcached",
        "image": "memcached:1.6",
        "imagePullPolicy": "IfNotPresent",
        "args": ["-m", "64", "-c", connections.to_string(), "-t", "4", "-I", "1m"],
        "ports": [{"name": "memcached", "containerPort": 11211, "protocol": "TCP"}],
        "livenessProbe": {"tcpSocket": {"port": "memcached"}, "initialDelaySeconds": 10, "periodSeconds": 10},
        "readinessProbe": {"tcpSocket": {"port": "memcached"}, "initialDelaySeconds": 5, "periodSeconds": 5},
        "securityContext": {
            "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": {"drop": ["ALL"]},
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": mounts,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target() -> Target {
        Target { namespace: "bench-0001".into(), name: "cache-00050".into(), uid: "u-1".into() }
    }

    #[test]
    fn objects_are_spread_over_namespaces_unless_one_is_asked_for() {
        let spread = targets(Scenario::Create, 120);
        assert_eq!(namespaces(&spread), ["bench-0000", "bench-0001", "bench-0002"]);
        assert_eq!((spread[50].namespace.as_str(), spread[50].name.as_str()), ("bench-0001", "cache-00050"));
        assert_eq!(namespaces(&targets(Scenario::CreateOneNamespace, 120)), ["bench-0000"]);
    }

    #[test]
    fn every_child_belongs_to_its_object() {
        for (kind, child) in children(&target(), false) {
            assert_eq!(child["metadata"]["ownerReferences"][0]["uid"], "u-1", "{kind:?}");
            assert_eq!(child["metadata"]["namespace"], "bench-0001", "{kind:?}");
        }
    }

    #[test]
    fn two_secrets_are_declared_and_exist_under_the_same_names() {
        let (object, secrets) = (memcached(&target(), true), secrets(&target()));
        let security = &object["spec"]["security"];
        assert_eq!(security["sasl"]["credentialsSecretRef"]["name"], secrets[0]["metadata"]["name"]);
        assert_eq!(security["tls"]["certificateSecretRef"]["name"], secrets[1]["metadata"]["name"]);
        assert!(memcached(&target(), false)["spec"].get("security").is_none());
    }

    #[test]
    fn the_change_shows_in_the_template() {
        let before = &children(&target(), false)[2].1["spec"]["template"];
        let (revision, patch) = changed_children(&target());
        assert_ne!(*before, patch["spec"]["template"]);
        assert_eq!(revision["data"]["template"], patch["spec"]["template"]);
    }

    #[test]
    fn a_status_says_which_generation_was_seen() {
        let status = status(&target(), 2);
        assert_eq!(status["status"]["observedGeneration"], 2);
        let selector = status["status"]["selector"].as_str().unwrap();
        assert!(selector.contains("app.kubernetes.io/instance=cache-00050"), "{selector}");
    }
}
