//! The objects of a cache, one file each. All are named like the cache and owned by it.

mod apart;
mod argument;
mod autoscaler;
mod budget;
mod certificate;
mod deployment;
mod meta;
mod monitor;
pub mod pod;
mod policy;
mod service;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use serde::Serialize;
use serde_json::Value;

use crate::memcached::validate::Validated;

pub use apart::keeps_apart;
pub use argument::{EXTSTORE_DIRECTORY, SASL_DIRECTORY, TLS_DIRECTORY, arguments, command};
pub use meta::{labels, owner, selector};
pub use pod::VOLUMES;

/// A kind of child. There is at most one of each, but for revisions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Certificate,
    Revision,
    Service,
    ClientService,
    NetworkPolicy,
    Deployment,
    Budget,
    Autoscaler,
    ServiceMonitor,
}

impl Kind {
    /// All but revisions, in the order in which they are applied: who may connect is settled before servers run.
    pub const ALL: [Self; 8] = [
        Self::Certificate,
        Self::Service,
        Self::ClientService,
        Self::NetworkPolicy,
        Self::Deployment,
        Self::Budget,
        Self::Autoscaler,
        Self::ServiceMonitor,
    ];

    /// API group and version, kind, and plural.
    pub const fn resource(self) -> (&'static str, &'static str, &'static str, &'static str) {
        match self {
            Self::Certificate => ("cert-manager.io", "v1", "Certificate", "certificates"),
            Self::Revision => ("apps", "v1", "ControllerRevision", "controllerrevisions"),
            Self::Service | Self::ClientService => ("", "v1", "Service", "services"),
            Self::NetworkPolicy => ("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies"),
            Self::Deployment => ("apps", "v1", "Deployment", "deployments"),
            Self::Budget => ("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets"),
            Self::Autoscaler => ("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers"),
            Self::ServiceMonitor => ("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors"),
        }
    }

    /// The name of the kind.
    pub const fn name(self) -> &'static str {
        self.resource().2
    }

    /// The name of a cache's child.
    pub fn child_name(self, cache: &str) -> String {
        match self {
            Self::ClientService => format!("{cache}-client"),
            _ => cache.to_owned(),
        }
    }

    /// Whether clusters may lack this kind.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::Certificate | Self::ServiceMonitor)
    }
}

/// An object as it is to be, ready to be applied.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    pub kind: Kind,
    pub name: String,
    pub object: Value,
}

/// What a cache is to have, and what it is not to have any more.
#[derive(Debug, Clone, PartialEq)]
pub struct Resources {
    pub wanted: Vec<Prepared>,
    pub unwanted: Vec<Kind>,
}

/// The children of a cache whose pods are built from `template`.
///
/// `replicas` is none where somebody else decides the number.
pub fn build(cache: &Validated, template: &PodTemplateSpec, replicas: Option<i32>) -> Resources {
    let mut wanted = Vec::new();
    let mut unwanted = Vec::new();
    for kind in Kind::ALL {
        let object = match kind {
            Kind::Certificate => certificate::build_certificate(cache),
            Kind::Revision => None,
            Kind::Service => json(&service::build_service(cache)),
            Kind::ClientService => service::build_client_service(cache).and_then(|s| json(&s)),
            Kind::NetworkPolicy => policy::build_network_policy(cache).and_then(|p| json(&p)),
            Kind::Deployment => json(&deployment::build_deployment(cache, template.clone(), replicas)),
            Kind::Budget => budget::build_budget(cache).and_then(|b| json(&b)),
            Kind::Autoscaler => autoscaler::build_autoscaler(cache).and_then(|a| json(&a)),
            Kind::ServiceMonitor => monitor::build_service_monitor(cache),
        };
        match object {
            Some(object) => wanted.push(Prepared { kind, name: kind.child_name(&cache.name), object }),
            None => unwanted.push(kind),
        }
    }
    Resources { wanted, unwanted }
}

/// A revision, ready to be applied.
pub fn prepare_revision(revision: &ControllerRevision) -> Option<Prepared> {
    let name = revision.metadata.name.clone()?;
    Some(Prepared { kind: Kind::Revision, name, object: json(revision)? })
}

fn json(object: &impl Serialize) -> Option<Value> {
    serde_json::to_value(object).ok()
}
