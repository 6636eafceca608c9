//! The pod template: the container `memcached`, the exporter beside it, and where they may run.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{
    Affinity, Capabilities, Container, ContainerPort, EnvVar, ExecAction, Lifecycle, LifecycleHandler, PodAffinityTerm,
    PodAntiAffinity, PodSecurityContext, PodSpec, PodTemplateSpec, Probe, SeccompProfile, SecurityContext,
    TCPSocketAction, TopologySpreadConstraint, WeightedPodAffinityTerm,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::label;
use memcached_api::memcached::spec::{AntiAffinityPreset, GracefulShutdown};

use super::agent;
use super::argument::{SASL_DIRECTORY, arguments, command, is_binary, loopback_port};
use super::metadata::{labels, selector, workload_labels};
use super::service::ports;
use super::volume;
use crate::memcached::secret::PASSWORD_FILE;
use crate::memcached::validate::Validated;
use operator_model::image::default_pull_policy;

/// The user of the official image; numeric, so that the kubelet can see that it is not root.
const USER: i64 = 11211;

/// Where memcached's binary SASL looks for its password file.
const SASL_DATABASE: &str = "MEMCACHED_SASL_PWDB";
/// Where it looks for its configuration.
const SASL_CONFIGURATION: &str = "SASL_CONF_PATH";

/// Our agent in its image.
const AGENT: &str = "/memcached-agent";

/// The template as this version of the operator builds it.
pub fn build_template(cache: &Validated, secret_hash: Option<&str>) -> PodTemplateSpec {
    let mut labels = cache.spec.pod_labels.clone();
    labels.extend(workload_labels(cache));
    let annotations = annotations(cache, secret_hash);
    PodTemplateSpec {
        metadata: Some(ObjectMeta {
            labels: Some(labels),
            annotations: (!annotations.is_empty()).then_some(annotations),
            ..ObjectMeta::default()
        }),
        spec: Some(build_pod(cache)),
    }
}

fn annotations(cache: &Validated, secret_hash: Option<&str>) -> BTreeMap<String, String> {
    let mut annotations = cache.spec.pod_annotations.clone();
    // Orders to the agent are the operator's alone.
    for order in label::ORDERS {
        annotations.remove(order);
    }
    let ours = [(label::RESTART_TRIGGER, cache.restart_trigger.as_deref()), (label::SECRET_HASH, secret_hash)];
    for (key, value) in ours {
        // Ours even without a value: the template in force drops a secret hash that no Secret stands behind.
        annotations.remove(key);
        annotations.extend(value.map(|value| (key.to_owned(), value.to_owned())));
    }
    annotations
}

fn build_pod(cache: &Validated) -> PodSpec {
    let spec = &cache.spec;
    let mut containers = vec![memcached_container(cache)];
    containers.extend(exporter_container(cache));
    let volumes = volume::volumes(cache);
    PodSpec {
        init_containers: cache.has_agent().then(|| vec![install_agent(cache)]),
        containers,
        volumes: (!volumes.is_empty()).then_some(volumes),
        affinity: affinity(cache),
        topology_spread_constraints: spread(cache),
        termination_grace_period_seconds: graceful_shutdown(cache).map(|s| s.termination_grace_period_seconds),
        security_context: Some(pod_security_context(cache)),
        automount_service_account_token: Some(false),
        // The older field too: the API server copies the name there, and back again if only the newer one is taken away.
        service_account: spec.service_account_name.clone(),
        service_account_name: spec.service_account_name.clone(),
        priority_class_name: spec.priority_class_name.clone(),
        node_selector: (!spec.node_selector.is_empty()).then(|| spec.node_selector.clone()),
        tolerations: (!spec.tolerations.is_empty()).then(|| spec.tolerations.clone()),
        image_pull_secrets: (!spec.image_pull_secrets.is_empty()).then(|| spec.image_pull_secrets.clone()),
        ..PodSpec::default()
    }
}

fn memcached_container(cache: &Validated) -> Container {
    if cache.has_agent() {
        return supervised(cache, plain_container(cache));
    }
    let container = plain_container(cache);
    Container {
        command: command(cache),
        liveness_probe: Some(tcp_probe(cache.settings.liveness_seconds)),
        readiness_probe: Some(tcp_probe(cache.settings.readiness_seconds)),
        lifecycle: graceful_shutdown(cache).map(wait_before_stop),
        ..container
    }
}

