//! A short-lived pod that tries whether what is desired starts on a node: the image is pulled there, and memcached runs
//! once with its arguments, its certificates and its passwords, before a cache is touched.

use k8s_openapi::api::core::v1::{Container, EmptyDirVolumeSource, Pod, PodSpec, PodTemplateSpec, Volume};
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use memcached_api::label;
use operator_model::rollout::Proof;
use sha2::{Digest, Sha256};

use super::agent_status::shortened;
use super::difference::server_arguments;
use crate::memcached::build::{COMMAND_SEPARATOR, owner};
use crate::memcached::secret::hex;
use crate::memcached::status::container_failure;
use crate::memcached::validate::Validated;

/// How long the kubelet lets it run, images pulled.
const DEADLINE_SECONDS: i64 = 600;

/// The name of the pod that proves a revision on a node.
pub fn proof_name(cache: &str, revision: &str, node: &str) -> String {
    let hash = Sha256::new().chain_update(revision).chain_update([0]).chain_update(node).finalize();
    let suffix: String = hex(&hash).chars().take(8).collect();
    format!("{cache}-proof-{suffix}")
}

/// The pod that proves a template on a node.
pub fn build_proof(cache: &Validated, revision: &str, template: &PodTemplateSpec, node: &str) -> Pod {
    let like = template.metadata.clone().unwrap_or_default();
    // As the servers, for policies that ask for labels, and meshes that are told by annotations to keep off.
    let mut labels = like.labels.unwrap_or_default();
    // But not one of them: no Service, no budget and no policy means it.
    labels.insert(label::NAME.into(), label::PROOF_VALUE.into());
    let spec = template.spec.clone().unwrap_or_default();
    let init_containers = spec.init_containers.clone().map(|all| all.into_iter().map(frugal).collect());
    let server = spec.containers.iter().find(|container| container.name == "memcached").cloned().unwrap_or_default();
    Pod {
        metadata: ObjectMeta {
            name: Some(proof_name(&cache.name, revision, node)),
            namespace: Some(cache.namespace.clone()),
            labels: Some(labels),
            annotations: like.annotations,
            owner_references: Some(vec![owner(cache)]),
            ..ObjectMeta::default()
        },
        spec: Some(PodSpec {
            init_containers,
            containers: vec![frugal(trial(server, template))],
            // Past the scheduler: it is about this node, and takes next to nothing of it.
            node_name: Some(node.to_owned()),
            restart_policy: Some("Never".into()),
            active_deadline_seconds: Some(DEADLINE_SECONDS),
            termination_grace_period_seconds: Some(5),
            volumes: spec.volumes.clone().map(|all| all.into_iter().map(short_lived).collect()),
            affinity: None,
            topology_spread_constraints: None,
            ..spec
        }),
        status: None,
    }
}

/// The container with the agent trying memcached: neither ports nor probes, and nobody waits when it stops.
fn trial(server: Container, template: &PodTemplateSpec) -> Container {
    let words = server.command.clone().unwrap_or_default();
    let mut agent = words.iter().take_while(|word| *word != COMMAND_SEPARATOR);
    let program = agent.next().cloned().unwrap_or_default();
    let target = agent.filter(|word| ["--memcached=", "--credentials-file="].iter().any(|flag| word.starts_with(flag)));
    let target: Vec<String> = target.cloned().collect();
    let name = words.iter().skip_while(|word| *word != COMMAND_SEPARATOR).nth(1).cloned();
    let mut command = vec![program, "try".to_owned()];
    command.extend(target);
    command.push(COMMAND_SEPARATOR.into());
    command.extend(name);
    Container {
        command: Some(command),
        args: Some(server_arguments(template)),
        ports: None,
        liveness_probe: None,
        readiness_probe: None,
        lifecycle: None,
        ..server
    }
}

/// A volume without a claim: one would wait for the scheduler, which is passed by, or take a disk for a moment.
fn short_lived(mut volume: Volume) -> Volume {
    if volume.ephemeral.take().is_some() {
        volume.empty_dir = Some(EmptyDirVolumeSource::default());
    }
    volume
}

/// A container that asks for next to nothing: the kubelet turns a pod away that does not fit beside the servers. Its
/// limits stay, for a quota may ask for them.
fn frugal(mut container: Container) -> Container {
    if let Some(resources) = container.resources.as_mut() {
        let asked = resources.requests.iter().chain(&resources.limits).flatten();
        let least = |name: &str| Quantity(if name == "cpu" { "1m" } else { "1Mi" }.into());
        let requests = asked.map(|(name, _)| (name.clone(), least(name))).collect();
        resources.requests = Some(requests);
        resources.claims = None;
    }
    container
}

/// What a proof says; `pod` is none if there is none yet.
pub fn verdict(pod: Option<&Pod>) -> Proof {
    let Some(pod) = pod else { return Proof::Missing };
    let status = pod.status.clone().unwrap_or_default();
    match status.phase.as_deref() {
        Some("Succeeded") => Proof::Good,
        Some("Failed") => Proof::Bad(last_words(pod)),
        _ => container_failure(pod).map_or(Proof::UnderWay, |failure| Proof::Bad(failure.message)),
    }
}

/// Why it ended, as far as anybody says.
fn last_words(pod: &Pod) -> String {
    let status = pod.status.clone().unwrap_or_default();
    let containers = status.init_container_statuses.into_iter().chain(status.container_statuses).flatten();
    let ended = containers.filter_map(|container| container.state?.terminated).filter(|ended| ended.exit_code != 0);
    let message = ended.filter_map(|ended| ended.message.or(ended.reason)).find(|text| !text.trim().is_empty());
    let node = pod.spec.as_ref().and_then(|spec| spec.node_name.clone()).unwrap_or_default();
    let Some(message) = message else {
        // The kubelet turned it away, or nobody waited any longer.
        let why = status.message.or(status.reason).unwrap_or_else(|| "no details".into());
        return format!("what is declared could not be tried on node {node:?}: {}", shortened(&why));
    };
    let line = message.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    format!("memcached does not start with what is declared, as tried on node {node:?}: {}", shortened(line))
}

#[cfg(test)]
#[path = "proof_tests.rs"]
mod tests;
