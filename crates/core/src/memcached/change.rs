//! What each change does to pods: every field of a spec changed once, decided by the code that decides when it happens.
//! The documentation's table is generated from it, and tests carry it out.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use memcached_api::Memcached;
use memcached_api::label;
use memcached_api::memcached::spec::WorkloadType;
use serde_json::{Map, Value, json};

use crate::memcached::revision::decide;
use crate::memcached::rollout::{Effect, effect};
use crate::memcached::rule::Violation;
use crate::memcached::validate::{Validated, validate};

/// A change of one field.
#[derive(Debug, Clone, PartialEq)]
pub struct Change {
    /// The field, below `spec`.
    pub field: &'static str,
    /// What is declared before, beside a plain cache.
    pub before: Value,
    /// What is declared then.
    pub after: Value,
}

fn change(field: &'static str, before: Value, after: Value) -> Change {
    Change { field, before, after }
}

/// A field that was not declared, and is then.
fn set(field: &'static str, after: Value) -> Change {
    change(field, json!({}), after)
}

/// Every field, changed once, in the order of the documentation.
pub fn all() -> Vec<Change> {
    [beside_pods(), servers(), pods(), security()].concat()
}

/// Fields that are about other objects, or about what comes later.
fn beside_pods() -> Vec<Change> {
    let requests = json!({"resources": {"requests": {"cpu": "250m"}}});
    let scaled = json!({
        "resources": {"requests": {"cpu": "250m"}}, "autoscaling": {"enabled": true, "maxReplicas": 7}, "replicas": null,
    });
    let monitored = json!({"monitoring": {"enabled": true}});
    let monitor = json!({"monitoring": {"enabled": true, "serviceMonitor": {"interval": "60s"}}});
    let budget = json!({"podDisruptionBudget": {"enabled": true, "minAvailable": 1}});
    vec![
        set("replicas", json!({"replicas": 5})),
        change("autoscaling", requests, scaled),
        set("service", json!({"service": {"annotations": {"example.org/team": "a"}}})),
        set("highAvailability.podDisruptionBudget", json!({"highAvailability": budget})),
        set("security.networkPolicy", json!({"security": {"networkPolicy": {"enabled": true}}})),
        change("monitoring.serviceMonitor", monitored, monitor),
        set("workload.rollout", json!({"workload": {"rollout": {"minReadySeconds": 60}}})),
        set("paused", json!({"paused": true})),
    ]
}

/// Fields that are about memcached.
fn servers() -> Vec<Change> {
    let server = |field: &str, value: Value| json!({"memcached": {field: value}});
    vec![
        set("image", json!({"image": "memcached:1.6.45"})),
        change("version", json!({"version": "1.6.38"}), json!({"version": "1.6.45"})),
        set("memcached.maxConnections", server("maxConnections", json!(2048))),
        set("memcached.threads", server("threads", json!(8))),
        set("memcached.verbosity", server("verbosity", json!(1))),
        set("memcached.extraArgs", server("extraArgs", json!(["-R", "50"]))),
        set("memcached.maxItemSize", server("maxItemSize", json!("2m"))),
        set("memcached.maxMemoryMB", server("maxMemoryMB", json!(96))),
        set("resources", json!({"resources": {"requests": {"memory": "100Mi"}}})),
        set("extstore", json!({"extstore": {"size": "64Mi"}})),
        change("warmRestart", json!({}), json!({"warmRestart": {"enabled": false}})),
    ]
}

