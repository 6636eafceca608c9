//! Starts a cluster that goes on without us, and ends it.

use std::ffi::OsString;
use std::fs::File;
use std::io::{Read, Seek};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};

use super::api_server::DEADLINE;
use super::state::{self, Phase, Shape, State};
use crate::artifact::Set;
use crate::error::{Error, Result};
use crate::home::{self, Home};
use crate::install::install;
use crate::program::run;
use crate::store::{Check, Store};
use crate::wait;

/// What is to be started.
#[derive(Debug, Clone)]
pub struct Launch {
    pub name: String,
    pub shape: Shape,
    /// It ends when nobody holds its lease any more.
    pub leased: bool,
    /// kwok, on a control plane.
    pub with_fleet: bool,
    /// The API server's port, on a control plane.
    pub api_port: Option<u16>,
}

impl Launch {
    /// What has to be there before.
    pub fn set(&self) -> Set {
        match (self.shape, self.with_fleet) {
            (Shape::Node, _) => Set::Node,
            (Shape::ControlPlane, true) => Set::Fleet,
            (Shape::ControlPlane, false) => Set::ControlPlane,
        }
    }

    /// Starts the cluster and waits until it is ready. What fails is gone when this returns.
    pub async fn start(&self, store: &Store, on_step: impl Fn(String)) -> Result<State> {
        install(store, &[self.set()], Check::Quick)?;
        let home = store.home();
        let mut log = tempfile::tempfile().map_err(Error::file("create a file in", std::env::temp_dir()))?;
        let mut owner = self.spawn_owner(home, &log)?;
        let ready = self.wait_until_ready(home, &mut owner, &mut log, on_step).await;
        if ready.is_err() {
            end(&mut owner).await?;
            state::sweep(home)?;
        }
        ready
    }

    /// The process that owns the cluster, in a session of its own: Ctrl-C here does not reach it.
    fn spawn_owner(&self, home: &Home, log: &File) -> Result<Child> {
        let mut command = Command::new("setsid");
        command.arg(executable()?).args(["own", "--name", &self.name]).args(match self.shape {
            Shape::Node => ["--shape", "node"],
            Shape::ControlPlane => ["--shape", "control-plane"],
        });
        command.args(self.leased.then_some("--leased"));
        command.args(self.with_fleet.then_some("--kwok"));
        if let Some(port) = self.api_port {
            command.args(["--api-port", &port.to_string()]);
        }
        let log = log.try_clone().map_err(|source| Error::Start { program: "setsid".into(), source })?;
        command
            .env(home::VARIABLE, home.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .map_err(|source| Error::Start { program: "setsid".into(), source })
    }

    async fn wait_until_ready(
        &self,
        home: &Home,
        owner: &mut Child,
        log: &mut File,
        on_step: impl Fn(String),
    ) -> Result<State> {
        let failed = |why: String| Error::NotReady { name: self.name.clone(), why };
        wait::until("the cluster", 2 * DEADLINE, async || {
            let ended = owner.try_wait().ok().flatten().is_some();
            let Some(state) = State::find(home, &self.name).ok().flatten() else {
                return if ended { Ok(Err(failed(log_tail(log)))) } else { Err("nothing yet".into()) };
            };
            let status = state.status();
            match status.phase {
                Phase::Ready => Ok(Ok(state)),
                Phase::Failed(why) => Ok(Err(failed(why))),
                Phase::Starting => {
                    on_step(status.step.clone());
                    Err(status.step)
                }
            }
        })
        .await?
    }
}

/// Ends an owner that has not made it, perhaps not even to its directory.
async fn end(owner: &mut Child) -> Result<()> {
    end_process(owner.id(), || owner.try_wait().ok().flatten().is_some()).await
}

/// Asks a process to end, and makes it if it does not.
async fn end_process(pid: u32, mut is_gone: impl FnMut() -> bool) -> Result<()> {
    for how in [Signal::TERM, Signal::KILL] {
        if is_gone() {
            return Ok(());
        }
        signal(pid, how);
        let gone = wait::uninterrupted(format!("process {pid} to end"), 30, async || {
            if is_gone() { Ok(()) } else { Err("it is still there".into()) }
        });
        match gone.await {
            Err(_) if how == Signal::TERM => {}
            outcome => return outcome,
        }
    }
    Ok(())
}

/// Ends a cluster and waits until it is gone. Whether there was one.
pub async fn stop(home: &Home, name: &str) -> Result<bool> {
    let Some(state) = State::find(home, name)? else {
        state::sweep(home)?;
        return Ok(false);
    };
    end_process(state.description.owner, || matches!(State::find(home, name), Ok(None))).await?;
    state::sweep(home)?;
    Ok(true)
}

fn signal(pid: u32, signal: Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
        rustix::process::kill_process(pid, signal).ok();
    }
}

/// What the owner said before it ended.
fn log_tail(log: &mut File) -> String {
    let mut text = String::new();
    log.rewind().ok();
    log.read_to_string(&mut text).ok();
    let text = text.trim().trim_start_matches("error: ");
    if text.is_empty() {
        return "its owner ended without a word".into();
    }
    text.to_owned()
}

/// The testbed's own program: this one, the one that `TESTBED_BIN` names, or built now.
pub fn executable() -> Result<PathBuf> {
    if let Some(path) = std::env::var_os("TESTBED_BIN") {
        return Ok(path.into());
    }
    let current = std::env::current_exe().map_err(Error::file("find", "this program"))?;
    if current.file_stem().is_some_and(|name| name == "testbed") {
        return Ok(current);
    }
    // A test of another crate: cargo has built this library for it, but not the program.
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let manifest = concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml");
    let profile = current.ancestors().nth(2).map(PathBuf::from).unwrap_or_default();
    let mut build = Command::new(cargo);
    // With the features that the whole workspace asks for: what the tests have built is then not built again.
    build.args(["build", "--locked", "--quiet", "--workspace", "--bin", "testbed", "--manifest-path", manifest]);
    build.args(profile.ends_with("release").then_some("--release"));
    run("building the testbed program", &mut build)?;
    Ok(profile.join("testbed"))
}
