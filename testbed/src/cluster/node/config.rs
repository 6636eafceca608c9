//! The configuration files of a node's components.

use std::path::Path;

use super::CONTAINERD_SOCKET;
use crate::artifact::PAUSE;
use crate::cluster::cgroup;
use crate::cluster::network::{BRIDGE, Network};

/// The node's name in the API.
pub const NODE_NAME: &str = "testbed";

/// The container runtime: everything of its own, below the cluster's directory.
pub fn containerd(dir: &Path, cni_plugins: &Path) -> String {
    format!(
        r#"version = 2
root = "{dir}/containerd"
state = "/run/containerd"

[grpc]
  address = "{CONTAINERD_SOCKET}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{PAUSE}"
  # Machines without CAP_SYS_RESOURCE refuse a lower score, those without AppArmor refuse profiles.
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{dir}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
"#,
        dir = dir.display(),
        cni = cni_plugins.display(),
    )
}

/// The pod network: one bridge, addresses handed out in order.
pub fn cni(network: Network) -> String {
    format!(
        r#"{{
  "cniVersion": "1.0.0",
  "name": "testbed",
  "plugins": [
    {{
      "type": "bridge", "bridge": "{BRIDGE}", "isGateway": true, "hairpinMode": true,
      "ipam": {{
        "type": "host-local", "dataDir": "/run/cni-addresses",
        "ranges": [[{{"subnet": "{pods}"}}]], "routes": [{{"dst": "0.0.0.0/0"}}]
      }}
    }},
    {{"type": "portmap", "capabilities": {{"portMappings": true}}}}
  ]
}}
"#,
        pods = network.pods(),
    )
}

/// The kubelet: lenient towards small, shared and old machines.
pub fn kubelet(dir: &Path, network: Network) -> String {
    format!(
        r#"apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
failCgroupV1: false
cgroupDriver: cgroupfs
cgroupRoot: {cgroup}
enforceNodeAllocatable: []
failSwapOn: false
containerRuntimeEndpoint: unix://{CONTAINERD_SOCKET}
authentication: {{anonymous: {{enabled: false}}, webhook: {{enabled: true}}, x509: {{clientCAFile: {dir}/pki/ca.crt}}}}
authorization: {{mode: Webhook}}
clusterDNS: ["{dns}"]
clusterDomain: cluster.local
resolvConf: {dir}/resolv.conf
volumePluginDir: {dir}/volume-plugins
featureGates: {{KubeletInUserNamespace: true}}
evictionHard: {{memory.available: 100Mi, nodefs.available: 1%, imagefs.available: 1%}}
imageGCHighThresholdPercent: 100
localStorageCapacityIsolation: false
maxPods: 250
"#,
        cgroup = cgroup::root(dir),
        dir = dir.display(),
        dns = network.bridge(),
    )
}

/// kube-proxy: Services by iptables, in the node's own network namespace.
pub fn kube_proxy(kubeconfig: &Path, network: Network) -> String {
    format!(
        r"apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: iptables
clusterCIDR: {pods}
clientConnection: {{kubeconfig: {kubeconfig}}}
hostnameOverride: {NODE_NAME}
conntrack: {{maxPerCore: 0}}
",
        pods = network.pods(),
        kubeconfig = kubeconfig.display(),
    )
}

/// CoreDNS: the cluster's names and no others.
pub fn coredns(kubeconfig: &Path, network: Network) -> String {
    format!(
        ". {{\n  bind {dns}\n  errors\n  kubernetes cluster.local in-addr.arpa ip6.arpa {{\n    kubeconfig {kubeconfig} testbed\n    pods insecure\n  }}\n  cache 5\n  loadbalance\n}}\n",
        dns = network.bridge(),
        kubeconfig = kubeconfig.display(),
    )
}