/// The same with the agent as its first process: it stops memcached in its own way, and is asked how it is.
fn supervised(cache: &Validated, container: Container) -> Container {
    let mut ports = container.ports.unwrap_or_default();
    if cache.monitoring.is_some() && cache.exporter_image().is_none() {
        ports.push(container_port("metrics", 9150));
    }
    ports.push(container_port(agent::PORT.0, agent::PORT.1));
    let shutdown = graceful_shutdown(cache);
    let stop = agent::Stop {
        delay: shutdown.map_or(0, |shutdown| shutdown.pre_stop_delay_seconds),
        grace: shutdown.map_or(agent::DEFAULT_GRACE, |shutdown| shutdown.termination_grace_period_seconds),
    };
    Container {
        command: Some(agent::command(cache, command(cache), stop)),
        liveness_probe: Some(agent::probe("/healthz", cache.settings.liveness_seconds)),
        readiness_probe: Some(agent::probe("/readyz", agent::READINESS_SECONDS)),
        ports: Some(ports),
        ..container
    }
}

/// Puts the agent where memcached's container finds it, whatever its image has.
fn install_agent(cache: &Validated) -> Container {
    Container {
        image_pull_policy: Some(pull_policy(cache, &cache.settings.agent_image)),
        security_context: Some(container_security_context(cache)),
        ..agent::init_container(cache)
    }
}

fn plain_container(cache: &Validated) -> Container {
    let container_ports = ports(cache).into_iter().filter(|(name, _)| *name != "metrics");
    let mounts = volume::mounts(cache);
    let env = env(cache);
    Container {
        name: "memcached".into(),
        image: Some(cache.image.clone()),
        image_pull_policy: Some(pull_policy(cache, &cache.image)),
        args: Some(arguments(cache)),
        env: (!env.is_empty()).then_some(env),
        ports: Some(container_ports.map(|(name, port)| container_port(name, port)).collect()),
        resources: cache.spec.resources.clone(),
        volume_mounts: (!mounts.is_empty()).then_some(mounts),
        // What it says when it does not start ends up in the status of the cache.
        termination_message_policy: Some("FallbackToLogsOnError".into()),
        security_context: Some(container_security_context(cache)),
        ..Container::default()
    }
}

/// The exporter talks to the server over loopback.
fn exporter_container(cache: &Validated) -> Option<Container> {
    let monitoring = cache.monitoring.as_ref()?;
    let is_ours = cache.is_exported_by_agent();
    let (command, args) = if is_ours { agent_exporter(cache) } else { (None, stock_exporter(cache)) };
    let credentials = is_ours.then(|| volume::credentials_mount(cache)).flatten();
    let image = cache.exporter_image()?;
    Some(Container {
        name: "exporter".into(),
        image: Some(image.to_owned()),
        image_pull_policy: Some(pull_policy(cache, image)),
        command,
        args,
        volume_mounts: credentials.map(|mount| vec![mount]),
        ports: Some(vec![container_port("metrics", 9150)]),
        resources: monitoring.exporter_resources.clone(),
        security_context: Some(container_security_context(cache)),
        ..Container::default()
    })
}

/// Always written: server-side apply of another image keeps the policy that the API server chose for the image before.
fn pull_policy(cache: &Validated, image: &str) -> String {
    cache.spec.image_pull_policy.clone().unwrap_or_else(|| default_pull_policy(image).to_owned())
}

fn stock_exporter(cache: &Validated) -> Option<Vec<String>> {
    loopback_port(cache).map(|port| vec![format!("--memcached.address=127.0.0.1:{port}")])
}

/// Ours logs in where the port on loopback asks for it.
fn agent_exporter(cache: &Validated) -> (Option<Vec<String>>, Option<Vec<String>>) {
    let mut args = vec!["exporter".to_owned()];
    args.extend(loopback_port(cache).map(|port| format!("--memcached=127.0.0.1:{port}")));
    if !is_binary(cache) {
        args.push(format!("--credentials-file={SASL_DIRECTORY}/{PASSWORD_FILE}"));
    }
    (Some(vec![AGENT.into()]), Some(args))
}

