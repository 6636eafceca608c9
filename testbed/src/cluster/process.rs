//! The processes of a cluster: each with a log, none outliving whoever started them.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::state::Component;
use crate::error::{Error, Result};
use crate::program::{bound_to_parent, spawn};

/// Running programs; dropping this kills them.
#[derive(Debug)]
pub struct Processes {
    logs: PathBuf,
    running: Vec<Process>,
}

#[derive(Debug)]
struct Process {
    name: &'static str,
    child: Child,
    exited: Option<ExitStatus>,
}

impl Processes {
    /// None yet; logs go to `logs`.
    pub fn new(logs: PathBuf) -> Self {
        Self { logs, running: Vec::new() }
    }

    /// Starts a program with its arguments; its output goes to `<name>.log`.
    pub fn start(&mut self, name: &'static str, program: &Path, arguments: &[String]) -> Result<()> {
        let mut command = bound_to_parent(program);
        command.args(arguments);
        self.start_command(name, command)
    }

    /// Starts a command made by [`bound_to_parent`].
    pub fn start_command(&mut self, name: &'static str, mut command: Command) -> Result<()> {
        let path = self.log_file(name);
        let open = || -> std::io::Result<(File, File)> {
            let log = File::options().create(true).append(true).open(&path)?;
            Ok((log.try_clone()?, log))
        };
        let (out, err) = open().map_err(Error::file("create", &path))?;
        command.stdin(Stdio::null()).stdout(out).stderr(err);
        let child = spawn(command)?;
        self.running.retain(|process| process.name != name);
        self.running.push(Process { name, child, exited: None });
        Ok(())
    }

    /// Kills a program and waits for its end.
    pub fn stop(&mut self, name: &str) {
        for process in self.running.iter_mut().filter(|process| process.name == name) {
            process.end();
        }
        self.running.retain(|process| process.name != name);
    }

    /// An error with the end of its log if a program has ended by itself.
    pub fn check(&mut self) -> Result<()> {
        for process in &mut self.running {
            if let Some(status) = process.poll() {
                let output = std::fs::read_to_string(self.logs.join(format!("{}.log", process.name)));
                return Err(Error::Program {
                    what: process.name.to_owned(),
                    status: status.to_string(),
                    output: output.unwrap_or_default(),
                });
            }
        }
        Ok(())
    }

    /// How the programs are.
    pub fn components(&mut self) -> Vec<Component> {
        let describe = |process: &mut Process| Component {
            name: process.name.to_owned(),
            exited: process.poll().map(|status| status.to_string()),
        };
        self.running.iter_mut().map(describe).collect()
    }

    /// The process numbers of the programs.
    pub fn pids(&self) -> Vec<u32> {
        self.running.iter().map(|process| process.child.id()).collect()
    }

    fn log_file(&self, name: &str) -> PathBuf {
        self.logs.join(format!("{name}.log"))
    }
}

impl Process {
    fn poll(&mut self) -> Option<ExitStatus> {
        if self.exited.is_none() {
            self.exited = self.child.try_wait().ok().flatten();
        }
        self.exited
    }

    fn end(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        // Kill all first: whoever loses its server would otherwise start to complain and retry.
        for process in &mut self.running {
            process.child.kill().ok();
        }
        for process in &mut self.running {
            process.end();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(script: &str) -> (tempfile::TempDir, Processes) {
        let dir = tempfile::tempdir().unwrap();
        let mut processes = Processes::new(dir.path().to_path_buf());
        processes.start("script", Path::new("sh"), &["-c".into(), script.into()]).unwrap();
        (dir, processes)
    }

    #[tokio::test]
    async fn a_program_that_ends_is_reported_with_its_log() {
        let (_dir, mut processes) = start("echo the port is taken >&2; exit 7");
        let text = crate::wait::until("its end", 30, async || match processes.check() {
            Err(error) => Ok(error.to_string()),
            Ok(()) => Err("running".into()),
        })
        .await
        .unwrap();
        assert!(text.contains("exit status: 7") && text.contains("the port is taken"), "{text}");
        assert_eq!(processes.components()[0].exited.as_deref(), Some("exit status: 7"));
    }

    #[test]
    fn dropping_kills() {
        let (_dir, processes) = start("exec sleep 60");
        let pid = processes.pids()[0];
        drop(processes);
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }
}
