//! Asks agents what is in force in their pods.

use std::net::IpAddr;

use k8s_openapi::api::core::v1::Pod;
use memcached_core::memcached::build::AGENT_PORT;
use memcached_core::memcached::rollout::AgentStatus;
use operator_kit::http::HttpClient;
use operator_kit::telemetry::Chain;

/// Asks agents; only while something changes.
#[derive(Debug, Clone, Default)]
pub struct Agents {
    client: HttpClient,
}

impl Agents {
    /// What the agent of a pod says; an error in words if it does not.
    pub async fn ask(&self, pod: &Pod) -> Result<AgentStatus, String> {
        let address = pod.status.as_ref().and_then(|status| status.pod_ip.as_deref());
        let address: IpAddr = address.and_then(|ip| ip.parse().ok()).ok_or("the pod has no address")?;
        let port = u16::try_from(AGENT_PORT.1).unwrap_or_default();
        let answer = self.client.get(address, port, "/status").await.map_err(|error| Chain(&error).to_string())?;
        serde_json::from_slice(&answer).map_err(|_| "its answer cannot be read".to_owned())
    }
}
