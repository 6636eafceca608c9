//! The objects of a cache, one file each. All are named like the cache and owned by it.

mod agent;
mod anti_affinity;
mod argument;
mod certificate;
mod deployment;
mod horizontal_pod_autoscaler;
mod metadata;
mod network_policy;
pub mod pod;
mod pod_disruption_budget;
mod service;
mod service_monitor;
mod stateful_set;
mod volume;

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use memcached_api::memcached::reason;
use memcached_api::memcached::spec::WorkloadType;
use operator_model::problem::Problem;
use operator_model::resource::{
    CERTIFICATE, CONTROLLER_REVISION, ChildRef, DEPLOYMENT, HORIZONTAL_POD_AUTOSCALER, NETWORK_POLICY,
    POD_DISRUPTION_BUDGET, Prepared, ResourceType, Resources, SERVICE, SERVICE_MONITOR, STATEFUL_SET,
};
use operator_model::template::outdated;
use serde::Serialize;
use serde_json::Value;

use crate::memcached::observed::Observed;
use crate::memcached::revision::decide;
use crate::memcached::secret;
use crate::memcached::validate::{Scale, Validated};

pub use agent::{COMMAND_SEPARATOR, MEMORY_DIRECTORY, PORT as AGENT_PORT};
pub use anti_affinity::keeps_apart;
pub use argument::{EXTSTORE_DIRECTORY, SASL_DIRECTORY, TLS_DIRECTORY, arguments, command};
pub use metadata::{labels, owner, selector};
pub use volume::VOLUMES;

/// Where our own volumes are mounted.
pub const DIRECTORIES: [&str; 6] =
    [SASL_DIRECTORY, TLS_DIRECTORY, EXTSTORE_DIRECTORY, agent::DIRECTORY, agent::PODINFO_DIRECTORY, MEMORY_DIRECTORY];

/// A child of a cache. There is at most one of each, but for revisions. In the order in which they are applied: who may
/// connect is settled before servers run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Child {
    Certificate,
    Revision,
    Service,
    ClientService,
    NetworkPolicy,
    Deployment,
    StatefulSet,
    Budget,
    Autoscaler,
    ServiceMonitor,
}

impl Child {
    /// All but revisions.
    pub const ALL: [Self; 9] = [
        Self::Certificate,
        Self::Service,
        Self::ClientService,
        Self::NetworkPolicy,
        Self::Deployment,
        Self::StatefulSet,
        Self::Budget,
        Self::Autoscaler,
        Self::ServiceMonitor,
    ];

    /// Its kind.
    pub const fn resource(self) -> ResourceType {
        match self {
            Self::Certificate => CERTIFICATE,
            Self::Revision => CONTROLLER_REVISION,
            Self::Service | Self::ClientService => SERVICE,
            Self::NetworkPolicy => NETWORK_POLICY,
            Self::Deployment => DEPLOYMENT,
            Self::StatefulSet => STATEFUL_SET,
            Self::Budget => POD_DISRUPTION_BUDGET,
            Self::Autoscaler => HORIZONTAL_POD_AUTOSCALER,
            Self::ServiceMonitor => SERVICE_MONITOR,
        }
    }

    /// Its name.
    pub fn name(self, cache: &str) -> String {
        match self {
            Self::ClientService => format!("{cache}-client"),
            _ => cache.to_owned(),
        }
    }

    fn reference(self, cache: &str) -> ChildRef {
        ChildRef::new(self.resource(), self.name(cache))
    }
}

/// The kinds of all children.
pub const RESOURCES: &[ResourceType] = &[
    CERTIFICATE,
    CONTROLLER_REVISION,
    SERVICE,
    NETWORK_POLICY,
    DEPLOYMENT,
    STATEFUL_SET,
    POD_DISRUPTION_BUDGET,
    HORIZONTAL_POD_AUTOSCALER,
    SERVICE_MONITOR,
];

/// What is to be applied, and what the status has to know about it.
#[derive(Debug, Default)]
pub struct Built {
    pub resources: Resources<Prepared>,
    /// In what this version of the operator would build the pods differently.
    pub newer_defaults: Vec<String>,
}

