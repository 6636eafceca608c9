//! One word to end everything: SIGTERM or SIGINT becomes a token that every task can wait for.
//! A second signal ends the process at once, for the people who press Ctrl-C twice.

use std::io;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::{CancellationToken, DropGuard};

/// What a process says when it was ended by a second signal, as a shell would.
const INTERRUPTED: i32 = 130;

/// A token that says when to end; clones of it all say the same.
///
/// ```
/// # use operator_kit::shutdown;
/// # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
/// let (trigger, token) = shutdown::channel();
/// let task = tokio::spawn({
///     let token = token.clone();
///     async move { token.requested().await }
/// });
/// assert!(!token.is_requested());
/// trigger.fire();
/// task.await.unwrap();
/// assert!(token.is_requested());
/// # });
/// ```
#[derive(Debug, Clone)]
pub struct Shutdown {
    token: CancellationToken,
}

impl Shutdown {
    /// Waits until the end is asked for.
    pub async fn requested(&self) {
        self.token.cancelled().await;
    }

    /// Whether the end was asked for.
    pub fn is_requested(&self) -> bool {
        self.token.is_cancelled()
    }
}

/// What asks for the end; dropping it asks too, since nobody would be left who could.
#[derive(Debug)]
pub struct Trigger {
    token: CancellationToken,
    _guard: DropGuard,
}

impl Trigger {
    /// Asks for the end.
    pub fn fire(&self) {
        self.token.cancel();
    }
}

/// A token, and what sets it off: for a part that has to end before or after the others.
pub fn channel() -> (Trigger, Shutdown) {
    let token = CancellationToken::new();
    (Trigger { token: token.clone(), _guard: token.clone().drop_guard() }, Shutdown { token })
}

/// A token that SIGTERM or SIGINT sets off.
pub fn on_signals() -> io::Result<Shutdown> {
    let (trigger, token) = channel();
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    tokio::spawn(async move {
        let name = either(&mut terminate, &mut interrupt).await;
        tracing::info!(signal = name, "shutting down");
        trigger.fire();
        let name = either(&mut terminate, &mut interrupt).await;
        tracing::warn!(signal = name, "asked twice, ending at once");
        std::process::exit(INTERRUPTED);
    });
    Ok(token)
}

async fn either(terminate: &mut Signal, interrupt: &mut Signal) -> &'static str {
    tokio::select! {
        _ = terminate.recv() => "SIGTERM",
        _ = interrupt.recv() => "SIGINT",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_clone_hears_it_and_hears_it_late_too() {
        let (trigger, token) = channel();
        let early = tokio::spawn({
            let token = token.clone();
            async move { token.requested().await }
        });
        assert!(!token.is_requested());
        trigger.fire();
        early.await.unwrap();
        token.clone().requested().await;
        assert!(token.is_requested());
    }

    #[tokio::test]
    async fn a_dropped_trigger_is_the_end_too() {
        let (trigger, token) = channel();
        drop(trigger);
        token.requested().await;
        assert!(token.is_requested());
    }

    #[tokio::test]
    async fn a_signal_asks_for_the_end() {
        let token = on_signals().unwrap();
        assert!(!token.is_requested());
        rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::TERM).unwrap();
        tokio::time::timeout(std::time::Duration::from_secs(10), token.requested()).await.expect("the end");
    }
}
