//! The signals that the first process of a container gets.

use std::io;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{sleep, timeout};

/// The signals. They are registered before anything else: the kernel lets the first process miss those that it has no
/// handler for.
#[derive(Debug)]
pub struct Signals {
    terminate: Signal,
    interrupt: Signal,
    children: Signal,
}

impl Signals {
    /// Registers for them.
    pub fn register() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            children: signal(SignalKind::child())?,
        })
    }

    /// Waits until we are told to stop.
    pub async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    /// Waits; whether we are told to stop meanwhile.
    pub async fn stop_within(&mut self, pause: Duration) -> bool {
        tokio::select! {
            () = self.stop() => true,
            () = sleep(pause) => false,
        }
    }

    /// Waits until a process below us may have ended, or for so long: a signal may come before we wait for it.
    pub async fn child_within(&mut self, pause: Duration) {
        timeout(pause, self.children.recv()).await.ok();
    }
}
