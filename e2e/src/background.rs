//! Programs that run beside a test, write to a log, and end with it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};

use testbed::{Error, Result, program};

/// A running program; it goes when this goes, and when the test's process does.
pub struct Background {
    child: Child,
    log: PathBuf,
}

impl Background {
    /// Starts a command made by [`program::bound_to_parent`]; what it says goes to the file `log`.
    pub fn start(mut command: Command, log: &Path) -> Result<Self> {
        if let Some(parent) = log.parent() {
            fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
        }
        let output = File::create(log).map_err(Error::file("create", log))?;
        let errors = output.try_clone().map_err(Error::file("write", log))?;
        command.stdin(std::process::Stdio::null()).stdout(output).stderr(errors);
        Ok(Self { child: program::spawn(command)?, log: log.to_path_buf() })
    }

    /// How it ended, if it has.
    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().ok().flatten()
    }

    /// The last lines of what it said.
    pub fn log_tail(&self, lines: usize) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<&str> = text.lines().collect();
        all.get(all.len().saturating_sub(lines)..).unwrap_or_default().join("\n")
    }

    /// Where everything it said is.
    pub fn log(&self) -> &Path {
        &self.log
    }
}

impl Background {
    /// Kills it without a warning.
    pub fn kill(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        self.kill();
    }
}
