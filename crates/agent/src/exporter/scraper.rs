//! One scrape after another over one connection that is kept; a broken one is replaced.

use std::time::Duration;

use memcached_wire::{Connection, Error, ErrorClass, Report, Stream};
use tokio::sync::Mutex;
use tokio::time::timeout;

use super::catalogue::{down, families};
use super::family::Families;
use super::reading::{Nonsense, Reading};
use super::source::{Source, SourceError};
use crate::Chain;

/// Why memcached has no figures for us.
#[derive(Debug, thiserror::Error)]
enum ScrapeError {
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Wire(#[from] Error),
    #[error(transparent)]
    Nonsense(#[from] Nonsense),
    #[error("failed to read all statistics within {} ms", .0.as_millis())]
    Timeout(Duration),
}

/// Asks memcached for its statistics.
#[derive(Debug)]
pub struct Scraper {
    source: Source,
    timeout: Duration,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    connection: Option<Connection<Stream>>,
    /// What was said last: the same trouble is not told at every scrape.
    told: Option<String>,
}

impl Scraper {
    /// Asks this memcached, for so long.
    pub fn new(source: Source, timeout: Duration) -> Self {
        Self { source, timeout, state: Mutex::default() }
    }

    /// The most that a scrape takes.
    pub fn timeout(&self) -> Duration {
        self.timeout
    }

    /// The metrics as text; `memcached_up` alone, and 0, if memcached has none.
    pub async fn scrape(&self) -> String {
        // Waiting for another's scrape counts: nobody waits longer than they were told.
        let outcome = timeout(self.timeout, async {
            let mut state = self.state.lock().await;
            let outcome = self.read(&mut state.connection).await;
            self.tell(&mut state, outcome.as_ref().err());
            outcome
        })
        .await;
        match outcome {
            Ok(Ok(families)) => families.to_string(),
            Ok(Err(_)) => down().to_string(),
            Err(_) => {
                if let Ok(mut state) = self.state.try_lock() {
                    self.tell(&mut state, Some(&ScrapeError::Timeout(self.timeout)));
                }
                down().to_string()
            }
        }
    }

    async fn read(&self, kept: &mut Option<Connection<Stream>>) -> Result<Families, ScrapeError> {
        // Taken out: a scrape that is given up half-way takes its connection with it.
        if let Some(mut connection) = kept.take().filter(Connection::is_usable) {
            match ask(&mut connection).await {
                // It may have been closed long ago, by a restart or for being idle: that says nothing about now.
                Err(error) if error.class() == ErrorClass::Closed => {
                    tracing::debug!("the connection is gone, trying anew");
                }
                outcome => return keep(kept, connection, outcome),
            }
        }
        let mut connection = self.source.connect().await?;
        let outcome = ask(&mut connection).await;
        keep(kept, connection, outcome)
    }

    fn tell(&self, state: &mut State, error: Option<&ScrapeError>) {
        let said = error.map(|error| Chain(error).to_string());
        if said == state.told {
            return;
        }
        if let Some(error) = &said {
            tracing::warn!(memcached = self.source.address(), error, "memcached is down");
        } else {
            tracing::info!(memcached = self.source.address(), "memcached is up again");
        }
        state.told = said;
    }
}

/// Keeps the connection if what came over it makes sense.
fn keep(
    kept: &mut Option<Connection<Stream>>,
    connection: Connection<Stream>,
    outcome: Result<Reading, Error>,
) -> Result<Families, ScrapeError> {
    let families = families(&outcome?)?;
    *kept = Some(connection);
    Ok(families)
}

async fn ask(connection: &mut Connection<Stream>) -> Result<Reading, Error> {
    Ok(Reading {
        general: connection.stats(Report::General).await?,
        settings: connection.stats(Report::Settings).await?,
        items: connection.stats(Report::Items).await?,
        slabs: connection.stats(Report::Slabs).await?,
    })
}
