//! What the testbed is made of: each part with its version, and how it is built.

mod cargo;
mod debian;
mod go;
mod host;
mod image;
mod musl;
mod python;
mod sasl;
mod server;
mod set;

use std::path::Path;

use sha2::{Digest, Sha256};

use crate::error::{Result, Size};
use crate::progress::Task;
use crate::store::{Store, hex};

pub use host::ensure_tools;
pub use image::{
    ARCHIVE, MEMCACHED, PAUSE, SASL, busybox_image, exporter_image, memcached_images, newest_memcached_image,
    pause_image, sasl_image,
};
pub use server::command as server_command;
pub use set::Set;

/// The Kubernetes that is built; `go/kubernetes/go.mod` pins the same one.
pub const KUBERNETES: &str = "1.36.4";
/// The CoreDNS that is built; `go/coredns/go.mod` pins the same one.
pub const COREDNS: &str = "1.15.0";
/// The kwok that is built; `go/kwok/go.mod` pins the same one.
pub const KWOK: &str = "0.8.0";
/// The chainsaw that is built; `go/chainsaw/go.mod` pins the same one.
pub const CHAINSAW: &str = "0.2.14";
/// The Helm that is built; `go/helm/go.mod` pins the same one.
pub const HELM: &str = "4.3.1";
/// The Prometheus operator whose kinds are taken; `go/kinds/go.mod` pins the same one.
pub const PROMETHEUS_OPERATOR: &str = "0.85.0";
/// The cert-manager whose kinds are taken and whose controllers are built; `go/kinds/go.mod` and
/// `go/cert-manager/go.mod` pin the same one.
pub const CERT_MANAGER: &str = "1.21.2";
/// The Go client that is built; `go/gomemcache/go.mod` pins the same one.
pub const GOMEMCACHE: &str = "0.0.0-20260422231931-4d751bb6e37c";
/// The Prometheus whose promtool is built; `go/promtool/go.mod` pins the same one.
pub const PROMETHEUS: &str = "0.315.0";
/// The mdBook that is built.
pub const MDBOOK: &str = "0.5.4";
/// The cargo-deny that is built.
pub const CARGO_DENY: &str = "0.20.2";
/// The other operator whose suite is run, and which is measured beside ours; `go/peer/go.mod` and
/// `go/peer-operator/go.mod` pin the same one.
pub const PEER: &str = "0.4.0";

/// Something that is built once and cached.
#[derive(Debug, Clone)]
pub struct Artifact {
    name: String,
    version: String,
    recipe: Recipe,
}

#[derive(Debug, Clone)]
enum Recipe {
    Cargo(cargo::Program),
    Go(go::Program),
    GoDirectories(go::Directories),
    Debian(debian::Package),
    Image(image::Image),
    Musl,
    Server,
    Python,
    #[cfg(test)]
    Script(String),
}

impl Artifact {
    /// A program of Kubernetes, by its name.
    pub fn kubernetes(program: &'static str) -> Self {
        Self { name: program.into(), version: KUBERNETES.into(), recipe: Recipe::Go(go::kubernetes(program)) }
    }

    /// The cluster's name server.
    pub fn coredns() -> Self {
        Self { name: "coredns".into(), version: COREDNS.into(), recipe: Recipe::Go(go::coredns()) }
    }

    /// The pretender that makes nodes and pods look alive, with the stages it plays.
    pub fn kwok() -> Self {
        Self { name: "kwok".into(), version: KWOK.into(), recipe: Recipe::Go(go::kwok()) }
    }

    /// The runner of declarative tests against a cluster.
    pub fn chainsaw() -> Self {
        Self { name: "chainsaw".into(), version: CHAINSAW.into(), recipe: Recipe::Go(go::chainsaw()) }
    }

    /// What installs charts.
    pub fn helm() -> Self {
        Self { name: "helm".into(), version: HELM.into(), recipe: Recipe::Go(go::helm()) }
    }

    /// The kinds of the Prometheus operator, in `example/prometheus-operator-crd`.
    pub fn prometheus_kinds() -> Self {
        let recipe = Recipe::GoDirectories(go::prometheus_kinds());
        Self { name: "prometheus-kinds".into(), version: PROMETHEUS_OPERATOR.into(), recipe }
    }

    /// The kinds of cert-manager, in `deploy/crds`.
    pub fn cert_manager_kinds() -> Self {
        let recipe = Recipe::GoDirectories(go::cert_manager_kinds());
        Self { name: "cert-manager-kinds".into(), version: CERT_MANAGER.into(), recipe }
    }

