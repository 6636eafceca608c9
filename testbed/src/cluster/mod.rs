//! A running cluster, whoever runs it: clients, users, namespaces, logs, the audit log.

mod api_server;
mod cgroup;
pub mod control_plane;
pub mod launch;
pub mod lease;
mod network;
pub mod node;
pub mod own;
pub(crate) mod port;
pub(crate) mod process;
pub mod state;

use std::path::{Path, PathBuf};
use std::process::Command;

use kube::Client;
use kube::config::{KubeConfigOptions, Kubeconfig};

use crate::audit::AuditLog;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::namespace::Namespace;
use crate::pki::{Pki, User, write_secret};
use crate::program::run;
use crate::progress::Progress;
use crate::store::Store;

pub(crate) use api_server::Plan;
pub(crate) use process::Processes;

/// A way into a running cluster.
#[derive(Debug, Clone)]
pub struct Cluster {
    dir: PathBuf,
    url: String,
    pki: Pki,
}

impl Cluster {
    /// The cluster whose files are in `dir` and whose API server is at `url`.
    fn at(dir: &Path, url: String) -> Result<Self> {
        Ok(Self { dir: dir.to_path_buf(), url, pki: Pki::create(dir.join("pki"))? })
    }

    /// The cluster that a state directory tells of.
    pub fn of(state: &state::State) -> Result<Self> {
        let name = &state.description.name;
        let starting = |_| Error::Other(format!("cluster {name:?} is not ready: see `testbed status`"));
        let url = std::fs::read_to_string(state.dir.join("url")).map_err(starting)?;
        Ok(Self { dir: state.dir.clone(), url, pki: Pki::open(state.dir.join("pki"))? })
    }

    /// Makes the cluster known to other processes: its address, and the administrator's kubeconfig.
    fn publish(&self) -> Result<()> {
        write_secret(&self.kubeconfig(), &self.pki.kubeconfig(&self.url, &User::admin())?)?;
        write_secret(&self.dir.join("url"), &self.url)
    }

    /// Where the API server is.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.dir.join("admin.kubeconfig")
    }

    /// A client that may do everything.
    pub async fn client(&self) -> Result<Client> {
        self.client_as(&User::admin()).await
    }

    /// A client that is `user`, with the rights that RBAC gives that user and no others.
    pub async fn client_as(&self, user: &User) -> Result<Client> {
        let unusable = |why: String| Error::Credentials { action: "make a client", why };
        let text = self.pki.kubeconfig(&self.url, user)?;
        let kubeconfig = Kubeconfig::from_yaml(&text).map_err(|e| unusable(e.to_string()))?;
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default())
            .await
            .map_err(|e| unusable(e.to_string()))?;
        Ok(Client::try_from(config)?)
    }

    /// A kubeconfig file for a program that is to run as `user`.
    pub fn kubeconfig_as(&self, user: &User) -> Result<PathBuf> {
        let file = user.name().replace(|c: char| !c.is_ascii_alphanumeric(), "-");
        let path = self.dir.join("kubeconfigs").join(file);
        write_secret(&path, &self.pki.kubeconfig(&self.url, user)?)?;
        Ok(path)
    }

    /// The requests that were made.
    pub fn audit(&self) -> AuditLog {
        AuditLog::at(self.dir.join("logs/audit.log"))
    }

    /// A namespace for a test; it goes when the guard goes.
    pub async fn namespace(&self, prefix: &str) -> Result<Namespace> {
        Namespace::create(self, prefix).await
    }

    /// Runs `kubectl` as the administrator and returns what it printed.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let store = Store::new(Home::locate()?, Progress::detect());
        let mut kubectl = kubectl(&store, &self.kubeconfig())?;
        run(&format!("kubectl {}", arguments.join(" ")), kubectl.args(arguments))
    }
}

/// A `kubectl` command that uses this kubeconfig, built first if need be.
pub fn kubectl(store: &Store, kubeconfig: &Path) -> Result<Command> {
    let mut command = Command::new(api_server::kubernetes(store, "kubectl")?);
    command.env("KUBECONFIG", kubeconfig);
    Ok(command)
}
