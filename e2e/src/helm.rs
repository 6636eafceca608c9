//! Helm, pointed at a cluster, with nothing of the user's own.

use std::path::PathBuf;

use testbed::artifact::Artifact;
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{Cluster, Result, program};

/// Our chart.
pub const CHART: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../charts/memcached-operator");

/// Helm for one cluster.
#[derive(Debug, Clone)]
pub struct Helm {
    program: PathBuf,
    kubeconfig: PathBuf,
    home: PathBuf,
}

impl Helm {
    /// For this cluster; `home` is where it may leave files.
    pub fn of(cluster: &Cluster, home: impl Into<PathBuf>) -> Result<Self> {
        let store = Store::new(Home::locate()?, Progress::detect());
        let program = store.ensure(&Artifact::helm())?.join("helm");
        Ok(Self { program, kubeconfig: cluster.kubeconfig(), home: home.into() })
    }

    /// Runs it to its end; what it printed.
    pub fn run(&self, arguments: &[&str]) -> Result<String> {
        let mut helm = program::bound_to_parent(&self.program);
        helm.args(arguments).env("KUBECONFIG", &self.kubeconfig);
        for (variable, directory) in
            [("HELM_CACHE_HOME", "cache"), ("HELM_CONFIG_HOME", "config"), ("HELM_DATA_HOME", "data")]
        {
            helm.env(variable, self.home.join(directory));
        }
        program::run(&format!("helm {}", arguments.join(" ")), &mut helm)
    }
}
