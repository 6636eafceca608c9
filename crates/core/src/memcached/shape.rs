//! The parts of a declaration that shape pods: what was said, and what was meant where nothing was said.
//!
//! Defaults are kept apart from what people say: another version of the operator may have others, and a webhook
//! may write them down. Neither is a change of the declaration.

use std::collections::BTreeMap;

use memcached_api::memcached::spec::{
    AntiAffinityPreset, HighAvailability, MemcachedSpec, Monitoring, Security, Server,
};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::memcached::validate::Validated;
use operator_model::image;

/// What shapes the pods of a cache, field by field.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// What the declaration says.
    said: BTreeMap<String, Value>,
    /// The defaults of that time.
    meant: BTreeMap<String, Value>,
}

impl Shape {
    /// The shape of a declaration, with today's defaults.
    pub fn of(cache: &Validated) -> Self {
        let said = said(cache).into_iter().filter(|(_, value)| !is_empty(value));
        Self { said: said.map(|(name, value)| (name.to_owned(), value)).collect(), meant: defaults(cache) }
    }

    /// Whether a declaration still says what this one said.
    pub fn is_same(&self, now: &Self) -> bool {
        self.said.keys().chain(now.said.keys()).all(|name| {
            match (self.said.get(name), now.said.get(name)) {
                // A default was written down.
                (None, Some(now)) => self.meant.get(name) == Some(now),
                // What was said is today's default.
                (Some(then), None) => now.meant.get(name) == Some(then),
                (then, now) => then == now,
            }
        })
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

fn defaults(cache: &Validated) -> BTreeMap<String, Value> {
    let settings = &cache.settings;
    let mut defaults = BTreeMap::from([
        ("image".to_owned(), json!(settings.image)),
        ("monitoring.exporterImage".to_owned(), json!(settings.exporter_image)),
    ]);
    let server = server_fields(&Server::default());
    defaults.extend(server.into_iter().map(|(name, value)| (name.to_owned(), value)));
    if cache.spec.high_availability.is_some() {
        defaults.insert("highAvailability.antiAffinityPreset".into(), json!(AntiAffinityPreset::default()));
    }
    // One field for all containers: it has a default where their images agree on one.
    let policy = image::default_pull_policy(&cache.image);
    if cache.exporter_image().is_none_or(|exporter| image::default_pull_policy(exporter) == policy) {
        defaults.insert("imagePullPolicy".into(), json!(policy));
    }
    defaults
}

fn server_fields(server: &Server) -> Vec<(&'static str, Value)> {
    let Server { max_memory_mb, max_connections, threads, max_item_size, verbosity, extra_args } = server;
    vec![
        ("memcached.maxMemoryMB", json!(max_memory_mb)),
        ("memcached.maxConnections", json!(max_connections)),
        ("memcached.threads", json!(threads)),
        ("memcached.maxItemSize", json!(max_item_size)),
        ("memcached.verbosity", json!(verbosity)),
        ("memcached.extraArgs", json!(extra_args)),
    ]
}

/// Every field that shapes pods. Named one by one, so that a new field has to be thought about here.
fn said(cache: &Validated) -> Vec<(&'static str, Value)> {
    let MemcachedSpec {
        // These shape no pods.
        replicas: _,
        autoscaling: _,
        service: _,
        workload: _,
        paused: _,
        warm_restart: _,
        // These are in `knobs`.
        node_selector: _,
        tolerations: _,
        affinity: _,
        priority_class_name: _,
        service_account_name: _,
        image_pull_secrets: _,
        image_pull_policy: _,
        pod_labels: _,
        pod_annotations: _,
        env: _,
        extra_volumes: _,
        extra_volume_mounts: _,
        image,
        version,
        resources,
        memcached,
        extstore,
        high_availability,
        monitoring,
        security,
    } = &cache.spec;
    let is_named = version.is_some() || image.as_ref().is_some_and(|image| !image.is_empty());
    let mut said = knobs(&cache.spec);
    said.extend([
        ("image", json!(is_named.then_some(&cache.image))),
        ("resources", json!(resources)),
        ("extstore", json!(extstore)),
    ]);
    said.extend(memcached.iter().flat_map(server_fields));
    said.extend(high_availability.iter().flat_map(availability_fields));
    said.extend(monitoring.iter().flat_map(monitoring_fields));
    said.extend(security.iter().flat_map(|security| security_fields(cache, security)));
    said
}

fn knobs(spec: &MemcachedSpec) -> Vec<(&'static str, Value)> {
    vec![
        ("nodeSelector", json!(spec.node_selector)),
        ("tolerations", json!(spec.tolerations)),
        ("affinity", json!(spec.affinity)),
        ("priorityClassName", json!(spec.priority_class_name)),
        ("serviceAccountName", json!(spec.service_account_name)),
        ("imagePullSecrets", json!(spec.image_pull_secrets)),
        ("imagePullPolicy", json!(spec.image_pull_policy)),
        ("podLabels", json!(spec.pod_labels)),
        ("podAnnotations", json!(spec.pod_annotations)),
        ("env", json!(spec.env)),
        ("extraVolumes", json!(spec.extra_volumes)),
        ("extraVolumeMounts", json!(spec.extra_volume_mounts)),
    ]
}

fn availability_fields(availability: &HighAvailability) -> Vec<(&'static str, Value)> {
    let HighAvailability {
        anti_affinity_preset,
        topology_spread_constraints,
        pod_disruption_budget: _,
        graceful_shutdown,
    } = availability;
    let shutdown = graceful_shutdown.as_ref().filter(|shutdown| shutdown.enabled);
    vec![
        ("highAvailability.antiAffinityPreset", json!(anti_affinity_preset)),
        ("highAvailability.topologySpreadConstraints", json!(topology_spread_constraints)),
        ("highAvailability.gracefulShutdown", json!(shutdown)),
    ]
}

fn monitoring_fields(monitoring: &Monitoring) -> Vec<(&'static str, Value)> {
    let Monitoring { enabled, exporter_image, exporter_resources, service_monitor: _ } = monitoring;
    if !enabled {
        return Vec::new();
    }
    let image = exporter_image.as_ref().filter(|image| !image.is_empty());
    vec![
        ("monitoring.enabled", json!(enabled)),
        ("monitoring.exporterImage", json!(image)),
        ("monitoring.exporterResources", json!(exporter_resources)),
    ]
}

fn security_fields(cache: &Validated, security: &Security) -> Vec<(&'static str, Value)> {
    let Security { pod_security_context, container_security_context, sasl: _, tls: _, network_policy: _ } = security;
    let sasl = cache.sasl.as_ref().map(|sasl| (sasl.mode, &sasl.secret));
    let tls = cache.tls.as_ref().map(|tls| (tls.declared, &tls.secret, tls.client_certificates));
    vec![
        // An empty context is one: it takes ours away.
        ("security.podSecurityContext", json!(pod_security_context.as_ref().map(|context| [context]))),
        ("security.containerSecurityContext", json!(container_security_context.as_ref().map(|context| [context]))),
        ("security.sasl", json!(sasl)),
        ("security.tls", json!(tls)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memcached::fixture::validated;
    use crate::memcached::settings::DEFAULT_IMAGE;

    fn shape(change: impl FnOnce(&mut MemcachedSpec)) -> Shape {
        Shape::of(&validated(change))
    }

    #[test]
    fn writing_down_a_default_says_nothing_new() {
        let silent = shape(|_| {});
        let explicit = shape(|spec| {
            spec.image = Some(DEFAULT_IMAGE.into());
            spec.memcached = Some(Server::default());
            spec.image_pull_policy = Some("IfNotPresent".into());
        });
        assert!(silent.is_same(&explicit) && explicit.is_same(&silent));
        assert!(!silent.is_same(&shape(|spec| spec.memcached = Some(Server { threads: 8, ..Server::default() }))));
    }

    #[test]
    fn another_default_of_another_version_says_nothing_new() {
        let silent = shape(|_| {});
        let mut older = silent.clone();
        older.meant.insert("image".into(), json!("memcached:1.5"));
        older.meant.insert("memcached.threads".into(), json!(2));
        assert!(older.is_same(&silent), "nothing was said then, nothing is said now");
        let written_down = shape(|spec| spec.image = Some("memcached:1.5".into()));
        assert!(older.is_same(&written_down), "the default of that time, written down by a webhook of that time");
        let other = shape(|spec| spec.image = Some("memcached:1.4".into()));
        assert!(!older.is_same(&other));
    }

    #[test]
    fn taking_back_what_was_said_is_a_change_unless_it_is_the_default() {
        let said = shape(|spec| spec.memcached = Some(Server { threads: 8, ..Server::default() }));
        assert!(!said.is_same(&shape(|_| {})));
    }
}
