//! memcached's statistics as Prometheus metrics, under the stock exporter's names.

mod catalogue;
mod family;
mod reading;
mod scraper;
mod server;
mod source;

use std::io;
use std::sync::Arc;

use tokio::signal::unix::{SignalKind, signal};

use crate::args::Exporter;
use scraper::Scraper;
use source::Source;

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
    let scraper = Arc::new(Scraper::new(Source::of(&exporter), exporter.timeout));
    tracing::info!(%address, memcached = exporter.memcached, "serving metrics");
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => tracing::info!("told to stop (SIGTERM)"),
            _ = interrupt.recv() => tracing::info!("told to stop (SIGINT)"),
        }
    };
    server::serve(listener, scraper, stop).await.map_err(failed)
}