    /// cert-manager's own controllers in one program: certificates, CA and self-signed issuers, the injector.
    pub fn cert_manager() -> Self {
        Self { name: "cert-manager".into(), version: CERT_MANAGER.into(), recipe: Recipe::Go(go::cert_manager()) }
    }

    /// The other operator's black-box suite, in `test/e2e`; in `config/crd/thirdparty` the kind it needs.
    pub fn peer_suite() -> Self {
        Self { name: "peer-suite".into(), version: PEER.into(), recipe: Recipe::GoDirectories(go::peer_suite()) }
    }

    /// The other operator itself, and beside it the files of the kinds that it needs.
    pub fn peer_operator() -> Self {
        Self { name: "peer-operator".into(), version: PEER.into(), recipe: Recipe::Go(go::peer_operator()) }
    }

    /// What checks and tests alerting rules.
    pub fn promtool() -> Self {
        Self { name: "promtool".into(), version: PROMETHEUS.into(), recipe: Recipe::Go(go::promtool()) }
    }

    /// What makes a book of the documentation.
    pub fn mdbook() -> Self {
        let program = cargo::Program { name: "mdbook", version: MDBOOK, features: "search" };
        Self { name: program.name.into(), version: MDBOOK.into(), recipe: Recipe::Cargo(program) }
    }

    /// What checks the licences and the sources of crates.
    pub fn cargo_deny() -> Self {
        let program = cargo::Program { name: "cargo-deny", version: CARGO_DENY, features: "" };
        Self { name: program.name.into(), version: CARGO_DENY.into(), recipe: Recipe::Cargo(program) }
    }

    /// A C compiler for static binaries.
    pub fn musl_compiler() -> Self {
        Self { name: musl::PROGRAM.into(), version: debian::release(), recipe: Recipe::Musl }
    }

    /// A client of memcached in Go.
    pub fn gomemcache() -> Self {
        Self { name: "gomemcache".into(), version: GOMEMCACHE.into(), recipe: Recipe::Go(go::gomemcache()) }
    }

    /// Clients of memcached in Python, to be found by `PYTHONPATH`.
    pub fn python_clients() -> Self {
        Self { name: "python-clients".into(), version: "1".into(), recipe: Recipe::Python }
    }

    /// memcached itself, to be run as a process.
    pub fn server() -> Self {
        Self { name: "memcached-server".into(), version: MEMCACHED.into(), recipe: Recipe::Server }
    }

    /// The named files of a Debian package, of the release that this machine runs.
    pub fn debian(package: &'static str, files: &'static [&'static str]) -> Self {
        Self {
            name: package.into(),
            version: debian::release(),
            recipe: Recipe::Debian(debian::Package { package, files }),
        }
    }

    /// A build for tests: a shell script that fills `$OUT`.
    #[cfg(test)]
    pub fn script(name: &str, script: &str) -> Self {
        Self { name: name.into(), version: "1".into(), recipe: Recipe::Script(script.into()) }
    }

    /// What people call it.
    pub fn label(&self) -> String {
        format!("{} {}", self.name, self.version)
    }

    /// The name alone.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its directory in the cache: another recipe is another directory.
    pub fn directory(&self) -> String {
        let mut hash = Sha256::new();
        for part in self.ingredients() {
            hash.update(part.len().to_le_bytes());
            hash.update(part);
        }
        let fingerprint: String = hex(&hash.finalize()).chars().take(12).collect();
        format!("{}-{}-{fingerprint}", self.name, self.version)
    }

    /// What it needs before it can be built.
    pub fn needs(&self) -> Vec<Self> {
        match &self.recipe {
            Recipe::Image(_) => vec![busybox()],
            Recipe::Server => vec![newest_memcached_image()],
            _ => Vec::new(),
        }
    }

    /// What its cached form and the work on the way take, at most.
    pub fn space(&self) -> Size {
        match &self.recipe {
            Recipe::Cargo(_) | Recipe::Go(_) => Size::mib(400),
            Recipe::Debian(_) | Recipe::GoDirectories(_) | Recipe::Musl | Recipe::Python | Recipe::Server => {
                Size::mib(200)
            }
            Recipe::Image(_) => Size::mib(600),
            #[cfg(test)]
            Recipe::Script(_) => Size::mib(1),
        }
    }

    /// Programs of the host that building it takes, with the Debian packages that have them.
    pub fn tools(&self) -> &'static [(&'static str, &'static str)] {
        match &self.recipe {
            Recipe::Image(image) => image.tools(),
            Recipe::Python => python::TOOLS,
            _ => &[],
        }
    }

