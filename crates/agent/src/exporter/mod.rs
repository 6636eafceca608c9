//! memcached's statistics as Prometheus metrics, under the stock exporter's names.

mod catalogue;
pub(crate) mod family;
mod reading;
mod scraper;
mod source;

use std::io;
use std::sync::Arc;
use std::time::Duration;

use tokio::signal::unix::{SignalKind, signal};

use crate::args::Exporter;
use crate::http::{self, Answer, Site};
pub(crate) use scraper::Scraper;
pub(crate) use source::{Source, SourceError};

/// Why the exporter could not run.
#[derive(Debug, thiserror::Error)]
pub enum ExporterError {
    /// The address is taken, or not ours.
    #[error("failed to listen at {address}")]
    Listen {
        /// Where it should have been.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The system gives no threads, timers or signals.
    #[error("failed to start")]
    Start(#[source] io::Error),
}

/// Serves until a signal says stop.
pub fn run(exporter: Exporter) -> Result<(), ExporterError> {
    // One scrape at a time needs one thread.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(ExporterError::Start)?;
    runtime.block_on(serve(exporter))
}

async fn serve(exporter: Exporter) -> Result<(), ExporterError> {
    let failed = |source| ExporterError::Listen { address: exporter.listen.to_string(), source };
    let listener = exporter.listen.bind().map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    let mut terminate = signal(SignalKind::terminate()).map_err(ExporterError::Start)?;
    let mut interrupt = signal(SignalKind::interrupt()).map_err(ExporterError::Start)?;
    let target = &exporter.target;
    let scraper = Arc::new(Scraper::new(Source::of(target), target.timeout));
    tracing::info!(%address, memcached = target.memcached, "serving metrics");
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("told to stop (SIGTERM)"),
            _ = interrupt.recv() => tracing::info!("told to stop (SIGINT)"),
        }
    };
    http::serve(listener, scraper, stop).await.map_err(failed)
}

impl Site for Scraper {
    const PATHS: &'static str = "/metrics and /healthz";

    fn longest(&self) -> Duration {
        self.timeout()
    }

    async fn answer(&self, path: &str) -> Option<Answer> {
        match path {
            "/metrics" => Some(Answer::ok(self.scrape().await).of_type(family::CONTENT_TYPE)),
            "/healthz" => Some(Answer::ok("ok\n")),
            _ => None,
        }
    }
}
