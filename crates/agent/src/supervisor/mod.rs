//! The first process of memcached's container: memcached is its child, and keeps its memory, its certificates and its
//! passwords in force across everything that can be done without ending the pod.

mod annotation;
mod announcement;
pub(crate) mod argument;
pub(crate) mod child;
mod file;
mod life;
mod memory_file;
mod metrics;
mod order;
pub(crate) mod question;
mod reload;
pub(crate) mod signal;
mod site;
mod state;

use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use crate::args::{Listen, Run};
use crate::exporter::{Scraper, Source};
use crate::http;
use life::{Settings, Supervisor};
use order::OrderFile;
use reload::Reloader;
use signal::Signals;
use site::{MetricsSite, StatusSite};
use state::State;

/// Why memcached could not be supervised.
#[derive(Debug, thiserror::Error)]
pub enum SupervisorError {
    /// The address is taken, or not ours.
    #[error("failed to listen at {address}")]
    Listen {
        /// Where it should have been.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no threads, timers or signals, or there is no such program.
    #[error("failed to start {what}")]
    Start {
        /// What did not start.
        what: String,
        /// What the system said.
        source: io::Error,
    },
}

/// Runs memcached until a signal says stop, or memcached will not run.
pub fn run(run: Run) -> Result<ExitCode, SupervisorError> {
    let failed = |source| SupervisorError::Start { what: "the agent".into(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    runtime.block_on(supervise(run))
}

async fn supervise(run: Run) -> Result<ExitCode, SupervisorError> {
    let failed = |source| SupervisorError::Start { what: "the agent".into(), source };
    let mut signals = Signals::register().map_err(failed)?;
    let state = Arc::new(State::default());
    // One for both: what it took to get in before is known to whoever asks.
    let source = Arc::new(Source::of(&run.target));
    let status = Arc::new(StatusSite { state: Arc::clone(&state), source: Arc::clone(&source) });
    let scraper = Scraper::new(Source::of(&run.target), run.target.timeout);
    let metrics = Arc::new(MetricsSite { state: Arc::clone(&state), scraper });
    // Bound before memcached starts: one that cannot be asked must not run.
    let (status_listener, metrics_listener) = (bind(&run.status_listen)?, bind(&run.listen)?);
    // They are asked until the very end, and end with the process.
    tokio::spawn(http::serve(status_listener, status, std::future::pending()));
    tokio::spawn(http::serve(metrics_listener, metrics, std::future::pending()));
    let mut words = run.command.iter().cloned();
    let settings = Settings {
        program: words.next().unwrap_or_default(),
        arguments: words.collect(),
        source,
        stop_delay: run.stop_delay,
        stop_timeout: run.stop_timeout,
    };
    let failed = |source| SupervisorError::Start { what: settings.program.clone(), source };
    let reloader = Reloader::new(run.tls_address);
    let supervisor = Supervisor::new(&settings, &state, OrderFile::new(run.annotations_file), reloader);
    let code = supervisor.run(&mut signals).await.map_err(failed)?;
    Ok(ExitCode::from(code))
}

fn bind(listen: &Listen) -> Result<std::net::TcpListener, SupervisorError> {
    let listener = listen.bind().map_err(|source| SupervisorError::Listen { address: listen.to_string(), source })?;
    if let Ok(address) = listener.local_addr() {
        tracing::info!(%address, "listening");
    }
    Ok(listener)
}
