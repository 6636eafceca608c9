//! Children of an object on their way from prepared to applied.

use std::collections::BTreeMap;

use kube_core::{DynamicObject, ResourceExt};
use serde_json::Value;

use crate::problem::Problem;

/// A kind of Kubernetes objects, as its API is addressed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceType {
    /// The API group; empty for the core group.
    pub group: &'static str,
    /// The version of the API.
    pub version: &'static str,
    /// The kind.
    pub kind: &'static str,
    /// The plural, as paths have it.
    pub plural: &'static str,
    /// Whether clusters may lack it: its CustomResourceDefinition is installed by others.
    pub is_optional: bool,
}

impl ResourceType {
    /// A kind that every cluster has.
    pub const fn new(group: &'static str, version: &'static str, kind: &'static str, plural: &'static str) -> Self {
        Self { group, version, kind, plural, is_optional: false }
    }

    /// The same, if clusters may lack it.
    #[must_use]
    pub const fn optional(self) -> Self {
        Self { is_optional: true, ..self }
    }

    /// Group and version, as objects have it.
    pub fn api_version(&self) -> String {
        if self.group.is_empty() { self.version.to_owned() } else { format!("{}/{}", self.group, self.version) }
    }
}

/// apps/v1
pub const CONTROLLER_REVISION: ResourceType =
    ResourceType::new("apps", "v1", "ControllerRevision", "controllerrevisions");
/// apps/v1
pub const DEPLOYMENT: ResourceType = ResourceType::new("apps", "v1", "Deployment", "deployments");
/// apps/v1
pub const STATEFUL_SET: ResourceType = ResourceType::new("apps", "v1", "StatefulSet", "statefulsets");
/// v1
pub const CONFIG_MAP: ResourceType = ResourceType::new("", "v1", "ConfigMap", "configmaps");
/// v1
pub const SERVICE: ResourceType = ResourceType::new("", "v1", "Service", "services");
/// v1
pub const POD: ResourceType = ResourceType::new("", "v1", "Pod", "pods");
/// policy/v1
pub const POD_DISRUPTION_BUDGET: ResourceType =
    ResourceType::new("policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets");
/// autoscaling/v2
pub const HORIZONTAL_POD_AUTOSCALER: ResourceType =
    ResourceType::new("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers");
/// networking.k8s.io/v1
pub const NETWORK_POLICY: ResourceType =
    ResourceType::new("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies");
/// cert-manager.io/v1
pub const CERTIFICATE: ResourceType =
    ResourceType::new("cert-manager.io", "v1", "Certificate", "certificates").optional();
/// monitoring.coreos.com/v1
pub const SERVICE_MONITOR: ResourceType =
    ResourceType::new("monitoring.coreos.com", "v1", "ServiceMonitor", "servicemonitors").optional();

/// Which child is meant: its kind and its name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChildRef {
    /// The kind.
    pub resource: ResourceType,
    /// The name.
    pub name: String,
}

impl ChildRef {
    /// The child of that kind and name.
    pub fn new(resource: ResourceType, name: impl Into<String>) -> Self {
        Self { resource, name: name.into() }
    }
}

/// A child as it is to be: the fields that are ours to decide.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// Which one.
    pub child: ChildRef,
    /// Its fields.
    pub object: Value,
}

/// A child that was applied, or why it was not.
#[derive(Debug, Clone)]
pub struct Applied {
    /// Which one.
    pub child: ChildRef,
    /// As it is now.
    pub result: Result<DynamicObject, Problem>,
}

/// The children of an object in one state: [`Prepared`] by pure functions, [`Applied`] by the kit.
#[derive(Debug, Clone)]
pub struct Resources<S> {
    /// No longer desired: deleted first, if they are ours.
    pub unwanted: Vec<ChildRef>,
    /// Nothing else is applied before these are.
    pub required: Vec<S>,
    /// The rest, in the order in which they are applied; one that fails does not keep the others from being tried.
    pub children: Vec<S>,
    /// Nobody looks back at them any more: deleted last, if they are ours.
    pub outdated: Vec<ChildRef>,
    /// What stands in the way beside the children themselves.
    pub problems: Vec<Problem>,
}

impl<S> Default for Resources<S> {
    fn default() -> Self {
        Self {
            unwanted: Vec::new(),
            required: Vec::new(),
            children: Vec::new(),
            outdated: Vec::new(),
            problems: Vec::new(),
        }
    }
}

impl<S> Resources<S> {
    /// No children are touched, for this reason.
    pub fn refused(problem: Problem) -> Self {
        Self { problems: vec![problem], ..Self::default() }
    }
}

impl Resources<Applied> {
    /// A child as it is now, if it was applied.
    pub fn get(&self, resource: ResourceType, name: &str) -> Option<&DynamicObject> {
        let mut all = self.required.iter().chain(&self.children);
        let found = all.find(|applied| applied.child.resource == resource && applied.child.name == name)?;
        found.result.as_ref().ok()
    }

    /// Everything that stands in the way.
    pub fn problems(&self) -> impl Iterator<Item = &Problem> {
        let failed = self.required.iter().chain(&self.children).filter_map(|applied| applied.result.as_ref().err());
        self.problems.iter().chain(failed)
    }

    /// Whether what the rest depends on is there: else nothing of it was begun.
    pub fn is_begun(&self) -> bool {
        self.required.iter().all(|applied| applied.result.is_ok())
    }
}

/// Objects by kind and name, as they are known.
pub type Objects = BTreeMap<ChildRef, DynamicObject>;

/// The version of an object as a number: the higher one is the newer one (KEP-5504).
pub fn version(object: &impl ResourceExt) -> u64 {
    object.resource_version().and_then(|version| version.parse().ok()).unwrap_or(0)
}
