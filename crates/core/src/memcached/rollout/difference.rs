//! What a change of the pod template means for a pod that runs: by far the most changes leave it where it is.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::core::v1::{Container, PodTemplateSpec};
use memcached_api::label;
use memcached_api::memcached::spec::WorkloadType;
use operator_model::difference::differences;

use super::argument::{keeps_memory, layout_changes};
use crate::memcached::build::COMMAND_SEPARATOR;

/// What `kubectl rollout restart` writes into a template.
pub const RESTARTED_AT: &str = "kubectl.kubernetes.io/restartedAt";

/// The container that holds the cache.
pub const SERVER: &str = "memcached";

/// What happens to a pod, from nothing to the worst.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Nothing at all.
    None,
    /// Nothing restarts.
    Live,
    /// memcached restarts in its pod and keeps its items.
    Warm,
    /// memcached restarts in its pod and starts empty, for these reasons.
    Cold(Vec<String>),
    /// The pod is replaced, and what it holds is lost, for these fields.
    Recreate(Vec<String>),
}

impl Effect {
    /// A word for it.
    pub const fn action(&self) -> &'static str {
        match self {
            Self::None | Self::Live => "ChangeLive",
            Self::Warm => "RestartWarm",
            Self::Cold(_) => "RestartCold",
            Self::Recreate(_) => "Replace",
        }
    }
}

impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("nothing changes"),
            Self::Live => f.write_str("live: nothing restarts"),
            Self::Warm => f.write_str("in place and warm: memcached restarts and keeps its items"),
            Self::Cold(why) => write!(f, "in place and cold: memcached restarts empty because of {}", why.join(", ")),
            Self::Recreate(why) => write!(f, "cold: the pod is replaced because of {}", why.join(", ")),
        }
    }
}

/// What separates two templates.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// What happens to a pod.
    pub effect: Effect,
    /// Containers with another image.
    pub images: BTreeMap<String, String>,
    /// memcached's arguments differ.
    pub has_other_arguments: bool,
    /// A restart is asked for.
    pub is_restart: bool,
}

impl Difference {
    /// Whether memcached's container gets another image.
    pub fn has_other_server(&self) -> bool {
        self.images.contains_key(SERVER)
    }
}

/// What a change of the template does to pods of a workload. A Deployment replaces them for whatever differs.
pub fn effect(workload: WorkloadType, from: &PodTemplateSpec, to: &PodTemplateSpec) -> Effect {
    if workload == WorkloadType::StatefulSet {
        return compare(from, to).effect;
    }
    match (serde_json::to_value(from), serde_json::to_value(to)) {
        _ if from == to => Effect::None,
        (Ok(from), Ok(to)) => Effect::Recreate(differences(&from, &to, false)),
        _ => Effect::Recreate(vec!["what cannot be compared".into()]),
    }
}

/// Compares the template that a pod is of with the one that it is to be of.
pub fn compare(from: &PodTemplateSpec, to: &PodTemplateSpec) -> Difference {
    let images = images(from, to);
    let (before, after) = (server_arguments(from), server_arguments(to));
    let has_other_arguments = before != after;
    let is_restart =
        [label::RESTART_TRIGGER, RESTARTED_AT].iter().any(|key| annotation(from, key) != annotation(to, key));
    let restarts = images.contains_key(SERVER) || has_other_arguments || is_restart;
    let recreated = other_fields(from, to);
    let effect = if !recreated.is_empty() {
        Effect::Recreate(recreated)
    } else if restarts {
        let mut cold = layout_changes(&before, &after);
        if !keeps_memory(&before) || !keeps_memory(&after) {
            cold.push("warmRestart, which is off".into());
        }
        if cold.is_empty() { Effect::Warm } else { Effect::Cold(cold) }
    } else if from == to {
        Effect::None
    } else {
        Effect::Live
    };
    Difference { effect, images, has_other_arguments, is_restart }
}

