//! memcached's lives, one after the other: started, asked whether it is well, stopped so that it keeps its memory.

use std::io;
use std::time::{Duration, Instant, SystemTime};

use memcached_wire::Report;
use rustix::process::Signal as Kill;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};

use super::argument::memory_file;
use super::child::{Child, Exit};
use super::memory_file::{Kept, MemoryFile, pause};
use super::order::{OrderFile, Orders};
use super::reload::Reloader;
use super::state::{Phase, Start, State};
use crate::exporter::Source;

/// How often files and memcached are looked at.
const TICK: Duration = Duration::from_millis(250);
/// One that answers is asked every so many ticks.
const TICKS_BETWEEN_QUESTIONS: u32 = 20;
/// Shorter than anybody waits for the agent.
const QUESTION: Duration = Duration::from_secs(2);
/// One that ended by itself comes back after this, and after longer each time.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);
/// One that was well for so long has not failed again, but anew.
const WELL: Duration = Duration::from_secs(60);

/// What is supervised, and how.
#[derive(Debug)]
pub struct Settings {
    /// memcached's program.
    pub program: String,
    /// Its arguments, unless an order says otherwise.
    pub arguments: Vec<String>,
    /// How to reach it.
    pub source: Source,
    /// How long it goes on serving when the pod is to end, until clients know.
    pub stop_delay: Duration,
    /// How long it may take to stop.
    pub stop_timeout: Duration,
}

/// Why a life ended.
#[derive(Debug)]
enum End {
    /// By itself.
    Exited(Exit),
    /// An order asks for another one.
    Ordered,
    /// The pod is to end.
    Stop,
}

/// A life that has begun.
struct Life {
    child: Child,
    memory: Option<MemoryFile>,
    kept: Kept,
    began: Instant,
    is_ready: bool,
}

/// Keeps memcached running until the pod ends.
pub struct Supervisor<'a> {
    settings: &'a Settings,
    state: &'a State,
    order_file: OrderFile,
    orders: Orders,
    /// Arguments with which memcached did not start: they are not tried again.
    refused: Option<Vec<String>>,
    /// Arguments with which it did.
    proven: Option<Vec<String>>,
    is_started: bool,
    reloader: Reloader,
    terminate: Signal,
    interrupt: Signal,
    children: Signal,
}

impl<'a> Supervisor<'a> {
    /// Nothing is started yet.
    pub fn new(settings: &'a Settings, state: &'a State, orders: OrderFile, reloader: Reloader) -> io::Result<Self> {
        Ok(Self {
            settings,
            state,
            order_file: orders,
            orders: Orders::default(),
            refused: None,
            proven: None,
            is_started: false,
            reloader,
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            children: signal(SignalKind::child())?,
        })
    }

    /// Runs until the pod is to end, or memcached will not run; the code to end with.
    pub async fn run(mut self) -> io::Result<u8> {
        self.take_orders();
        let (mut was_ready, mut failures) = (false, 0);
        loop {
            let mut life = self.begin().await?;
            let end = self.live(&mut life).await;
            was_ready |= life.is_ready;
            if life.is_ready {
                self.proven = Some(self.state.status().memcached.args);
            }
            if life.began.elapsed() > WELL {
                failures = 0;
            }
            match end {
                End::Stop => {
                    self.delay_stop().await;
                    let exit = self.stop(&life).await;
                    tracing::info!(%exit, "memcached has stopped");
                    return Ok(0);
                }
                End::Ordered => {
                    let exit = self.stop(&life).await;
                    tracing::info!(%exit, "memcached has stopped, and is started again");
                }
                End::Exited(exit) => {
                    self.ended(exit);
                    if !life.is_ready && self.falls_back(&life, exit) {
                        continue;
                    }
                    if !was_ready {
                        tracing::error!(%exit, "memcached does not start");
                        return Ok(exit.code().max(1));
                    }
                    failures += 1;
                    tracing::warn!(%exit, failures, "memcached has ended by itself, and is started again");
                    if self.is_stopped_within(backoff(failures)).await {
                        return Ok(0);
                    }
                }
            }
            self.state.update(|status| status.memcached.restarts += 1);
        }
    }

    /// The arguments of the next life.
    fn arguments(&self) -> Vec<String> {
        match &self.orders.args {
            Some(args) if self.refused.as_ref() == Some(args) => {
                self.proven.as_ref().unwrap_or(&self.settings.arguments).clone()
            }
            Some(args) => args.clone(),
            None => self.settings.arguments.clone(),
        }
    }

    async fn begin(&mut self) -> io::Result<Life> {
        let arguments = self.arguments();
        let memory = memory_file(&arguments).map(|path| MemoryFile::new(&path));
        let kept = memory.as_ref().map_or(Kept::Nothing, MemoryFile::inspect);
        if let Some(pause) = pause(kept, SystemTime::now()) {
            sleep(pause).await;
        }
        self.reloader.starting(&arguments);
        let child = Child::spawn(&self.settings.program, &arguments)?;
        tracing::info!(pid = child.pid(), has_memory = kept != Kept::Nothing, "memcached starts");
        self.state.starting();
        self.is_started = true;
        let is_ordered = self.orders.args.as_ref() == Some(&arguments);
        let restart = self.orders.restart.clone();
        self.state.update(|status| {
            status.memcached.phase = Phase::Starting;
            status.memcached.args = arguments;
            status.memcached.start = None;
            status.orders.args_in_force = is_ordered;
            status.orders.restart = restart;
        });
        Ok(Life { child, memory, kept, began: Instant::now(), is_ready: false })
    }

