//! A real memcached as a process on loopback: no cluster, no container, no root. It dies with its guard.

use std::fs;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::artifact::{Artifact, Set, server_command};
use crate::cluster::port::Port;
use crate::cluster::process::Processes;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::install::install;
use crate::progress::Progress;
use crate::store::{Check, Store};
use crate::wait;

const NAME: &str = "memcached";
/// How long a start may take on a busy machine, in seconds.
const DEADLINE: u64 = 120;

/// Where a memcached can be run that somebody else starts.
#[derive(Debug)]
pub struct Place {
    program: PathBuf,
    port: Port,
}

impl Place {
    /// A free port of 127.0.0.1, and the program.
    pub fn new() -> Result<Self> {
        let store = Store::new(Home::locate()?, Progress::detect());
        install(&store, &[Set::Server], Check::Quick)?;
        Ok(Self { program: store.path(&Artifact::server()), port: Port::free(store.home())? })
    }

    /// Where it is to listen.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port.number).into()
    }

    /// How it is started; its arguments are missing.
    pub fn command(&self) -> Result<Command> {
        server_command(&self.program)
    }
}

/// A running memcached.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    arguments: Vec<String>,
    // In this order: first the process goes, then its log, then its ports.
    processes: Processes,
    log: tempfile::TempDir,
    ports: Vec<Port>,
}

impl Server {
    /// Starts a server with these arguments, listening at a free port of 127.0.0.1.
    ///
    /// ```no_run
    /// # async fn example() -> testbed::Result<()> {
    /// let server = testbed::Server::start(&["-m", "16"]).await?;
    /// std::net::TcpStream::connect(server.address()).unwrap();
    /// # Ok(())
    /// # }
    /// ```
    pub async fn start(arguments: &[&str]) -> Result<Self> {
        Self::listening(&[""], arguments).await
    }

    /// Starts a server with a listener for each of these prefixes (`""`, `notls:`, `proto[ascii]:`), every one at a
    /// port of its own.
    pub async fn listening(prefixes: &[&str], arguments: &[&str]) -> Result<Self> {
        let store = Store::new(Home::locate()?, Progress::detect());
        install(&store, &[Set::Server], Check::Quick)?;
        let ports: Vec<Port> = prefixes.iter().map(|_| Port::free(store.home())).collect::<Result<_>>()?;
        let listeners: Vec<String> =
            prefixes.iter().zip(&ports).map(|(prefix, port)| format!("{prefix}127.0.0.1:{}", port.number)).collect();
        let mut words = vec!["-l".to_owned(), listeners.join(",")];
        if rustix::process::geteuid().is_root() {
            // Started by root it insists on being told whom to become.
            words.extend(["-u", "root"].map(str::to_owned));
        }
        words.extend(arguments.iter().map(ToString::to_string));
        let log = tempfile::tempdir().map_err(Error::file("create a directory in", std::env::temp_dir()))?;
        let mut server = Self {
            program: store.path(&Artifact::server()),
            arguments: words,
            processes: Processes::new(log.path().to_path_buf()),
            log,
            ports,
        };
        server.restart().await?;
        Ok(server)
    }

    /// Starts it again at the same ports, with an empty cache; kills it first if it still runs.
    pub async fn restart(&mut self) -> Result<()> {
        self.kill();
        let mut command = server_command(&self.program)?;
        command.args(&self.arguments);
        self.processes.start_command(NAME, command)?;
        let addresses = self.addresses();
        wait::until("memcached to listen", DEADLINE, async || {
            if let Err(ended) = self.processes.check() {
                return Ok(Err(ended));
            }
            for address in &addresses {
                TcpStream::connect(address).map_err(|e| format!("{address}: {e}"))?;
            }
            Ok(Ok(()))
        })
        .await?
    }

    /// Where it listens; with several listeners, the first.
    pub fn address(&self) -> SocketAddr {
        let port = self.ports.first().map_or(0, |port| port.number);
        (Ipv4Addr::LOCALHOST, port).into()
    }

    /// Where each of its listeners is.
    pub fn addresses(&self) -> Vec<SocketAddr> {
        self.ports.iter().map(|port| (Ipv4Addr::LOCALHOST, port.number).into()).collect()
    }

    /// Stops it in its tracks: its sockets stay open and nobody answers (SIGSTOP).
    pub fn freeze(&self) {
        self.signal(Signal::STOP);
        // A thread on another core runs on until it is told.
        let deadline = Instant::now() + Duration::from_secs(DEADLINE);
        while Instant::now() < deadline && !self.processes.pids().into_iter().all(is_stopped) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Lets it go on (SIGCONT).
    pub fn thaw(&self) {
        self.signal(Signal::CONT);
    }

    /// Makes it read its password file and certificates anew (SIGHUP).
    pub fn reload(&self) {
        self.signal(Signal::HUP);
    }

    /// Kills it and waits for its end (SIGKILL).
    pub fn kill(&mut self) {
        self.processes.stop(NAME);
    }

    /// What it has said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.log.path().join("memcached.log")).unwrap_or_default()
    }

    fn signal(&self, signal: Signal) {
        for pid in self.processes.pids() {
            if let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) {
                rustix::process::kill_process(pid, signal).ok();
            }
        }
    }
}

/// Whether no thread of a process runs.
fn is_stopped(pid: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let mut states = threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok());
    // The name before the state may have anything in it, but a closing parenthesis ends it.
    states.all(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('T')))
}
