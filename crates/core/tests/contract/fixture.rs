//! Caches for tests, written as people write them. The name differs from the product's on purpose.

#![allow(dead_code, reason = "every test binary uses another part")]

use std::collections::BTreeMap;

use memcached_api::Memcached;
use memcached_api::memcached::spec::MemcachedSpec;
use memcached_core::memcached::build::{Child, build_children, prepare_revision};
use memcached_core::memcached::revision::{InForce, decide};
use memcached_core::memcached::rule::Violation;
use memcached_core::memcached::{Validated, validate};
use serde_json::{Value, json};

/// A cache called `sessions` in the namespace `shop`.
pub fn sessions(spec: &Value) -> Memcached {
    let parsed: MemcachedSpec = serde_json::from_value(spec.clone()).unwrap();
    let written = serde_json::to_value(&parsed).unwrap();
    assert!(holds(&written, spec), "a field is unknown: {spec} became {written}");
    let mut cache = Memcached::new("sessions", parsed);
    cache.metadata.namespace = Some("shop".into());
    cache.metadata.uid = Some("7f0c0b7e-0000-4000-8000-000000000001".into());
    cache.metadata.generation = Some(1);
    cache
}

fn holds(there: &Value, given: &Value) -> bool {
    match (there, given) {
        (Value::Object(there), Value::Object(given)) => given.iter().all(|(key, value)| match there.get(key) {
            Some(there) => holds(there, value),
            None => {
                value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(serde_json::Map::is_empty)
            }
        }),
        _ => there == given,
    }
}

pub fn accepted(spec: &Value) -> Validated {
    validate(&sessions(spec)).unwrap_or_else(|violations| panic!("{spec} is refused: {violations:?}"))
}

/// The fields for which a declaration is refused.
pub fn refused(spec: &Value) -> Vec<String> {
    let violations = validate(&sessions(spec)).err().unwrap_or_default();
    violations.into_iter().map(|Violation { field, .. }| field).collect()
}

/// The template in force of a new cache.
pub fn first_template(cache: &Validated) -> InForce {
    let hash = (cache.sasl.is_some() || cache.tls.is_some()).then_some("5ec7e7");
    decide(cache, hash, &[], None)
}

pub fn built(cache: &Validated) -> BTreeMap<Child, Value> {
    build_children(cache, &first_template(cache).template, cache.fixed_replicas())
}

/// The children of a cache by kind, its first revision among them.
pub fn children(cache: &Validated) -> BTreeMap<Child, Value> {
    let revision = prepare_revision(&first_template(cache).new_revision.unwrap());
    let revision = revision.map(|prepared| (Child::Revision, prepared.object));
    built(cache).into_iter().chain(revision).collect()
}

pub fn child(kind: Child, spec: &Value) -> Value {
    let mut children = children(&accepted(spec));
    children.remove(&kind).unwrap_or_else(|| panic!("no {kind:?} of {spec}"))
}

/// Lays one declaration over another.
pub fn merged(base: &Value, over: &Value) -> Value {
    match (base, over) {
        (Value::Object(base), Value::Object(over)) => {
            let mut all = base.clone();
            for (key, value) in over {
                let below = all.get(key).map_or_else(|| value.clone(), |base| merged(base, value));
                all.insert(key.clone(), below);
            }
            Value::Object(all)
        }
        _ => over.clone(),
    }
}

pub fn with_sasl() -> Value {
    json!({"security": {"sasl": {"enabled": true, "credentialsSecretRef": {"name": "passwords"}}}})
}

pub fn with_tls() -> Value {
    json!({"security": {"tls": {"enabled": true, "certificateSecretRef": {"name": "server-cert"}}}})
}

pub fn with_client_certificates() -> Value {
    merged(&with_tls(), &json!({"security": {"tls": {"enableClientCert": true}}}))
}

pub fn with_monitoring() -> Value {
    json!({"monitoring": {"enabled": true}})
}

pub fn with_policy() -> Value {
    json!({"security": {"networkPolicy": {"enabled": true}}})
}

pub fn with_autoscaling() -> Value {
    json!({
        "resources": {"requests": {"cpu": "250m"}},
        "autoscaling": {"enabled": true, "maxReplicas": 7},
    })
}

/// Everything that a cache can have at once.
pub fn with_everything() -> Value {
    let mut all = json!({
        "replicas": 3,
        "image": "registry.example.org:5000/cache/memcached:1.6.45-alpine",
        "resources": {"requests": {"cpu": "250m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
        "memcached": {
            "maxMemoryMB": 512, "maxConnections": 2048, "threads": 8, "maxItemSize": "2m", "verbosity": 2,
            "extraArgs": ["-o", "slab_automove=1"],
        },
        "highAvailability": {
            "antiAffinityPreset": "hard",
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone", "whenUnsatisfiable": "ScheduleAnyway"},
            ],
            "podDisruptionBudget": {"enabled": true, "minAvailable": 2},
            "gracefulShutdown": {"enabled": true, "preStopDelaySeconds": 15, "terminationGracePeriodSeconds": 60},
        },
        "monitoring": {
            "enabled": true,
            "exporterImage": "registry.example.org/exporter:v9",
            "exporterResources": {"requests": {"cpu": "10m"}},
            "serviceMonitor": {
                "additionalLabels": {"release": "prometheus"}, "interval": "60s", "scrapeTimeout": "20s",
            },
        },
        "service": {
            "annotations": {"example.org/team": "checkout"},
            "type": "LoadBalancer",
            "client": {
                "annotations": {"example.org/internal": "true"},
                "loadBalancerClass": "example.org/internal",
                "loadBalancerSourceRanges": ["10.1.2.3/8", "2001:db8::/32"],
                "externalTrafficPolicy": "Local",
                "internalTrafficPolicy": "Cluster",
            },
        },
        "workload": {"rollout": {"minReadySeconds": 20, "progressDeadlineSeconds": 900}},
    });
    for more in [with_sasl(), with_client_certificates(), with_policy(), with_knobs()] {
        all = merged(&all, &more);
    }
    all
}

pub fn with_knobs() -> Value {
    json!({
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "cache", "operator": "Exists", "effect": "NoSchedule"}],
        "affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
            {"matchExpressions": [{"key": "arch", "operator": "In", "values": ["amd64"]}]},
        ]}}},
        "priorityClassName": "cache-critical",
        "serviceAccountName": "cache-runner",
        "imagePullSecrets": [{"name": "registry-login"}],
        "imagePullPolicy": "Always",
        "podLabels": {"team": "checkout"},
        "podAnnotations": {"example.org/note": "warm"},
        "env": [{"name": "TZ", "value": "UTC"}],
        "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
    })
}
