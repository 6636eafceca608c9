//! Pods as tests see them: created, waited for, looked into.

use std::net::{IpAddr, SocketAddr};

use k8s_openapi::api::core::v1::{ContainerStatus, Pod};
use kube::api::PostParams;
use serde_json::{Value, json};
use testbed::namespace::Namespace;
use testbed::{Error, Result, wait};

/// How long a pod may take on a busy machine, in seconds.
pub const DEADLINE: u64 = 180;

/// A container that runs memcached on the usual port.
pub fn memcached_container(name: &str, image: &str, port: u16) -> Value {
    json!({
        "name": name,
        "image": image,
        "imagePullPolicy": "Never",
        "args": ["-m", "16", "-p", port.to_string()],
        "ports": [{"containerPort": port}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 1},
    })
}

/// Creates a pod and waits until it is ready.
pub async fn create_ready(namespace: &Namespace, name: &str, spec: Value) -> Result<Pod> {
    let document = json!({"metadata": {"name": name, "labels": {"app": name}}, "spec": spec});
    let pod: Pod = serde_json::from_value(document).map_err(|e| Error::Other(format!("no pod: {e}")))?;
    namespace.api::<Pod>().create(&PostParams::default(), &pod).await?;
    wait_for(namespace, name, "ready", is_ready).await
}

/// Waits until a pod is as it should be.
pub async fn wait_for(namespace: &Namespace, name: &str, what: &str, is_so: impl Fn(&Pod) -> bool) -> Result<Pod> {
    let pods = namespace.api::<Pod>();
    wait::until(format!("pod {name} to be {what}"), DEADLINE, async || {
        let pod = pods.get(name).await.map_err(|e| e.to_string())?;
        if is_so(&pod) { Ok(pod) } else { Err(serde_json::to_string(&pod.status).unwrap_or_default()) }
    })
    .await
}

/// Whether the kubelet calls it ready.
pub fn is_ready(pod: &Pod) -> bool {
    let conditions = pod.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}

/// Its address, with a port.
pub fn address(pod: &Pod, port: u16) -> Result<SocketAddr> {
    let ip = pod.status.as_ref().and_then(|status| status.pod_ip.as_ref());
    let ip: Option<IpAddr> = ip.and_then(|ip| ip.parse().ok());
    ip.map(|ip| SocketAddr::new(ip, port)).ok_or_else(|| Error::Other("the pod has no address".into()))
}

/// The status of one of its containers.
pub fn container(pod: &Pod, name: &str) -> Result<ContainerStatus> {
    let all = pod.status.as_ref().and_then(|status| status.container_statuses.as_ref());
    let found = all.and_then(|all| all.iter().find(|status| status.name == name));
    found.cloned().ok_or_else(|| Error::Other(format!("the pod has no container {name}")))
}