    /// Builds into the empty directory `out`.
    pub fn build(&self, store: &Store, out: &Path, task: &Task) -> Result<()> {
        match &self.recipe {
            Recipe::Cargo(program) => program.build(out, task),
            Recipe::Go(program) => program.build(out, task),
            Recipe::GoDirectories(directories) => directories.build(out, task),
            Recipe::Debian(package) => package.build(store.home(), out, task),
            Recipe::Image(image) => image.build(&store.ensure(&busybox())?, out, task),
            Recipe::Musl => musl::build(store.home(), out, task),
            Recipe::Python => python::build(out, task),
            Recipe::Server => server::build(&store.ensure(&newest_memcached_image())?, out, task),
            #[cfg(test)]
            Recipe::Script(script) => {
                let mut shell = std::process::Command::new("sh");
                crate::program::run(&self.name, shell.args(["-c", script]).env("OUT", out)).map(drop)
            }
        }
    }

    fn ingredients(&self) -> Vec<Vec<u8>> {
        match &self.recipe {
            Recipe::Cargo(program) => program.ingredients(),
            Recipe::Go(program) => program.ingredients(),
            Recipe::GoDirectories(directories) => directories.ingredients(),
            Recipe::Debian(package) => package.ingredients(),
            Recipe::Image(image) => image.ingredients(),
            Recipe::Musl => musl::ingredients(),
            Recipe::Python => python::ingredients(),
            Recipe::Server => vec![server::GENERATION.into(), newest_memcached_image().directory().into_bytes()],
            #[cfg(test)]
            Recipe::Script(script) => vec![script.clone().into_bytes()],
        }
    }
}

/// The database of the API server.
pub fn etcd() -> Artifact {
    Artifact::debian("etcd-server", &["etcd"])
}

/// The container runtime and its client.
pub fn containerd() -> Artifact {
    Artifact::debian("containerd", &["containerd", "containerd-shim-runc-v2", "ctr"])
}

/// What starts a container.
pub fn runc() -> Artifact {
    Artifact::debian("runc", &["runc"])
}

/// The pod network.
pub fn cni_plugins() -> Artifact {
    Artifact::debian("containernetworking-plugins", &["bridge", "host-local", "loopback", "portmap"])
}

/// A static shell and `sleep` for images that have neither.
fn busybox() -> Artifact {
    Artifact::debian("busybox-static", &["busybox"])
}

/// The images that a fresh node knows.
pub fn node_images() -> Vec<Artifact> {
    let mut images = vec![pause_image()];
    images.extend(memcached_images());
    images
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_recipe_is_another_directory() {
        let one = Artifact::script("same", "echo 1").directory();
        assert_eq!(one, Artifact::script("same", "echo 1").directory());
        assert_ne!(one, Artifact::script("same", "echo 2").directory());
    }

    #[test]
    fn go_modules_pin_the_versions_we_announce() {
        for (module, line) in [
            (go::KUBERNETES_MOD, format!("k8s.io/kubernetes v{KUBERNETES}")),
            (go::COREDNS_MOD, format!("github.com/coredns/coredns v{COREDNS}")),
            (go::KWOK_MOD, format!("sigs.k8s.io/kwok v{KWOK}")),
            (go::CHAINSAW_MOD, format!("github.com/kyverno/chainsaw v{CHAINSAW}")),
            (go::PROMTOOL_MOD, format!("github.com/prometheus/prometheus v{PROMETHEUS}")),
            (go::HELM_MOD, format!("helm.sh/helm/v4 v{HELM}")),
            (go::KINDS_MOD, format!("prometheus-operator v{PROMETHEUS_OPERATOR}")),
            (go::KINDS_MOD, format!("cert-manager v{CERT_MANAGER}")),
            (go::CERT_MANAGER_MOD, format!("github.com/cert-manager/cert-manager v{CERT_MANAGER}")),
            (go::GOMEMCACHE_MOD, format!("github.com/bradfitz/gomemcache v{GOMEMCACHE}")),
            (go::PEER_MOD, format!("github.com/c5c3/memcached-operator v{PEER}")),
            (go::PEER_OPERATOR_MOD, format!("github.com/c5c3/memcached-operator v{PEER}")),
        ] {
            assert!(module.contains(&line), "{line} is not what go.mod requires");
        }
    }
}
