//! The fields of the spec that decide about pods: a change of one of them, and of nothing else, makes new pods.

use memcached_api::memcached::spec::{
    AntiAffinityPreset, HighAvailability, MemcachedSpec, Monitoring, Security, Server,
};
use operator_model::image;
use operator_model::template::PodFields;
use serde_json::{Value, json};

use crate::memcached::validate::Validated;

/// What a spec declares about pods, with today's defaults for the rest.
pub fn rollout_fields(cache: &Validated) -> PodFields {
    PodFields::new(declared(cache), defaults(cache))
}

fn defaults(cache: &Validated) -> Vec<(&'static str, Value)> {
    let settings = &cache.settings;
    let mut defaults = server_fields(&Server::default());
    defaults.push(("image", json!(settings.image)));
    defaults.push(("monitoring.exporterImage", json!(settings.exporter_image)));
    defaults.push(("warmRestart.enabled", json!(cache.is_warm_by_default())));
    // Null where there is none: a default that is missing here is one of a field that there was not at the time.
    let preset = cache.spec.high_availability.as_ref().map(|_| AntiAffinityPreset::default());
    defaults.push(("highAvailability.antiAffinityPreset", json!(preset)));
    // One field for all containers: it has a default where their images agree on one.
    let policy = image::default_pull_policy(&cache.image);
    let agrees = cache.exporter_image().is_none_or(|exporter| image::default_pull_policy(exporter) == policy);
    defaults.push(("imagePullPolicy", json!(agrees.then_some(policy))));
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

/// Every declared field, one by one and without `..`: a new field does not compile until it is said here whether it makes
/// new pods.
fn declared(cache: &Validated) -> Vec<(&'static str, Value)> {
    let MemcachedSpec {
        // These make no new pods.
        replicas: _,
        autoscaling: _,
        service: _,
        workload: _,
        paused: _,
        // These are in `pod_spec_fields`.
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
        warm_restart,
        high_availability,
        monitoring,
        security,
    } = &cache.spec;
    let is_named = version.is_some() || image.as_ref().is_some_and(|image| !image.is_empty());
    let mut declared = pod_spec_fields(&cache.spec);
    declared.extend([
        ("image", json!(is_named.then_some(&cache.image))),
        ("resources", json!(resources)),
        ("extstore", json!(extstore)),
        ("warmRestart.enabled", json!(warm_restart.as_ref().map(|warm| warm.enabled))),
    ]);
    declared.extend(memcached.iter().flat_map(server_fields));
    declared.extend(high_availability.iter().flat_map(availability_fields));
    declared.extend(monitoring.iter().flat_map(monitoring_fields));
    declared.extend(security.iter().flat_map(|security| security_fields(cache, security)));
    declared
}

fn pod_spec_fields(spec: &MemcachedSpec) -> Vec<(&'static str, Value)> {
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
    use crate::memcached::pod_defaults::DEFAULT_IMAGE;

    fn fields(change: impl FnOnce(&mut MemcachedSpec)) -> PodFields {
        rollout_fields(&validated(change))
    }

    #[test]
    fn writing_down_a_default_says_nothing_new() {
        let silent = fields(|_| {});
        let explicit = fields(|spec| {
            spec.image = Some(DEFAULT_IMAGE.into());
            spec.memcached = Some(Server::default());
            spec.image_pull_policy = Some("IfNotPresent".into());
        });
        assert!(silent.is_same(&explicit) && explicit.is_same(&silent));
        assert!(!silent.is_same(&fields(|spec| spec.memcached = Some(Server { threads: 8, ..Server::default() }))));
    }

    #[test]
    fn another_default_of_another_version_says_nothing_new() {
        let silent = fields(|_| {});
        let older = json!({"image": "memcached:1.5", "memcached.threads": 2});
        let older: PodFields = serde_json::from_value(json!({"said": {}, "meant": older})).unwrap();
        assert!(older.is_same(&silent), "nothing was said then, nothing is said now");
        let written_down = fields(|spec| spec.image = Some("memcached:1.5".into()));
        assert!(older.is_same(&written_down), "the default of that time, written down by a webhook of that time");
        let other = fields(|spec| spec.image = Some("memcached:1.4".into()));
        assert!(!older.is_same(&other));
    }

    #[test]
    fn a_default_that_was_not_in_force_is_news_when_it_is_declared() {
        use memcached_api::memcached::spec::AntiAffinityPreset;
        let silent = fields(|_| {});
        let soft = |anti_affinity_preset| {
            fields(|spec| {
                let availability = HighAvailability { anti_affinity_preset, ..HighAvailability::default() };
                spec.high_availability = Some(availability);
            })
        };
        assert!(silent.is_same(&soft(None)), "a section alone restarts nothing");
        assert!(!silent.is_same(&soft(Some(AntiAffinityPreset::Soft))));
    }

    #[test]
    fn taking_back_what_was_said_is_a_change_unless_it_is_the_default() {
        let said = fields(|spec| spec.memcached = Some(Server { threads: 8, ..Server::default() }));
        assert!(!said.is_same(&fields(|_| {})));
    }
}
