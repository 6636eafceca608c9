//! The command line: what can be asked, and how it is answered.

mod inspect;
mod run;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::cluster::launch::Launch;
use crate::cluster::state::Shape;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::program;
use crate::progress::Progress;
use crate::store::Store;

/// A real Kubernetes on one machine: no Docker, no registry.
///
/// Kubernetes is built from its Go modules and the rest unpacked from Debian's packages, once, below the user's
/// cache directory (`TESTBED_HOME` names another). `down` takes a cluster away without a trace.
#[derive(Debug, Parser)]
#[command(name = "testbed", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Verb,
}

const EXAMPLES: &str = "\
Examples:
  testbed up                          a node that runs containers (root)
  testbed kubectl get pods -A         kubectl, already pointed at it
  export KUBECONFIG=$(testbed kubeconfig)
  testbed up --shape control-plane --name api   an API server alone (no root)
  testbed down --all                  nothing stays behind";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Build what is missing; does nothing when everything is there
    Install(Install),
    /// Start a cluster and return when it is ready; it goes on running
    Up(Up),
    /// Take a cluster away: processes, interfaces, mounts, files
    Down(Down),
    /// Show running clusters and their components
    Status(Status),
    /// Print the path of the administrator's kubeconfig
    Kubeconfig(Named),
    /// Print the path of a tool, built first if it is missing: cargo-deny, helm, kubectl, mdbook, musl-gcc, promtool
    Path(Tool),
    /// Run kubectl against a cluster
    Kubectl(Kubectl),
    /// Make an image archive (docker save, OCI) known to a node
    Load(Load),
    /// Run cert-manager's controllers on a cluster, until it is taken down
    CertManager(Named),
    /// Print the log of a component
    Logs(Logs),
    /// Turn static binaries into an image archive
    Image(Image),
    /// Own a cluster in the background
    #[command(hide = true)]
    Own(Own),
    /// Start everything inside a node's namespaces
    #[command(hide = true)]
    Supervise(Named),
}

#[derive(Debug, Args)]
struct Named {
    /// The cluster's name
    #[arg(long, default_value = "default")]
    name: String,
}

#[derive(Debug, Args)]
struct Tool {
    /// Which
    #[arg(value_parser = ["cargo-deny", "helm", "kubectl", "mdbook", "musl-gcc", "promtool"])]
    tool: String,
}

