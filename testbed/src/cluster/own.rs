//! The process that owns a cluster in the background, and sees to it that nothing stays behind.

use std::fs;
use std::time::{Duration, Instant};

use tokio::signal::unix::{SignalKind, signal};
use tokio::time::sleep;

use super::api_server::until_alive;
use super::control_plane::{ControlPlane, Options};
use super::launch::{Launch, executable};
use super::lease::Lease;
use super::process::Processes;
use super::state::{Owned, Phase, Shape, State, Status};
use crate::cert_manager::Requests;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::pki::write_secret;
use crate::program::bound_to_parent;
use crate::store::Store;

/// How long a shared cluster waits for its next user: test binaries of one run follow each other.
const LINGER: Duration = Duration::from_secs(20);
const PAUSE: Duration = Duration::from_millis(200);

/// Runs a cluster until it is told to stop, its supervisor dies, or nobody needs it any more.
pub async fn own(store: Store, launch: &Launch) -> Result<()> {
    match launch.shape {
        Shape::ControlPlane => own_control_plane(store, launch).await,
        Shape::Node => own_node(store.home(), launch).await,
    }
}

async fn own_control_plane(store: Store, launch: &Launch) -> Result<()> {
    let mut stop = Stop::new(store.home().clone(), launch)?;
    let options = Options {
        name: Some(launch.name.clone()),
        api_port: launch.api_port,
        with_fleet: launch.with_fleet,
        without_controllers: false,
    };
    let mut control_plane = tokio::select! {
        started = ControlPlane::start_in(store, options) => started?,
        () = stop.told() => return Err(Error::Interrupted),
    };
    let publish = |control_plane: &mut ControlPlane| {
        let components = control_plane.components();
        let phase = Phase::Ready.with(&components);
        control_plane.state().set_status(&Status { phase, components, ..Status::default() })
    };
    publish(&mut control_plane)?;
    let mut requests = Requests::default();
    while !stop.is_due().await? {
        if requests.is_new(&control_plane.state().dir) {
            control_plane.start_cert_manager()?;
        }
        if control_plane.state().status().components != control_plane.components() {
            publish(&mut control_plane)?;
        }
    }
    Ok(())
}

async fn own_node(home: &Home, launch: &Launch) -> Result<()> {
    let mut stop = Stop::new(home.clone(), launch)?;
    let owned = Owned::create(home, &launch.name, Shape::Node)?;
    let mut processes = Processes::new(owned.state.dir.join("logs"));
    let mut supervisor = None;
    let lived = async {
        let pid = start_supervisor(&owned.state, &mut processes).await?;
        supervisor = Some(pid);
        while !stop.is_due().await? {
            processes.check()?;
        }
        Ok(())
    }
    .await;
    drop(processes);
    if let Some(pid) = supervisor {
        wait_for_end(pid).await;
        // Only the wire that we have laid: another home's node may have been first to that name.
        if let Some(network) = owned.state.description.network {
            network.disconnect();
        }
    }
    lived
}

/// Starts the supervisor as the first process of new namespaces, and joins them to the host.
async fn start_supervisor(state: &State, processes: &mut Processes) -> Result<u32> {
    let mut command = bound_to_parent("unshare");
    // Whoever kills `unshare` kills the first process, and with it the kernel kills all others.
    command
        .args(["--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"])
        .args(["--propagation", "private", "--"])
        .arg(executable()?)
        .args(["supervise", "--name", &state.description.name]);
    processes.start_command("supervisor", command)?;
    let unshare = processes.pids().first().copied().unwrap_or_default();
    let pid =
        until_alive("the supervisor", processes, async || first_child(unshare).ok_or_else(|| "no process yet".into()))
            .await?;
    write_secret(&state.dir.join("supervisor.pid"), &pid.to_string())?;
    if let Some(network) = state.description.network {
        network.connect(pid)?;
    }
    Ok(pid)
}

/// Namespaces, mounts and interfaces are gone when their first process is.
async fn wait_for_end(pid: u32) {
    // A zombie has let go of everything; in some containers nobody ever buries it.
    while stat_of(pid).is_some_and(|stat| stat.state != 'Z') {
        sleep(PAUSE).await;
    }
}

/// The child of a process; found by asking every process for its parent.
fn first_child(parent: u32) -> Option<u32> {
    fs::read_dir("/proc").ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        (stat_of(pid)?.parent == parent).then_some(pid)
    })
}

/// What the kernel says about a process.
#[derive(Debug, PartialEq, Eq)]
pub struct Stat {
    pub state: char,
    pub parent: u32,
}

/// What the kernel says about a process, if it exists.
pub fn stat_of(pid: u32) -> Option<Stat> {
    parse_stat(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
}

/// The process's name comes before the rest, may contain anything, and ends at the last `)`.
fn parse_stat(text: &str) -> Option<Stat> {
    let mut words = text.rsplit_once(')')?.1.split_whitespace();
    let state = words.next()?.chars().next()?;
    let parent = words.next()?.parse().ok()?;
    Some(Stat { state, parent })
}

/// The reasons to stop: a signal, or a lease that nobody holds.
struct Stop {
    home: Home,
    lease: Option<String>,
    unused_since: Option<Instant>,
    // Held to the end, so that nobody joins a cluster on its way out.
    ended: Option<Lease>,
    terminate: tokio::signal::unix::Signal,
    interrupt: tokio::signal::unix::Signal,
}

impl Stop {
    fn new(home: Home, launch: &Launch) -> Result<Self> {
        let listen = |kind| signal(kind).map_err(|e| Error::Other(format!("failed to listen for signals: {e}")));
        Ok(Self {
            home,
            lease: launch.leased.then(|| launch.name.clone()),
            unused_since: None,
            ended: None,
            terminate: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
        })
    }

    async fn told(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Whether it is time to stop; takes a moment to answer no.
    async fn is_due(&mut self) -> Result<bool> {
        if tokio::time::timeout(PAUSE, self.told()).await.is_ok() {
            return Ok(true);
        }
        let Some(name) = &self.lease else {
            return Ok(false);
        };
        let Some(lease) = Lease::end(&self.home, name)? else {
            self.unused_since = None;
            return Ok(false);
        };
        let since = *self.unused_since.get_or_insert_with(Instant::now);
        if since.elapsed() < LINGER {
            return Ok(false);
        }
        self.ended = Some(lease);
        Ok(true)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_with_an_odd_name_is_read_right() {
        let stat = parse_stat("42 (a) R 1 (b) Z 7 42 42 0 -1").unwrap();
        assert_eq!(stat, Stat { state: 'Z', parent: 7 });
    }

    #[test]
    fn a_child_is_found_by_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let stat = stat_of(child.id()).unwrap();
        assert_eq!(stat.parent, std::process::id());
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(stat_of(child.id()), None);
    }
}
