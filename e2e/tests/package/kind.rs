//! The kinds of others that the chart can use: real definitions, without anybody behind them.

use testbed::artifact::Artifact;
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{Cluster, wait};

/// The definitions that the chart has objects of, by the end of their files' names.
const WANTED: [&str; 4] = ["_servicemonitors.yaml", "_prometheusrules.yaml", "_certificates.yaml", "_issuers.yaml"];

/// Installs the kinds of the Prometheus operator and of cert-manager.
pub async fn install(cluster: &Cluster) {
    let store = Store::new(Home::locate().unwrap(), Progress::hidden());
    for directory in [
        store.ensure(&Artifact::prometheus_kinds()).unwrap().join("example/prometheus-operator-crd"),
        store.ensure(&Artifact::cert_manager_kinds()).unwrap().join("deploy/crds"),
    ] {
        for entry in std::fs::read_dir(directory).unwrap() {
            let file = entry.unwrap().path().display().to_string();
            if WANTED.iter().any(|ending| file.ends_with(ending)) {
                cluster.kubectl(&["apply", "--server-side", "--filename", &file]).unwrap();
            }
        }
    }
    wait::until("the kinds to be served", 60, async || {
        let established = ["wait", "--for=condition=Established", "--timeout=5s", "crd", "--all"];
        cluster.kubectl(&established).map_err(|error| error.to_string())
    })
    .await
    .unwrap();
}
