//! memcached's process. As the first process of the container we also inherit those that nobody waits for.

use std::fmt;
use std::io;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, kill_process, wait};

use super::signal::Signals;

/// How often it is looked at whether it has ended, should the signal that tells it be missed.
const TICK: Duration = Duration::from_millis(250);

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    fn of(status: WaitStatus) -> Option<Self> {
        let code = status.exit_status().map(Self::Code);
        code.or_else(|| status.terminating_signal().map(Self::Signal))
    }

    /// The code that a shell would end with.
    pub fn code(self) -> u8 {
        let code = match self {
            Self::Code(code) => code,
            Self::Signal(signal) => signal.saturating_add(128),
        };
        u8::try_from(code).unwrap_or(u8::MAX)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// A running memcached.
#[derive(Debug)]
pub struct Child {
    pid: Pid,
}

impl Child {
    /// Starts it; what it says goes where we say things.
    pub fn spawn(program: &str, arguments: &[String]) -> io::Result<Self> {
        let child = Command::new(program).args(arguments).stdin(Stdio::null()).spawn()?;
        let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        Ok(Self { pid: pid.ok_or(io::ErrorKind::InvalidData)? })
    }

    /// Its process id.
    pub fn pid(&self) -> i32 {
        self.pid.as_raw_nonzero().get()
    }

    /// Sends it a signal; one that has ended does not mind.
    pub fn signal(&self, signal: Signal) {
        if let Err(error) = kill_process(self.pid, signal) {
            tracing::debug!(%error, ?signal, "memcached is not there");
        }
    }

    /// Takes in every process that has ended; how memcached did, if it has.
    pub fn reap(&self) -> Option<Exit> {
        let mut exit = None;
        // An error says that there is nobody to wait for.
        while let Ok(Some((pid, status))) = wait(WaitOptions::NOHANG) {
            if pid == self.pid {
                exit = Exit::of(status);
            }
        }
        exit
    }

    /// Waits for its end.
    pub async fn exit(&self, signals: &mut Signals) -> Exit {
        loop {
            if let Some(exit) = self.reap() {
                return exit;
            }
            signals.child_within(TICK).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_a_shell() {
        assert_eq!((Exit::Code(3).code(), Exit::Signal(9).code()), (3, 137));
        assert_eq!(Exit::Code(-1).code(), 255);
    }
}