/// memcached's arguments: what follows its name in the command, and `args`.
pub fn server_arguments(template: &PodTemplateSpec) -> Vec<String> {
    let Some(server) = container(template, SERVER) else { return Vec::new() };
    let command = server.command.iter().flatten().skip_while(|word| *word != COMMAND_SEPARATOR).skip(2);
    command.chain(server.args.iter().flatten()).cloned().collect()
}

fn container<'a>(template: &'a PodTemplateSpec, name: &str) -> Option<&'a Container> {
    template.spec.as_ref()?.containers.iter().find(|container| container.name == name)
}

fn annotation<'a>(template: &'a PodTemplateSpec, key: &str) -> Option<&'a String> {
    template.metadata.as_ref()?.annotations.as_ref()?.get(key)
}

fn images(from: &PodTemplateSpec, to: &PodTemplateSpec) -> BTreeMap<String, String> {
    let containers = to.spec.iter().flat_map(|spec| &spec.containers);
    let changed = containers.filter(|new| container(from, &new.name).is_some_and(|old| old.image != new.image));
    changed.filter_map(|new| Some((new.name.clone(), new.image.clone()?))).collect()
}

/// The fields that cannot be changed in a pod, in which two templates differ.
fn other_fields(from: &PodTemplateSpec, to: &PodTemplateSpec) -> Vec<String> {
    match (serde_json::to_value(fixed(from)), serde_json::to_value(fixed(to))) {
        (Ok(from), Ok(to)) => differences(&from, &to, false),
        _ => vec!["what cannot be compared".into()],
    }
}

/// A template in which these fields, which can be changed in place, are as in another one, and everything else as it is.
pub fn edited(template: &PodTemplateSpec, like: &PodTemplateSpec, fields: &[&str]) -> PodTemplateSpec {
    let mut edited = template.clone();
    edited.metadata.clone_from(&like.metadata);
    take_agent(&mut edited, like);
    let Some(server) = edited.spec.as_mut().and_then(|spec| spec.containers.iter_mut().find(|one| one.name == SERVER))
    else {
        return edited;
    };
    if let Some(desired) = container(like, SERVER) {
        if fields.iter().any(|field| field.starts_with("image")) {
            server.image.clone_from(&desired.image);
            server.image_pull_policy.clone_from(&desired.image_pull_policy);
        }
        if !fields.iter().any(|field| field.starts_with("memcached.")) {
            return edited;
        }
        server.args.clone_from(&desired.args);
        let is_agents = |word: &&String| *word != COMMAND_SEPARATOR;
        let own = server.command.iter().flatten().take_while(is_agents);
        let theirs = desired.command.iter().flatten().skip_while(is_agents);
        server.command = Some(own.chain(theirs).cloned().collect());
    }
    edited
}

/// Pods that are made from now on get today's agent; those that run keep theirs.
fn take_agent(template: &mut PodTemplateSpec, like: &PodTemplateSpec) {
    let agents = like.spec.iter().flat_map(|spec| spec.init_containers.iter().flatten());
    let own = template.spec.iter_mut().flat_map(|spec| spec.init_containers.iter_mut().flatten());
    for (own, today) in own.zip(agents).filter(|(own, today)| own.name == today.name) {
        own.image.clone_from(&today.image);
        own.image_pull_policy.clone_from(&today.image_pull_policy);
    }
}

/// A template without what can be changed in place, and without what matters to a pod only when it is made: the image
/// of the agent, and when images are pulled.
fn fixed(template: &PodTemplateSpec) -> PodTemplateSpec {
    let mut fixed = template.clone();
    fixed.metadata = None;
    let Some(spec) = fixed.spec.as_mut() else { return fixed };
    for container in spec.init_containers.iter_mut().flatten() {
        container.image = None;
        container.image_pull_policy = None;
    }
    for container in &mut spec.containers {
        container.image_pull_policy = None;
    }
    if let Some(server) = spec.containers.iter_mut().find(|container| container.name == SERVER) {
        server.image = None;
        server.args = None;
        if let Some(command) = server.command.as_mut() {
            let agent = command.iter().take_while(|word| *word != COMMAND_SEPARATOR).count();
            command.truncate(agent);
        }
    }
    fixed
}

#[cfg(test)]
#[path = "difference_tests.rs"]
mod tests;