/// Fields that are about pods.
fn pods() -> Vec<Change> {
    let spread =
        json!([{"maxSkew": 1, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"}]);
    let affinity = json!({"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
        {"weight": 1, "podAffinityTerm": {"topologyKey": "kubernetes.io/hostname"}},
    ]}});
    let volumes = json!({"extraVolumes": [{"name": "scratch", "emptyDir": {}}]});
    let mut mounted = volumes.clone();
    merge(&mut mounted, &json!({"extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}]}));
    let toleration = json!({"key": "cache", "operator": "Exists", "effect": "NoSchedule"});
    let shutdown = json!({"enabled": true, "preStopDelaySeconds": 1, "terminationGracePeriodSeconds": 20});
    vec![
        set("podLabels", json!({"podLabels": {"team": "a"}})),
        set("podAnnotations", json!({"podAnnotations": {"example.org/note": "a"}})),
        set("highAvailability.antiAffinityPreset", json!({"highAvailability": {"antiAffinityPreset": "soft"}})),
        set(
            "highAvailability.topologySpreadConstraints",
            json!({"highAvailability": {"topologySpreadConstraints": spread}}),
        ),
        set("highAvailability.gracefulShutdown", json!({"highAvailability": {"gracefulShutdown": shutdown}})),
        set("nodeSelector", json!({"nodeSelector": {"kubernetes.io/os": "linux"}})),
        set("tolerations", json!({"tolerations": [toleration]})),
        set("affinity", json!({"affinity": affinity})),
        set("priorityClassName", json!({"priorityClassName": "system-cluster-critical"})),
        set("serviceAccountName", json!({"serviceAccountName": "default"})),
        set("imagePullSecrets", json!({"imagePullSecrets": [{"name": "registry"}]})),
        set("imagePullPolicy", json!({"imagePullPolicy": "Never"})),
        set("env", json!({"env": [{"name": "TZ", "value": "UTC"}]})),
        set("extraVolumes", volumes.clone()),
        change("extraVolumeMounts", volumes, mounted),
    ]
}

/// Fields that are about security and monitoring, where they add or take away something in the pods.
fn security() -> Vec<Change> {
    let monitoring = |section: Value| {
        let mut spec = json!({"monitoring": {"enabled": true}});
        merge(&mut spec, &json!({"monitoring": section}));
        spec
    };
    let own = json!({"exporterImage": "memcached:1.6.38"});
    let mut limited = own.clone();
    merge(&mut limited, &json!({"exporterResources": {"requests": {"cpu": "10m"}}}));
    let sasl = json!({"enabled": true, "credentialsSecretRef": {"name": "creds"}});
    let tls = json!({"enabled": true, "certificateSecretRef": {"name": "certs"}});
    let context = json!({"runAsNonRoot": true, "runAsUser": 11212, "seccompProfile": {"type": "RuntimeDefault"}});
    let container = json!({
        "allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}, "readOnlyRootFilesystem": false,
    });
    vec![
        set("monitoring.enabled", monitoring(json!({}))),
        change("monitoring.exporterImage", monitoring(json!({})), monitoring(own.clone())),
        change("monitoring.exporterResources", monitoring(own), monitoring(limited)),
        set("security.sasl", json!({"security": {"sasl": sasl}})),
        set("security.tls", json!({"security": {"tls": tls}})),
        set("security.podSecurityContext", json!({"security": {"podSecurityContext": context}})),
        set("security.containerSecurityContext", json!({"security": {"containerSecurityContext": container}})),
    ]
}

impl Change {
    /// The spec before and after, of a cache that this workload runs.
    pub fn specs(&self, workload: WorkloadType) -> [Value; 2] {
        [&self.before, &self.after].map(|part| {
            let mut spec = json!({"replicas": 3, "workload": {"type": workload}});
            merge(&mut spec, part);
            spec
        })
    }

    /// What it does to pods.
    ///
    /// # Errors
    ///
    /// If one of the two declarations cannot work.
    pub fn effect(&self, workload: WorkloadType) -> Result<Effect, Vec<Violation>> {
        let [before, after] = self.specs(workload).map(|spec| cache(&spec));
        Ok(between(&validate(&before)?, &validate(&after)?, [None, None]))
    }
}

/// What another content of a mounted Secret does to the template.
pub fn of_secret(workload: WorkloadType) -> Effect {
    let sasl = json!({"enabled": true, "credentialsSecretRef": {"name": "creds"}});
    let spec = json!({"workload": {"type": workload}, "security": {"sasl": sasl}});
    match validate(&cache(&spec)) {
        Ok(valid) => between(&valid, &valid, [Some("one"), Some("another")]),
        Err(_) => Effect::None,
    }
}

/// What another value of the restart trigger does.
pub fn of_restart_trigger(workload: WorkloadType) -> Effect {
    let before = cache(&json!({"workload": {"type": workload}}));
    let mut after = before.clone();
    after.metadata.annotations = Some([(label::RESTART_TRIGGER.to_owned(), "now".to_owned())].into());
    match (validate(&before), validate(&after)) {
        (Ok(before), Ok(after)) => between(&before, &after, [None, None]),
        _ => Effect::None,
    }
}

fn between(before: &Validated, after: &Validated, secrets: [Option<&str>; 2]) -> Effect {
    let [old, new] = secrets;
    let running = decide(before, old, &[], None);
    let revisions: Vec<_> = running.new_revision.into_iter().collect();
    let then: PodTemplateSpec = decide(after, new, &revisions, None).template;
    effect(after.workload, &running.template, &then)
}

fn cache(spec: &Value) -> Memcached {
    let mut cache = Memcached::new("sessions", serde_json::from_value(spec.clone()).unwrap_or_default());
    cache.metadata.namespace = Some("default".into());
    cache
}

/// Puts one object over another, field by field; null takes a field away.
fn merge(base: &mut Value, over: &Value) {
    let Value::Object(over) = over else {
        *base = over.clone();
        return;
    };
    if !base.is_object() {
        *base = Value::Object(Map::new());
    }
    let Value::Object(fields) = base else { return };
    for (name, value) in over {
        if value.is_null() {
            fields.remove(name);
        } else {
            merge(fields.entry(name.clone()).or_insert(Value::Null), value);
        }
    }
}
