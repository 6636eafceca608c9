//! An operator as a process of this machine: how each is started, watched and stopped.
//! It ends with its guard, and with this program, however that ends.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal};
use testbed::{Cluster, User, program, wait};

use crate::error::{Error, Result};
use crate::meter::{Meter, Reading};

/// How long an operator may take to end when it is asked to, in seconds.
const GRACE: u64 = 30;

/// A running operator.
pub struct Process {
    child: Child,
    meter: Meter,
    log: PathBuf,
    user: String,
}

impl Process {
    /// Our operator as it ships, but for what needs a cluster around it: webhooks, and ports that others may use.
    pub fn ours(cluster: &Cluster, operator: &Path, user: &str, log: &Path) -> Result<Self> {
        let mut command = program::bound_to_parent(operator);
        command
            .args([
                "--leader-elect=true",
                "--leader-election-namespace=default",
                "--enable-webhooks=false",
                "--metrics-bind-address=0",
                "--health-probe-bind-address=0",
            ])
            // As in config/manager; what the image is called does not matter where no pod runs.
            .env("AGENT_IMAGE", "memcached-operator:dev")
            .env_remove("RUST_LOG");
        Self::start(cluster, command, user, log)
    }

    /// The other operator.
    pub fn peer(cluster: &Cluster, operator: &Path, user: &str, log: &Path) -> Result<Self> {
        let mut command = program::bound_to_parent(operator);
        command.args([
            "--leader-elect=false",
            "--enable-webhooks=false",
            "--metrics-bind-address=0",
            "--health-probe-bind-address=0",
        ]);
        Self::start(cluster, command, user, log)
    }

    fn start(cluster: &Cluster, mut command: Command, user: &str, log: &Path) -> Result<Self> {
        // Of this group nobody is asked for rights or put into a queue: the same for all that are compared.
        let identity = User::new(user).group("system:masters");
        if let Some(parent) = log.parent() {
            fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
        }
        let output = File::create(log).map_err(Error::file("create", log))?;
        let errors = output.try_clone().map_err(Error::file("write", log))?;
        command.env("KUBECONFIG", cluster.kubeconfig_as(&identity)?);
        command.stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = testbed::spawn(command)?;
        let meter = Meter::start(child.id(), api_port(cluster.url())?);
        Ok(Self { child, meter, log: log.to_path_buf(), user: user.to_owned() })
    }

    /// Under which name the audit log knows it.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// What is known of it now.
    pub fn read(&self) -> Reading {
        self.meter.read()
    }

    /// The CPU seconds that it has used.
    pub fn cpu_seconds(&self) -> f64 {
        self.meter.cpu_seconds()
    }

    /// An error if it has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        match self.child.try_wait() {
            Ok(Some(status)) => Err(Error::SubjectEnded { status: status.to_string(), log: self.log.clone() }),
            _ => Ok(()),
        }
    }

    /// Kills it as a failing machine would.
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }

    /// Asks it to end, as the kubelet does, and waits.
    pub async fn terminate(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            rustix::process::kill_process(pid, Signal::TERM).ok();
        }
        let ended = wait::until("the operator to end", GRACE, async || match self.child.try_wait() {
            Ok(None) => Err("it is still there".into()),
            _ => Ok(()),
        });
        if ended.await.is_err() {
            self.kill();
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The port of the API server's address.
fn api_port(url: &str) -> Result<u16> {
    let port = url.rsplit_once(':').and_then(|(_, port)| port.trim_end_matches('/').parse().ok());
    port.ok_or_else(|| Error::Other(format!("the API server's address {url} has no port")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_port_is_the_last_part_of_the_address() {
        assert_eq!(api_port("https://127.0.0.1:21012").unwrap(), 21_012);
        assert!(api_port("https://localhost").is_err());
    }
}