/// Builds what a cache is to have, from its spec and from what is there.
pub fn build(cache: &Validated, observed: &Observed) -> Built {
    let hash = secret::hash(cache, &observed.secrets);
    let in_force = decide(cache, hash.as_deref(), &observed.revisions, observed.reflecting());
    let missing = secret::missing(cache, &observed.secrets).into_iter();
    // Its watch tells when it is there.
    let missing = missing.map(|message| Problem::new(reason::SECRET_NOT_FOUND, message, None));
    let problems = missing.chain(observed.problems.iter().cloned()).chain(second_workload(cache, observed)).collect();
    let newer_defaults = in_force.newer_defaults.clone();
    if cache.paused {
        return Built { resources: Resources { problems, ..Resources::default() }, newer_defaults };
    }
    let mut all = build_children(cache, &in_force.template, replicas(cache, observed.running_replicas(cache.workload)));
    // What runs pods is never deleted: it would take what they hold with it.
    let is_workload = |child: &Child| matches!(child, Child::Deployment | Child::StatefulSet);
    let unwanted = Child::ALL.into_iter().filter(|child| !all.contains_key(child) && !is_workload(child));
    let unwanted = unwanted.map(|child| child.reference(&cache.name)).collect();
    if !observed.is_workload_known {
        // Without its count it cannot be applied safely.
        all.retain(|child, _| !is_workload(child));
    }
    let revision = in_force.new_revision.or_else(|| observed.orphaned_revision(cache));
    let children = all.into_iter().map(|(child, object)| Prepared { child: child.reference(&cache.name), object });
    let outdated = outdated(&observed.revisions).into_iter().filter_map(|old| old.metadata.name.clone());
    let resources = Resources {
        unwanted,
        // Without its revision a template must not be used: nobody would know what it was built from.
        required: revision.as_ref().and_then(prepare_revision).into_iter().collect(),
        children: children.collect(),
        outdated: outdated.map(|name| ChildRef::new(CONTROLLER_REVISION, name)).collect(),
        problems,
    };
    Built { resources, newer_defaults }
}

/// An older operator that was put back over a cache without a declared type leaves a Deployment beside its StatefulSet.
fn second_workload(cache: &Validated, observed: &Observed) -> Option<Problem> {
    observed.own_deployment().and(observed.own_stateful_set())?;
    let name = &cache.name;
    let message = format!(
        "both a Deployment and a StatefulSet run this cache; the StatefulSet is kept: kubectl delete deployment {name}"
    );
    Some(Problem::new(reason::NAME_TAKEN, message, None))
}

/// The count to send: the declared one; none while an autoscaler decides; else whatever runs.
fn replicas(cache: &Validated, running: Option<i32>) -> Option<i32> {
    match &cache.scale {
        Scale::Auto(_) => None,
        Scale::Fixed(_) if cache.spec.replicas.is_none() => running.or(cache.fixed_replicas()),
        Scale::Fixed(count) => Some(*count),
    }
}

/// The children of a cache whose pods are built from `template`.
///
/// `replicas` is none where somebody else decides the number.
pub fn build_children(cache: &Validated, template: &PodTemplateSpec, replicas: Option<i32>) -> BTreeMap<Child, Value> {
    let object = |child| match child {
        Child::Certificate => certificate::build_certificate(cache),
        Child::Service => json(&service::build_service(cache)),
        Child::ClientService => service::build_client_service(cache).and_then(|s| json(&s)),
        Child::NetworkPolicy => network_policy::build_network_policy(cache).and_then(|p| json(&p)),
        Child::Deployment if cache.workload == WorkloadType::Deployment => {
            json(&deployment::build_deployment(cache, template.clone(), replicas))
        }
        Child::StatefulSet if cache.workload == WorkloadType::StatefulSet => {
            json(&stateful_set::build_stateful_set(cache, template.clone(), replicas))
        }
        Child::Revision | Child::Deployment | Child::StatefulSet => None,
        Child::Budget => pod_disruption_budget::build_budget(cache).and_then(|b| json(&b)),
        Child::Autoscaler => horizontal_pod_autoscaler::build_autoscaler(cache).and_then(|a| json(&a)),
        Child::ServiceMonitor => service_monitor::build_service_monitor(cache),
    };
    Child::ALL.into_iter().filter_map(|child| Some((child, object(child)?))).collect()
}

/// A revision, ready to be applied.
pub fn prepare_revision(revision: &ControllerRevision) -> Option<Prepared> {
    let child = ChildRef::new(CONTROLLER_REVISION, revision.metadata.name.clone()?);
    Some(Prepared { child, object: json(revision)? })
}

fn json(object: &impl Serialize) -> Option<Value> {
    serde_json::to_value(object).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kind_of_every_child_is_watched() {
        for child in Child::ALL {
            assert!(RESOURCES.contains(&child.resource()), "{child:?}");
        }
    }
}