    /// Looks after memcached until this life is over.
    async fn live(&mut self, life: &mut Life) -> End {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut ticks: u32 = 0;
        loop {
            tokio::select! {
                _ = self.terminate.recv() => return End::Stop,
                _ = self.interrupt.recv() => return End::Stop,
                _ = self.children.recv() => {}
                _ = tick.tick() => {
                    ticks = ticks.wrapping_add(1);
                    if !life.is_ready || ticks.is_multiple_of(TICKS_BETWEEN_QUESTIONS) {
                        self.ask(life).await;
                    }
                    if life.is_ready {
                        self.reloader.poll(&life.child, &self.settings.source, self.state).await;
                    }
                    if self.take_orders() {
                        return End::Ordered;
                    }
                }
            }
            if let Some(exit) = life.child.reap() {
                return End::Exited(exit);
            }
        }
    }

    /// Asks memcached how it is.
    async fn ask(&self, life: &mut Life) {
        let question = async {
            let mut connection = self.settings.source.connect().await.ok()?;
            let version = connection.version().await.ok()?;
            let first = if life.is_ready { None } else { Some(connection.stats(Report::General).await.ok()?) };
            Some((version, first))
        };
        let Ok(Some((version, first))) = timeout(QUESTION, question).await else { return };
        self.state.answered();
        let Some(stats) = first else { return };
        let number = |name: &str| stats.get(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or_default();
        let (uptime, items) = (number("uptime"), number("curr_items"));
        let is_warm = match life.kept {
            Kept::Memory(left) => left.is_taken_up(SystemTime::now(), life.began.elapsed(), uptime, items),
            Kept::Nothing => false,
        };
        let (start, items) = if is_warm { (Start::Warm, items) } else { (Start::Cold, 0) };
        tracing::info!(version, ?start, items, "memcached answers");
        life.is_ready = true;
        self.state.update(|status| {
            let memcached = &mut status.memcached;
            (memcached.phase, memcached.version) = (Phase::Ready, Some(version));
            (memcached.start, memcached.items_recovered) = (Some(start), items);
            memcached.warm_starts += u64::from(is_warm);
            memcached.cold_starts += u64::from(!is_warm);
        });
        self.reloader.started(self.state).await;
    }

    /// Reads what is asked for; whether memcached has to be started anew for it.
    fn take_orders(&mut self) -> bool {
        let Some(orders) = self.order_file.poll() else { return false };
        let error = orders.error.clone();
        if let Some(error) = &error {
            tracing::error!(error, "an order makes no sense and is not carried out");
        }
        self.state.update(|status| status.orders.error = error);
        let args = if orders.error.is_some() { self.orders.args.clone() } else { orders.args };
        let new = Orders { args, restart: orders.restart, error: None };
        let before = std::mem::replace(&mut self.orders, new);
        if before.args != self.orders.args {
            self.refused = None;
        }
        self.is_started
            && (self.arguments() != self.state.status().memcached.args || before.restart != self.orders.restart)
    }

    /// memcached did not come up: whether there is another way to start it.
    fn falls_back(&mut self, life: &Life, exit: Exit) -> bool {
        let arguments = self.arguments();
        let is_ordered = self.orders.args.as_ref() == Some(&arguments);
        if is_ordered && self.refused.is_none() && arguments != self.settings.arguments {
            let error = format!("memcached does not start with the arguments asked for ({exit}): others are in force");
            tracing::error!(error);
            self.state.update(|status| status.orders.error = Some(error));
            self.refused = Some(arguments);
            return true;
        }
        if let (Some(memory), Kept::Memory(_)) = (&life.memory, life.kept) {
            tracing::error!(%exit, "memcached does not start with what it left: it starts empty");
            memory.discard();
            return true;
        }
        false
    }

    /// Lets memcached stop, with its memory if it keeps one.
    async fn stop(&mut self, life: &Life) -> Exit {
        self.state.update(|status| status.memcached.phase = Phase::Stopping);
        life.child.signal(if life.memory.is_some() { Kill::USR1 } else { Kill::TERM });
        let exit = if let Ok(exit) = timeout(self.settings.stop_timeout, self.exit(&life.child)).await {
            exit
        } else {
            tracing::error!("memcached does not stop: it is killed, and starts empty");
            life.child.signal(Kill::KILL);
            self.exit(&life.child).await
        };
        self.ended(exit);
        exit
    }

    async fn exit(&mut self, child: &Child) -> Exit {
        loop {
            if let Some(exit) = child.reap() {
                return exit;
            }
            // A signal may come before we wait for it.
            timeout(TICK, self.children.recv()).await.ok();
        }
    }

    fn ended(&self, exit: Exit) {
        self.state.update(|status| {
            status.memcached.phase = Phase::Ended;
            status.memcached.last_exit = Some(exit.to_string());
        });
    }

    /// Goes on serving for a while; told twice, it does not.
    async fn delay_stop(&mut self) {
        if !self.settings.stop_delay.is_zero() {
            self.is_stopped_within(self.settings.stop_delay).await;
        }
    }

    /// Waits; whether we are told to stop meanwhile.
    async fn is_stopped_within(&mut self, pause: Duration) -> bool {
        tokio::select! {
            _ = self.terminate.recv() => true,
            _ = self.interrupt.recv() => true,
            () = sleep(pause) => false,
        }
    }
}

/// How long until memcached is started again after so many failures in a row.
fn backoff(failures: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << failures.saturating_sub(1).min(10)).min(LONGEST_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_are_further_and_further_apart() {
        let pauses: Vec<Duration> = (1..=20).map(backoff).collect();
        assert_eq!(pauses[0], FIRST_PAUSE);
        assert!(pauses.windows(2).all(|pair| pair[0] <= pair[1]));
        assert_eq!(pauses[19], LONGEST_PAUSE);
    }
}
