//! What the agent knows: written by the supervisor, read by whoever asks on its ports.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

/// The version of what the status port tells. Fields are added without raising it; an operator leaves alone those that it
/// does not know.
pub const PROTOCOL: u32 = 1;

/// memcached that has answered once and then is silent for so long is not alive.
const SILENT: Duration = Duration::from_secs(60);

/// Where memcached is on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub enum Phase {
    /// It starts, or takes up its memory.
    #[default]
    Starting,
    /// It answers.
    Ready,
    /// It is being stopped.
    Stopping,
    /// It has ended, and is about to be started again.
    Ended,
}

/// Whether memcached had its items when it started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Start {
    /// It took up what it had before.
    Warm,
    /// It started empty.
    Cold,
}

/// Everything that is told.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// See [`PROTOCOL`].
    pub protocol: u32,
    /// The agent's version.
    pub agent: &'static str,
    /// memcached itself.
    pub memcached: Memcached,
    /// What was asked for.
    pub orders: OrdersStatus,
    /// The certificate that is shown; none without TLS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificates: Option<ReloadStatus>,
    /// Users and passwords; none without.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials: Option<ReloadStatus>,
}

/// What is known of memcached.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Memcached {
    /// How far it is.
    pub phase: Phase,
    /// Its version, as it says.
    pub version: Option<String>,
    /// The arguments in force.
    pub args: Vec<String>,
    /// How it started.
    pub start: Option<Start>,
    /// How many items it had then.
    pub items_recovered: u64,
    /// How often it started with its items.
    pub warm_starts: u64,
    /// How often it started without.
    pub cold_starts: u64,
    /// How often it was started again by this agent.
    pub restarts: u64,
    /// How it ended last.
    pub last_exit: Option<String>,
}

/// What was asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrdersStatus {
    /// Whether the arguments in force are those of the annotation.
    pub args_in_force: bool,
    /// The restart that was carried out last.
    pub restart: Option<String>,
    /// The hash of the Secrets that was announced: the files that came with it have been compared since.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub secret_hash: Option<String>,
    /// Why something was not carried out.
    pub error: Option<String>,
}

/// What is read anew while memcached runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReloadStatus {
    /// Whether what the files hold now is in force, as a client sees it; none where that cannot be looked at.
    pub in_force: Option<bool>,
    /// The serial number of the certificate that is shown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub serial: Option<String>,
    /// Until when it is good, in seconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_after: Option<i64>,
    /// How often files were taken.
    pub reloads: u64,
    /// How often they were not.
    pub failures: u64,
    /// Why the last ones were not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// The state of the agent.
#[derive(Debug)]
pub struct State {
    inner: Mutex<Inner>,
}

#[derive(Debug)]
struct Inner {
    status: Status,
    answered: Option<Instant>,
}

impl Default for State {
    fn default() -> Self {
        let status = Status { protocol: PROTOCOL, agent: env!("CARGO_PKG_VERSION"), ..Status::default() };
        Self { inner: Mutex::new(Inner { status, answered: None }) }
    }
}

impl State {
    /// Everything as it is now.
    pub fn status(&self) -> Status {
        self.inner().status.clone()
    }

    /// Changes what is known.
    pub fn update(&self, change: impl FnOnce(&mut Status)) {
        change(&mut self.inner().status);
    }

    /// memcached has answered.
    pub fn answered(&self) {
        self.inner().answered = Some(Instant::now());
    }

    /// memcached starts anew: its silence counts from its first answer.
    pub fn starting(&self) {
        self.inner().answered = None;
    }

    /// Why somebody should look after memcached; none while it is well, or on its way.
    pub fn check(&self) -> Result<(), String> {
        let inner = self.inner();
        let silent = inner.answered.map(|at| at.elapsed()).filter(|silent| *silent > SILENT);
        match silent {
            Some(silent) if inner.status.memcached.phase == Phase::Ready => {
                Err(format!("memcached runs, and has not answered for {} s", silent.as_secs()))
            }
            _ => Ok(()),
        }
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn silence_counts_from_the_first_answer() {
        let state = State::default();
        assert_eq!(state.check(), Ok(()), "it may take up its memory for long");
        state.update(|status| status.memcached.phase = Phase::Ready);
        state.answered();
        assert_eq!(state.check(), Ok(()));
        state.inner().answered = Instant::now().checked_sub(SILENT + Duration::from_secs(5));
        assert!(state.check().unwrap_err().contains("has not answered for 65 s"));
        state.starting();
        assert_eq!(state.check(), Ok(()));
    }

    #[test]
    fn the_status_has_the_names_that_operators_read() {
        let status = serde_json::to_value(State::default().status()).unwrap();
        assert_eq!(status["protocol"], 1);
        assert_eq!(status["memcached"]["phase"], "Starting");
        assert_eq!(status["memcached"]["itemsRecovered"], 0);
        assert_eq!(status["orders"]["argsInForce"], false);
        assert!(status.get("certificates").is_none());
        assert!(status["orders"].get("secretHash").is_none());
        let state = State::default();
        state.update(|status| status.orders.secret_hash = Some("5ec7e7".into()));
        assert_eq!(serde_json::to_value(state.status()).unwrap()["orders"]["secretHash"], "5ec7e7");
    }
}
