//! What each command needs, so that nothing more is built for it.

use super::{
    Artifact, busybox_image, cni_plugins, containerd, etcd, exporter_image, newest_memcached_image, node_images, runc,
    sasl_image,
};

/// Programs of the host that a control plane needs while it runs, with their Debian packages.
const CONTROL_PLANE_TOOLS: &[(&str, &str)] = &[("setpriv", "util-linux"), ("setsid", "util-linux")];
/// The same for a server.
const SERVER_TOOLS: &[(&str, &str)] = &[("setpriv", "util-linux")];
/// The same for a node.
const NODE_TOOLS: &[(&str, &str)] = &[
    ("setpriv", "util-linux"),
    ("setsid", "util-linux"),
    ("unshare", "util-linux"),
    ("nsenter", "util-linux"),
    ("mount", "mount"),
    ("ip", "iproute2"),
    ("iptables", "iptables"),
];

/// What a command needs; nothing more is built for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Set {
    /// etcd, API server and controller manager.
    ControlPlane,
    /// A control plane whose nodes and pods are pretended.
    Fleet,
    /// Everything that runs containers, with the images.
    Node,
    /// A node and what it takes to run the other operator's suite on it.
    Compat,
    /// A node and what it takes to try every security mode on it.
    Security,
    /// A node and what it takes to install packages on it.
    Package,
    /// A control plane, pretended nodes and pods, and the other operator to be measured beside ours.
    Bench,
    /// What it takes to check the documentation.
    Book,
    /// `kubectl` alone.
    Kubectl,
    /// memcached as a process, without a cluster.
    Server,
}

impl Set {
    /// Programs of the host that it takes to run it, with their Debian packages.
    pub fn tools(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::ControlPlane | Self::Fleet | Self::Bench => CONTROL_PLANE_TOOLS,
            Self::Node | Self::Compat | Self::Security | Self::Package => NODE_TOOLS,
            Self::Book | Self::Kubectl => &[],
            Self::Server => SERVER_TOOLS,
        }
    }

    /// The parts, in the order in which they are built.
    pub fn artifacts(self) -> Vec<Artifact> {
        let mut parts = vec![];
        if !matches!(self, Self::Book | Self::Kubectl | Self::Server) {
            parts.extend([
                etcd(),
                Artifact::kubernetes("kube-apiserver"),
                Artifact::kubernetes("kube-controller-manager"),
            ]);
        }
        match self {
            Self::ControlPlane => {}
            Self::Book => parts.extend([Artifact::mdbook(), Artifact::promtool()]),
            Self::Kubectl => parts.push(Artifact::kubernetes("kubectl")),
            Self::Server => parts.extend([newest_memcached_image(), Artifact::server()]),
            Self::Fleet => parts.extend(fleet_parts()),
            Self::Bench => {
                parts.extend(fleet_parts());
                parts.extend([Artifact::kubernetes("kubectl"), Artifact::peer_operator()]);
            }
            Self::Node => parts.extend(node_parts()),
            Self::Security => {
                parts.extend(node_parts());
                parts.extend([sasl_image(), Artifact::gomemcache(), Artifact::python_clients()]);
                parts.extend(cert_manager_parts());
            }
            Self::Package => {
                parts.extend(node_parts());
                parts.extend([Artifact::helm(), Artifact::prometheus_kinds(), busybox_image()]);
                parts.extend(cert_manager_parts());
            }
            Self::Compat => {
                parts.extend(node_parts());
                parts.extend([Artifact::peer_suite(), exporter_image(), Artifact::chainsaw()]);
                parts.extend(cert_manager_parts());
            }
        }
        parts
    }
}

/// What it takes to pretend nodes and pods.
fn fleet_parts() -> [Artifact; 2] {
    [Artifact::kubernetes("kube-scheduler"), Artifact::kwok()]
}

/// What a node has besides a control plane.
fn node_parts() -> Vec<Artifact> {
    let mut parts: Vec<Artifact> =
        ["kube-scheduler", "kubectl", "kubelet", "kube-proxy"].map(Artifact::kubernetes).into();
    parts.extend([Artifact::coredns(), containerd(), runc(), cni_plugins()]);
    parts.extend(node_images());
    parts
}

/// What it takes to have certificates issued.
fn cert_manager_parts() -> [Artifact; 2] {
    [Artifact::cert_manager_kinds(), Artifact::cert_manager()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(set: Set) -> Vec<String> {
        set.artifacts().iter().map(|a| a.name().to_owned()).collect()
    }

    #[test]
    fn the_control_plane_does_not_wait_for_a_node() {
        let parts = names(Set::ControlPlane);
        assert_eq!(parts, ["etcd-server", "kube-apiserver", "kube-controller-manager"]);
    }

    #[test]
    fn the_node_does_not_wait_for_kwok() {
        assert!(!names(Set::Node).contains(&"kwok".to_owned()));
        assert!(names(Set::Fleet).contains(&"kwok".to_owned()));
    }

    #[test]
    fn the_node_does_not_wait_for_the_other_operators_suite() {
        let (node, compat) = (names(Set::Node), names(Set::Compat));
        let added = ["peer-suite", "exporter-image", "chainsaw", "cert-manager-kinds", "cert-manager"];
        assert_eq!(compat, [&node[..], &added.map(String::from)].concat());
    }

    #[test]
    fn nobody_waits_for_helm_but_those_who_install_packages() {
        assert!(names(Set::Package).contains(&"helm".to_owned()));
        for set in [Set::ControlPlane, Set::Fleet, Set::Node, Set::Compat, Set::Security, Set::Kubectl, Set::Server] {
            assert!(!names(set).contains(&"helm".to_owned()), "{set:?}");
        }
    }

    #[test]
    fn only_those_who_need_certificates_wait_for_cert_manager() {
        let has_it = |set| names(set).contains(&"cert-manager".to_owned());
        assert!([Set::Compat, Set::Security, Set::Package].into_iter().all(has_it));
        assert!(![Set::ControlPlane, Set::Fleet, Set::Node, Set::Book, Set::Server].into_iter().any(has_it));
    }

    #[test]
    fn a_benchmark_has_a_fleet_and_the_other_operator() {
        let (fleet, bench) = (names(Set::Fleet), names(Set::Bench));
        assert_eq!(bench, [&fleet[..], &["kubectl", "peer-operator"].map(String::from)].concat());
    }

    #[test]
    fn the_server_does_not_wait_for_a_cluster() {
        assert_eq!(names(Set::Server), ["memcached-image", "memcached-server"]);
    }
}