#[derive(Debug, Args)]
struct Install {
    /// What is to be ready for use
    #[arg(long = "for", value_enum, default_value_t = Purpose::All)]
    purpose: Purpose,
    /// Compare the content of every cached file, not only size and time
    #[arg(long)]
    verify: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Purpose {
    /// An API server with its controllers
    ControlPlane,
    /// A node that runs containers
    Node,
    /// Pretended nodes and pods
    Fleet,
    /// A node, and the other operator's suite to run on it, with cert-manager
    Compat,
    /// A node, a memcached with SASL and cert-manager to try every security mode on it
    Security,
    /// A node, Helm and cert-manager to install packages on it
    Package,
    /// Pretended nodes and pods, and the other operator to be measured beside ours
    Bench,
    /// What makes and checks the documentation
    Book,
    /// memcached as a process, without a cluster
    Server,
    /// All that clusters need
    All,
}

#[derive(Debug, Args)]
struct Up {
    #[command(flatten)]
    cluster: Named,
    /// A node runs containers and needs root; a control plane does neither
    #[arg(long, value_enum, default_value_t = Shape::Node)]
    shape: Shape,
    /// Pretend nodes and pods (control plane only)
    #[arg(long)]
    kwok: bool,
    /// The API server's port (control plane only); a free one by default
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    api_port: Option<u16>,
}

#[derive(Debug, Args)]
struct Own {
    #[command(flatten)]
    up: Up,
    /// End when nobody holds the lease
    #[arg(long)]
    leased: bool,
}

#[derive(Debug, Args)]
struct Down {
    #[command(flatten)]
    cluster: Named,
    /// Every cluster there is
    #[arg(long, conflicts_with = "name")]
    all: bool,
}

#[derive(Debug, Args)]
struct Status {
    /// For people or for programs
    #[arg(long, short, value_enum, default_value_t = Format::Text)]
    output: Format,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Json,
}

#[derive(Debug, Args)]
struct Kubectl {
    #[command(flatten)]
    cluster: Named,
    /// What kubectl is to do
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<String>,
}

#[derive(Debug, Args)]
struct Load {
    #[command(flatten)]
    cluster: Named,
    /// The archive
    archive: PathBuf,
}

#[derive(Debug, Args)]
struct Image {
    /// The binaries; the image holds nothing else, and starts the first
    #[arg(required = true)]
    binaries: Vec<PathBuf>,
    /// The image's full name, for example example.org/operator:1
    #[arg(long)]
    name: String,
    /// What is said about the image; may be repeated
    #[arg(long = "label", value_name = "KEY=VALUE", value_parser = label)]
    labels: Vec<(String, String)>,
    /// What the binaries are built for (aarch64, for example); this machine's own by default
    #[arg(long)]
    architecture: Option<String>,
    /// Where the archive is written
    #[arg(long, short)]
    output: PathBuf,
}

/// A label as it is given.
fn label(text: &str) -> Result<(String, String), String> {
    let (key, value) = text.split_once('=').ok_or("write it as KEY=VALUE")?;
    Ok((key.to_owned(), value.to_owned()))
}

#[derive(Debug, Args)]
struct Logs {
    #[command(flatten)]
    cluster: Named,
    /// etcd, kube-apiserver, kubelet, …; without one, the names there are
    component: Option<String>,
    /// Go on printing what comes
    #[arg(long, short)]
    follow: bool,
}

impl Up {
    fn launch(&self, leased: bool) -> Result<Launch> {
        if self.shape == Shape::Node && (self.kwok || self.api_port.is_some()) {
            return Err(Error::Other(
                "--kwok and --api-port are for a control plane: add `--shape control-plane`".into(),
            ));
        }
        Ok(Launch {
            name: self.cluster.name.clone(),
            shape: self.shape,
            leased,
            with_fleet: self.kwok,
            api_port: self.api_port,
        })
    }
}

/// Does what was asked; errors become one sentence and a non-zero exit.
pub async fn main() -> ExitCode {
    let cli = Cli::parse();
    match dispatch(cli.command).await {
        Ok(code) => code,
        Err(Error::Interrupted) => {
            eprintln!("interrupted");
            ExitCode::from(130)
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

async fn dispatch(verb: Verb) -> Result<ExitCode> {
    let store = Store::new(Home::locate()?, Progress::detect());
    // These two have their own way of being stopped.
    if !matches!(verb, Verb::Own(_) | Verb::Supervise(_)) {
        tokio::spawn(async {
            if stop_requested().await.is_ok() {
                program::interrupt();
            }
        });
    }
    match verb {
        Verb::Install(install) => done(run::install(&store, &install)),
        Verb::Up(up) => done(run::up(&store, &up).await),
        Verb::Down(down) => done(run::down(&store, &down).await),
        Verb::Status(status) => done(inspect::status(&store, &status)),
        Verb::Kubeconfig(cluster) => done(inspect::kubeconfig(&store, &cluster)),
        Verb::Path(tool) => done(inspect::path(&store, &tool)),
        Verb::Kubectl(kubectl) => inspect::kubectl(&store, &kubectl),
        Verb::Load(load) => done(run::load(&store, &load)),
        Verb::CertManager(cluster) => done(run::cert_manager(&store, &cluster).await),
        Verb::Logs(logs) => inspect::logs(&store, &logs),
        Verb::Image(image) => done(run::image(&image)),
        Verb::Own(own) => done(crate::cluster::own::own(store, &own.up.launch(own.leased)?).await),
        Verb::Supervise(node) => done(crate::cluster::node::supervise::supervise(&store, &node.name).await),
    }
}

fn done(result: Result<()>) -> Result<ExitCode> {
    result.map(|()| ExitCode::SUCCESS)
}

/// Ctrl-C, or being told to end.
async fn stop_requested() -> std::io::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    Ok(())
}
