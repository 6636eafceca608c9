//! Whether memcached is well, asked as a client would ask.

use std::time::{Duration, SystemTime};

use memcached_wire::{Report, Stats};
use tokio::time::timeout;

use super::child::Child;
use super::life::{Life, Supervisor};
use super::memory_file::Kept;
use super::state::{Phase, Start};
use crate::Chain;
use crate::exporter::{Source, SourceError};

/// Shorter than anybody waits for the agent.
pub(crate) const QUESTION: Duration = Duration::from_secs(2);

impl Supervisor<'_> {
    /// Asks memcached how it is.
    pub(super) async fn ask(&mut self, life: &mut Life) {
        let asked = question(&self.settings.source, !life.is_ready);
        let Ok(answer) = timeout(QUESTION, asked).await else { return };
        match answer {
            Ok((version, stats)) => {
                self.state.answered();
                (life.is_up, life.trouble) = (true, None);
                if let Some(stats) = stats {
                    self.ready(life, version, &stats).await;
                }
            }
            Err(error) => {
                life.is_up |= error.is_refusal();
                if error.is_sign_of_life() {
                    self.state.answered();
                }
                let trouble = Chain(&error).to_string();
                if life.trouble.as_ref() != Some(&trouble) {
                    tracing::debug!(error = trouble, "memcached does not let us in");
                    life.trouble = Some(trouble);
                }
            }
        }
    }

    /// memcached answers for the first time.
    async fn ready(&mut self, life: &mut Life, version: String, stats: &Stats) {
        if !is_of(stats, &life.child) {
            return;
        }
        let number = |name: &str| stats.get(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or_default();
        let (uptime, items) = (number("uptime"), number("curr_items"));
        let is_warm = match life.kept {
            Kept::Memory(left) => left.is_taken_up(SystemTime::now(), life.began.elapsed(), uptime, items),
            Kept::Nothing => false,
        };
        let (start, items) = if is_warm { (Start::Warm, items) } else { (Start::Cold, 0) };
        tracing::info!(version, ?start, items, "memcached answers");
        life.is_ready = true;
        let args = self.state.status().memcached.args;
        let is_ordered = self.orders.args.as_ref() == Some(&args);
        self.proven = Some(args);
        // Items of another memory are older than what is stored from now on: they must not come back.
        if self.memory != life.memory
            && let Some(old) = std::mem::replace(&mut self.memory, life.memory.clone())
        {
            old.discard();
        }
        let restart = self.orders.restart.clone();
        self.state.update(|status| {
            let memcached = &mut status.memcached;
            (memcached.phase, memcached.version) = (Phase::Ready, Some(version));
            (memcached.start, memcached.items_recovered) = (Some(start), items);
            memcached.warm_starts += u64::from(is_warm);
            memcached.cold_starts += u64::from(!is_warm);
            status.orders.args_in_force = is_ordered;
            status.orders.restart = restart;
        });
        self.reloader.started(&self.settings.source, self.state).await;
    }
}

/// memcached's version and, where they are wanted, its statistics.
pub(crate) async fn question(source: &Source, wants_stats: bool) -> Result<(String, Option<Stats>), SourceError> {
    let mut connection = source.connect_anyhow().await?;
    let version = connection.version().await?;
    let stats = if wants_stats { Some(connection.stats(Report::General).await?) } else { None };
    Ok((version, stats))
}

/// Whether these are statistics of this memcached: somebody else may have its port.
pub(crate) fn is_of(stats: &Stats, child: &Child) -> bool {
    stats.get("pid").and_then(|pid| pid.parse::<i32>().ok()) == Some(child.pid())
}
