//! cert-manager's own controllers on a cluster whose tests need certificates issued.
//!
//! They belong to the cluster like its other processes: whoever owns it starts them when asked, and they end with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::artifact::Artifact;
use crate::cluster::state::{Phase, State};
use crate::cluster::{Cluster, Plan, Processes};
use crate::error::{Error, Result};
use crate::pki::{User, write_secret};
use crate::store::Store;
use crate::wait;

const NAME: &str = "cert-manager";
/// The namespace with the Secrets of `ClusterIssuer`s.
pub const NAMESPACE: &str = "cert-manager";
/// How long the controllers may take to issue their first word on a busy machine, in seconds.
const DEADLINE: u64 = 180;
/// An issuer that is made and removed again to see that the controllers are at work.
const PROBE: &str = r#"{"apiVersion": "cert-manager.io/v1", "kind": "Issuer",
    "metadata": {"name": "testbed-probe", "namespace": "cert-manager"}, "spec": {"selfSigned": {}}}"#;

/// Starts the controllers beside the API server; those that were running are replaced.
pub(crate) fn start(plan: &Plan, store: &Store, processes: &mut Processes) -> Result<()> {
    let program = store.ensure(&Artifact::cert_manager())?.join(NAME);
    let kubeconfig = plan.component_kubeconfig(NAME, &User::new(NAME).group("system:masters"))?;
    let arguments =
        [format!("--kubeconfig={}", kubeconfig.display()), format!("--cluster-resource-namespace={NAMESPACE}")];
    processes.stop(NAME);
    processes.start(NAME, &program, &arguments)
}

/// Installs what the controllers need before they start.
pub(crate) async fn prepare(cluster: &Cluster, store: &Store) -> Result<()> {
    store.ensure(&Artifact::cert_manager())?;
    let kinds = store.ensure(&Artifact::cert_manager_kinds())?.join("deploy/crds").display().to_string();
    cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "--filename", &kinds])?;
    wait::until("cert-manager's kinds to be served", 60, async || {
        let established = ["wait", "--for=condition=Established", "--timeout=5s", "--filename", &kinds];
        cluster.kubectl(&established).map_err(|error| error.to_string())
    })
    .await?;
    let namespace = ["get", "namespace", NAMESPACE, "--ignore-not-found", "--output=name"];
    if cluster.kubectl(&namespace)?.is_empty() {
        cluster.kubectl(&["create", "namespace", NAMESPACE])?;
    }
    Ok(())
}

/// Waits until the controllers are at work, while they live: an issuer made now is ready.
pub(crate) async fn wait_until_ready(
    cluster: &Cluster,
    dir: &Path,
    mut check_alive: impl FnMut() -> Result<()>,
) -> Result<()> {
    let file = dir.join("cert-manager-probe.json");
    fs::write(&file, PROBE).map_err(Error::file("write", &file))?;
    let file = file.display().to_string();
    let delete = ["delete", "--ignore-not-found", "--filename", &file];
    cluster.kubectl(&delete)?;
    cluster.kubectl(&["create", "--filename", &file])?;
    let answer = wait::until("cert-manager's controllers", DEADLINE, async || {
        if let Err(dead) = check_alive() {
            return Ok(Err(dead));
        }
        let ready = ["wait", "--for=condition=Ready", "--timeout=2s", "--filename", &file];
        cluster.kubectl(&ready).map(Ok).map_err(|error| error.to_string())
    });
    answer.await??;
    cluster.kubectl(&delete).map(drop)
}

/// Asks the owner of a running cluster for the controllers, and waits until they are at work.
pub(crate) async fn ask(cluster: &Cluster, store: &Store, state: &State) -> Result<()> {
    prepare(cluster, store).await?;
    // Another text each time: kinds that were deleted meanwhile are only found again by controllers that start anew.
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_nanos();
    write_secret(&request_file(&state.dir), &format!("{} {now}", std::process::id()))?;
    let check_alive = || match state.status().phase {
        Phase::Failed(why) => Err(Error::Other(format!("cluster {:?} is broken: {why}", state.description.name))),
        _ => Ok(()),
    };
    wait_until_ready(cluster, &state.dir, check_alive).await
}

/// The requests for cert-manager that an owner has answered.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    answered: Option<String>,
}

impl Requests {
    /// Whether there is a request that was not answered yet.
    pub fn is_new(&mut self, dir: &Path) -> bool {
        let request = fs::read_to_string(request_file(dir)).ok().filter(|text| !text.is_empty());
        if request.is_none() || request == self.answered {
            return false;
        }
        self.answered = request;
        true
    }
}

fn request_file(dir: &Path) -> PathBuf {
    dir.join("cert-manager.request")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_once_and_a_second_one_again() {
        let dir = tempfile::tempdir().unwrap();
        let mut requests = Requests::default();
        assert!(!requests.is_new(dir.path()));
        for text in ["one", "two"] {
            fs::write(request_file(dir.path()), text).unwrap();
            assert!(requests.is_new(dir.path()));
            assert!(!requests.is_new(dir.path()));
        }
    }
}
