//! The shape that runs containers: a whole node in namespaces of its own.

mod config;
pub mod supervise;

use std::fs::File;
use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio::net::TcpStream;

use super::Cluster;
use super::launch::{self, Launch};
use super::lease::Lease;
use super::state::{Phase, Shape, State};
use crate::artifact::containerd;
use crate::cert_manager;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::progress::Progress;
use crate::store::Store;

/// The name of the node that the tests of one run share.
pub const SHARED: &str = "shared";

/// The socket of the container runtime, inside.
const CONTAINERD_SOCKET: &str = "/run/containerd/containerd.sock";

/// A running node.
#[derive(Debug)]
pub struct Node {
    cluster: Cluster,
    state: State,
    store: Store,
    _lease: Option<Lease>,
}

impl Node {
    /// The node that all tests of a run share; the first to ask starts it, it ends after the last.
    pub async fn shared() -> Result<Self> {
        let store = Store::new(Home::locate()?, Progress::detect());
        Self::leased(store, SHARED).await
    }

    /// A node by that name that lives while somebody holds it.
    pub async fn leased(store: Store, name: &str) -> Result<Self> {
        check_root("the node")?;
        let starting = store.home().lock_file(&format!("{name}.starting"));
        let name = name.to_owned();
        let home = store.home().clone();
        // One starts, the others wait; blocking for minutes is not for an async thread.
        let held = tokio::task::spawn_blocking({
            let name = name.clone();
            move || -> Result<(File, Lease)> {
                let file = File::create(&starting).map_err(Error::file("create", &starting))?;
                file.lock().map_err(Error::file("lock", &starting))?;
                Ok((file, Lease::join(&home, &name)?))
            }
        });
        let (_starting, lease) = held.await.map_err(|e| Error::Other(e.to_string()))??;
        let state = match State::find(store.home(), &name)? {
            Some(state) if state.status().phase == Phase::Ready => state,
            _ => {
                // None, or one that has lost a part.
                launch::stop(store.home(), &name).await?;
                Launch::node(&name, true).start(&store, drop).await?
            }
        };
        Self::open(store, state, Some(lease))
    }

    /// A node that is running, whoever started it.
    pub fn find(store: Store, name: &str) -> Result<Self> {
        let state = State::find(store.home(), name)?.ok_or_else(|| Error::NoCluster(name.into()))?;
        if state.description.shape != Shape::Node {
            return Err(Error::Other(format!(
                "cluster {name:?} is a control plane: it runs no containers; start a node with `testbed up`"
            )));
        }
        Self::open(store, state, None)
    }

    fn open(store: Store, state: State, lease: Option<Lease>) -> Result<Self> {
        Ok(Self { cluster: Cluster::of(&state)?, state, store, _lease: lease })
    }

    /// Its files.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The process number, on the host, of the first process inside.
    pub fn supervisor(&self) -> Result<u32> {
        let path = self.state.dir.join("supervisor.pid");
        let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        text.trim().parse().map_err(|_| Error::Other(format!("{} holds no number", path.display())))
    }

    /// A command that runs inside the node's namespaces.
    pub fn inside(&self, program: &Path) -> Result<Command> {
        let mut command = Command::new("nsenter");
        command.args(["--target", &self.supervisor()?.to_string(), "--net", "--mount", "--pid", "--"]).arg(program);
        Ok(command)
    }

    /// Adds cert-manager's kinds and controllers, which stay as long as the node; returns when they are at work.
    /// Once more after its kinds were deleted starts the controllers anew.
    pub async fn add_cert_manager(&self) -> Result<()> {
        cert_manager::ask(&self.cluster, &self.store, &self.state).await
    }

    /// Makes an image archive known to the node.
    pub fn load(&self, archive: &Path) -> Result<()> {
        check_root("loading an image")?;
        let file = File::open(archive).map_err(Error::file("read", archive))?;
        // Through standard input: inside, the archive's path may be hidden by a mount.
        self.images(&format!("importing {}", archive.display()), &["import", "-"], file.into())
    }

    /// Gives an image that the node knows one more name; both are full names.
    pub fn tag(&self, image: &str, name: &str) -> Result<()> {
        check_root("naming an image")?;
        self.images(&format!("naming {image} {name}"), &["tag", "--force", image, name], Stdio::null())
    }

    /// Runs a command of the container runtime on the images that pods can use.
    fn images(&self, what: &str, arguments: &[&str], input: Stdio) -> Result<()> {
        let ctr = self.store.ensure(&containerd())?.join("ctr");
        let output = self
            .inside(&ctr)?
            .args(["--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", "images"])
            .args(arguments)
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .output()
            .map_err(|source| Error::Start { program: "nsenter".into(), source })?;
        if output.status.success() {
            return Ok(());
        }
        Err(Error::Program {
            what: what.into(),
            status: output.status.to_string(),
            output: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    /// A socket to a pod or Service address.
    pub async fn connect(&self, address: SocketAddr) -> Result<TcpStream> {
        let limit = Duration::from_secs(10);
        let timed_out = |_| std::io::Error::from(std::io::ErrorKind::TimedOut);
        tokio::time::timeout(limit, TcpStream::connect(address))
            .await
            .map_err(timed_out)
            .and_then(|connected| connected)
            .map_err(|e| Error::Other(format!("failed to connect to {address}: {e}")))
    }
}

impl Launch {
    /// A node.
    pub fn node(name: &str, leased: bool) -> Self {
        Self { name: name.into(), shape: Shape::Node, leased, with_fleet: false, api_port: None }
    }
}

impl Deref for Node {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// Refuses what only root can do, before anything is begun.
pub fn check_root(what: &'static str) -> Result<()> {
    if rustix::process::geteuid().is_root() { Ok(()) } else { Err(Error::NotRoot { what }) }
}