fn env(cache: &Validated) -> Vec<EnvVar> {
    let mut env = cache.spec.env.clone();
    if is_binary(cache) {
        // A second variable of the same name would make the API server refuse the pods.
        env.retain(|variable| variable.name != SASL_DATABASE);
        let variable = |name: &str, value: String| EnvVar { name: name.into(), value: Some(value), value_from: None };
        env.push(variable(SASL_DATABASE, format!("{SASL_DIRECTORY}/{PASSWORD_FILE}")));
        // memcached does not start without a directory to look for a configuration in; none in it is fine.
        if !env.iter().any(|variable| variable.name == SASL_CONFIGURATION) {
            env.push(variable(SASL_CONFIGURATION, SASL_DIRECTORY.into()));
        }
    }
    env
}

fn container_port(name: &str, port: i32) -> ContainerPort {
    ContainerPort {
        name: Some(name.into()),
        container_port: port,
        protocol: Some("TCP".into()),
        ..ContainerPort::default()
    }
}

fn tcp_probe(seconds: i32) -> Probe {
    Probe {
        tcp_socket: Some(TCPSocketAction { port: IntOrString::String("memcached".into()), host: None }),
        initial_delay_seconds: Some(seconds),
        period_seconds: Some(seconds),
        ..Probe::default()
    }
}

fn graceful_shutdown(cache: &Validated) -> Option<&GracefulShutdown> {
    let availability = cache.spec.high_availability.as_ref()?;
    availability.graceful_shutdown.as_ref().filter(|shutdown| shutdown.enabled)
}

fn wait_before_stop(shutdown: &GracefulShutdown) -> Lifecycle {
    let command = vec!["sleep".into(), shutdown.pre_stop_delay_seconds.to_string()];
    Lifecycle {
        pre_stop: Some(LifecycleHandler {
            exec: Some(ExecAction { command: Some(command) }),
            ..LifecycleHandler::default()
        }),
        ..Lifecycle::default()
    }
}

/// The declared affinity, and our anti-affinity with it.
fn affinity(cache: &Validated) -> Option<Affinity> {
    let Some(availability) = &cache.spec.high_availability else {
        return cache.spec.affinity.clone();
    };
    let mut own = labels(&cache.name);
    own.remove(label::MANAGED_BY);
    let term = PodAffinityTerm {
        topology_key: "kubernetes.io/hostname".into(),
        label_selector: Some(LabelSelector { match_labels: Some(own), ..LabelSelector::default() }),
        ..PodAffinityTerm::default()
    };
    let mut affinity = cache.spec.affinity.clone().unwrap_or_default();
    let apart = affinity.pod_anti_affinity.get_or_insert_with(PodAntiAffinity::default);
    match availability.anti_affinity_preset.unwrap_or_default() {
        AntiAffinityPreset::Soft => {
            let preferred = WeightedPodAffinityTerm { weight: 100, pod_affinity_term: term };
            apart.preferred_during_scheduling_ignored_during_execution.get_or_insert_default().push(preferred);
        }
        AntiAffinityPreset::Hard => {
            apart.required_during_scheduling_ignored_during_execution.get_or_insert_default().push(term);
        }
    }
    Some(affinity)
}

/// A constraint without a selector would select no pod and spread nothing.
fn spread(cache: &Validated) -> Option<Vec<TopologySpreadConstraint>> {
    let constraints = &cache.spec.high_availability.as_ref()?.topology_spread_constraints;
    let completed = constraints.iter().cloned().map(|mut constraint| {
        constraint.label_selector.get_or_insert_with(|| selector(&cache.name));
        constraint
    });
    (!constraints.is_empty()).then(|| completed.collect())
}

fn pod_security_context(cache: &Validated) -> PodSecurityContext {
    let own = cache.spec.security.as_ref().and_then(|security| security.pod_security_context.clone());
    own.unwrap_or_else(|| PodSecurityContext {
        run_as_non_root: Some(true),
        run_as_user: Some(USER),
        run_as_group: Some(USER),
        fs_group: Some(USER),
        seccomp_profile: Some(SeccompProfile { type_: "RuntimeDefault".into(), localhost_profile: None }),
        ..PodSecurityContext::default()
    })
}

fn container_security_context(cache: &Validated) -> SecurityContext {
    let own = cache.spec.security.as_ref().and_then(|security| security.container_security_context.clone());
    own.unwrap_or_else(|| SecurityContext {
        allow_privilege_escalation: Some(false),
        read_only_root_filesystem: Some(true),
        capabilities: Some(Capabilities { drop: Some(vec!["ALL".into()]), add: None }),
        ..SecurityContext::default()
    })
}
