//! The Services in front of the servers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The Services in front of the servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Service {
    /// Annotations of the headless Service.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// Adds a second Service `<name>-client` of this type; the headless one stays as it is.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub type_: Option<ServiceType>,
    /// How the second Service is set up. Needs `type`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientService>,
}

/// The type of the second Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "a described variant would turn the enum into a list of alternatives")]
pub enum ServiceType {
    ClusterIP,
    NodePort,
    LoadBalancer,
}

/// How the second Service is set up, in the words of a Service.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ClientService {
    /// Annotations of the second Service: how most clouds are told to keep a load balancer internal.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub annotations: BTreeMap<String, String>,
    /// The class of the load balancer. Only with type `LoadBalancer`, and not changed later.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 317))]
    pub load_balancer_class: Option<String>,
    /// The addresses that may connect through the load balancer, as ranges (`10.0.0.0/8`); every one if empty. Only with
    /// type `LoadBalancer`, and only where the load balancer supports it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 256), extend("x-kubernetes-list-type" = "atomic"))]
    pub load_balancer_source_ranges: Vec<String>,
    /// `Local` keeps the client's address and leaves out nodes without a server; `Cluster` is Kubernetes' default. Only
    /// with type `NodePort` or `LoadBalancer`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_traffic_policy: Option<TrafficPolicy>,
    /// `Local` connects pods to a server on their own node only; `Cluster` is Kubernetes' default.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internal_traffic_policy: Option<TrafficPolicy>,
}

/// Where traffic may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "a described variant would turn the enum into a list of alternatives")]
pub enum TrafficPolicy {
    Cluster,
    Local,
}

impl TrafficPolicy {
    /// The policy as Kubernetes writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Cluster => "Cluster",
            Self::Local => "Local",
        }
    }
}
