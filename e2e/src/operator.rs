//! The operator as a process of this machine, on the node's API, with the rights it ships with.

use std::path::{Path, PathBuf};

use testbed::{Cluster, Error, Node, Result, User, program, wait};

use crate::background::Background;

const NAME: &str = "memcached-operator";
const NAMESPACE: &str = "memcached-operator-system";
/// The operator's namespace and service account, and what it may do.
const RIGHTS: [&str; 2] = ["config/rbac/base.yaml", "config/rbac/cluster.yaml"];

/// A file of this repository.
pub fn ours(path: &str) -> String {
    format!("{}/../{path}", env!("CARGO_MANIFEST_DIR"))
}

/// Installs kinds, our own and those in `more`, and the operator's rights.
pub async fn install(cluster: &Cluster, more: &[String]) -> Result<()> {
    let apply = |file: &str| cluster.kubectl(&["apply", "--server-side", "--force-conflicts", "-f", file]);
    for kinds in more.iter().chain([&ours("config/crd/memcached.c5c3.io_memcacheds.yaml")]) {
        apply(kinds)?;
    }
    // kubectl's own waiting gives up on a kind that has no status yet.
    wait::until("the kinds to be served", 60, async || {
        let established = ["wait", "--for=condition=Established", "--timeout=5s", "crd", "--all"];
        cluster.kubectl(&established).map_err(|e| e.to_string())
    })
    .await?;
    for rights in RIGHTS {
        apply(&ours(rights))?;
    }
    Ok(())
}

/// The archive of the image that tests run.
pub fn image() -> Result<PathBuf> {
    let image = PathBuf::from(ours("target/test-image/memcached-operator.tar"));
    let missing = || Error::Other(format!("there is no {}: run `make test-image`", image.display()));
    if image.is_file() { Ok(image) } else { Err(missing()) }
}

/// The agent that is in it.
pub fn agent() -> PathBuf {
    ours(&format!("target/{}-unknown-linux-musl/debug/memcached-agent", std::env::consts::ARCH)).into()
}

/// Runs the operator as people do: as a Deployment, from its image, with its webhooks.
pub fn deploy(node: &Node) -> Result<()> {
    node.load(&image()?)?;
    node.kubectl(&["apply", "--server-side", "--force-conflicts", "--kustomize", &ours("config/default")])?;
    let rollout = ["rollout", "status", "deployment/memcached-operator", "--timeout=180s", "--namespace", NAMESPACE];
    node.kubectl(&rollout).map(drop)
}

/// What the operator that was deployed has said last.
pub fn deployed_log(node: &Node, lines: u32) -> String {
    let tail = format!("--tail={lines}");
    let logs = ["logs", "deployment/memcached-operator", "--namespace", NAMESPACE, &tail];
    node.kubectl(&logs).unwrap_or_else(|error| error.to_string())
}

/// Starts the operator with the rights of its service account and no others; `OPERATOR_BIN` names another program.
pub fn start(cluster: &Cluster, arguments: &[&str], log: &Path) -> Result<Background> {
    let test = std::env::current_exe().map_err(Error::file("find", "this program"))?;
    let built = || test.ancestors().nth(2).map(|dir| dir.join(NAME)).unwrap_or_default();
    let operator = std::env::var_os("OPERATOR_BIN").map_or_else(built, PathBuf::from);
    if !operator.is_file() {
        let how = "build it with `cargo build --bin memcached-operator`, or name another with OPERATOR_BIN";
        return Err(Error::Other(format!("there is no {}: {how}", operator.display())));
    }
    let user = User::service_account(NAMESPACE, NAME);
    let mut command = program::bound_to_parent(operator);
    command
        .args([
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
            "--leader-elect=false",
            "--enable-webhooks=false",
        ])
        .args(arguments)
        .env("KUBECONFIG", cluster.kubeconfig_as(&user)?);
    Background::start(command, log)
}
