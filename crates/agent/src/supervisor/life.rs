//! memcached's lives, one after the other: started, asked whether it is well, stopped so that it keeps its memory.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use rustix::process::Signal;
use tokio::time::{Interval, MissedTickBehavior, interval, timeout};

use super::announcement::Announcement;
use super::argument::memory_file;
use super::child::{Child, Exit};
use super::memory_file::{Kept, MemoryFile, pause};
use super::order::{OrderFile, Orders};
use super::reload::Reloader;
use super::signal::Signals;
use super::state::{Phase, State};
use crate::exporter::Source;

/// How often files and memcached are looked at.
const TICK: Duration = Duration::from_millis(250);
/// One that answers is asked every so many ticks.
const TICKS_BETWEEN_QUESTIONS: u32 = 20;
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
    pub source: Arc<Source>,
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
pub(super) struct Life {
    pub(super) child: Child,
    pub(super) memory: Option<MemoryFile>,
    pub(super) kept: Kept,
    pub(super) began: Instant,
    pub(super) is_ready: bool,
    /// It is up, if only to send us away: it takes signals as it should.
    pub(super) is_up: bool,
    pub(super) ticks: u32,
    /// Why it was not ready when it was last asked.
    pub(super) trouble: Option<String>,
}

/// Keeps memcached running until the pod ends.
pub struct Supervisor<'a> {
    pub(super) settings: &'a Settings,
    pub(super) state: &'a State,
    pub(super) order_file: OrderFile,
    pub(super) orders: Orders,
    pub(super) announcement: Announcement,
    /// Arguments with which memcached did not start: they are not tried again.
    pub(super) refused: Option<Vec<String>>,
    /// Arguments with which it did.
    pub(super) proven: Option<Vec<String>>,
    pub(super) is_started: bool,
    /// The memory of the last life; another life makes it worthless.
    pub(super) memory: Option<MemoryFile>,
    /// Memory was given up because memcached aborted on it; once is enough to know whether that helps.
    pub(super) has_discarded: bool,
    pub(super) reloader: Reloader,
}

impl<'a> Supervisor<'a> {
    /// Nothing is started yet.
    pub fn new(settings: &'a Settings, state: &'a State, orders: OrderFile, reloader: Reloader) -> Self {
        Self {
            settings,
            state,
            order_file: orders,
            orders: Orders::default(),
            announcement: Announcement::default(),
            refused: None,
            proven: None,
            is_started: false,
            memory: memory_file(&settings.arguments).map(|path| MemoryFile::new(&path)),
            has_discarded: false,
            reloader,
        }
    }

    /// Runs until the pod is to end, or memcached will not run; the code to end with.
    pub async fn run(mut self, signals: &mut Signals) -> io::Result<u8> {
        self.take_orders();
        let mut failures = 0;
        loop {
            if let Some(code) = self.live_once(signals, &mut failures).await? {
                return Ok(code);
            }
        }
    }

    /// One life of memcached; the code to end with, if that was the last.
    async fn live_once(&mut self, signals: &mut Signals, failures: &mut u32) -> io::Result<Option<u8>> {
        let arguments = self.arguments();
        let memory = memory_file(&arguments).map(|path| MemoryFile::new(&path));
        let kept = memory.as_ref().map_or(Kept::Nothing, MemoryFile::inspect);
        if let Some(pause) = pause(kept, SystemTime::now())
            && signals.stop_within(pause).await
        {
            return Ok(Some(0));
        }
        let mut life = match self.begin(arguments, memory, kept) {
            Ok(life) => life,
            // Arguments that the system does not take, or a moment without room for a process.
            Err(error) if self.proven.is_some() => {
                tracing::error!(%error, "failed to start memcached");
                self.refuse_order(&error.to_string());
                return Ok(pause_after(signals, failures).await);
            }
            Err(error) => return Err(error),
        };
        let end = self.live(signals, &mut life).await;
        if life.began.elapsed() > WELL {
            *failures = 0;
        }
        match end {
            End::Stop => {
                self.stop_with_delay(signals, &life).await;
                return Ok(Some(0));
            }
            End::Ordered => self.stop(signals, &life).await,
            End::Exited(exit) => {
                self.ended(exit);
                if !life.is_ready && self.falls_back(&life, exit) {
                    return Ok(None);
                }
                if self.proven.is_none() {
                    tracing::error!(%exit, "memcached does not start");
                    return Ok(Some(exit.code().max(1)));
                }
                tracing::warn!(%exit, failures, "memcached has ended by itself, and is started again");
                if let Some(code) = pause_after(signals, failures).await {
                    return Ok(Some(code));
                }
            }
        }
        self.state.update(|status| status.memcached.restarts += 1);
        Ok(None)
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

    fn begin(&mut self, arguments: Vec<String>, memory: Option<MemoryFile>, kept: Kept) -> io::Result<Life> {
        self.reloader.starting(&arguments, self.state);
        self.forget_announcement();
        self.is_started = true;
        let child = Child::spawn(&self.settings.program, &arguments)?;
        tracing::info!(pid = child.pid(), has_memory = kept != Kept::Nothing, "memcached starts");
        self.state.starting();
        self.state.update(|status| {
            status.memcached.phase = Phase::Starting;
            status.memcached.args = arguments;
            status.memcached.start = None;
            status.orders.args_in_force = false;
        });
        let began = Instant::now();
        Ok(Life { child, memory, kept, began, is_ready: false, is_up: false, ticks: 0, trouble: None })
    }

    /// Looks after memcached until this life is over.
    async fn live(&mut self, signals: &mut Signals, life: &mut Life) -> End {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            // Whatever is under way, one who is to stop does so at once: the kubelet counts the seconds.
            let is_ordered = tokio::select! {
                biased;
                () = signals.stop() => return End::Stop,
                is_ordered = self.look_after(&mut tick, life) => is_ordered,
            };
            if let Some(exit) = life.child.reap() {
                return End::Exited(exit);
            }
            if is_ordered {
                return End::Ordered;
            }
        }
    }

    /// What is done a few times a second; whether memcached has to be started anew.
    async fn look_after(&mut self, tick: &mut Interval, life: &mut Life) -> bool {
        tick.tick().await;
        life.ticks = life.ticks.wrapping_add(1);
        if !life.is_ready || life.ticks.is_multiple_of(TICKS_BETWEEN_QUESTIONS) {
            self.ask(life).await;
        }
        // A signal before memcached has its handlers would end it.
        if life.is_up {
            self.take_files(life).await;
        }
        let is_ordered = self.take_orders();
        self.note_announcement();
        is_ordered
    }

    /// Reads what is asked for; whether memcached has to be started anew for it.
    fn take_orders(&mut self) -> bool {
        let Some(orders) = self.order_file.poll() else { return false };
        let error = orders.error.clone();
        if let Some(error) = &error {
            tracing::error!(error, "an order makes no sense and is not carried out");
        }
        let args = if orders.error.is_some() { self.orders.args.clone() } else { orders.args };
        let new = Orders { args, restart: orders.restart, secret_hash: orders.secret_hash, error: None };
        let before = std::mem::replace(&mut self.orders, new);
        // A token that is taken away asks for nothing.
        let is_restart = self.orders.restart.is_some() && before.restart != self.orders.restart;
        if before.args != self.orders.args || is_restart {
            self.refused = None;
        }
        if error.is_some() || self.refused.is_none() {
            self.state.update(|status| status.orders.error = error);
        }
        self.is_started && (self.arguments() != self.state.status().memcached.args || is_restart)
    }

    /// memcached did not come up: whether there is another way to start it.
    fn falls_back(&mut self, life: &Life, exit: Exit) -> bool {
        if self.refuse_order(&exit.to_string()) {
            return true;
        }
        // What memcached left makes it abort. Whatever else keeps it from starting, a file of a Secret for example, is no
        // reason to give up a memory.
        if let (Some(memory), Kept::Memory(_), Exit::Signal(_), false) =
            (&life.memory, life.kept, exit, self.has_discarded)
        {
            tracing::error!(%exit, "memcached does not start with what it left: it starts empty");
            memory.discard();
            self.has_discarded = true;
            return true;
        }
        false
    }

    /// The arguments asked for do not work; whether there are others.
    fn refuse_order(&mut self, why: &str) -> bool {
        let Some(ordered) = self.orders.args.clone().filter(|_| self.refused.is_none()) else { return false };
        if ordered == self.settings.arguments {
            return false;
        }
        let error = format!("memcached does not start with the arguments asked for ({why}): others are in force");
        tracing::error!(error);
        self.state.update(|status| status.orders.error = Some(error));
        self.refused = Some(ordered);
        true
    }

    /// Goes on serving for a while, unless told twice, and lets memcached stop.
    async fn stop_with_delay(&mut self, signals: &mut Signals, life: &Life) {
        if !self.settings.stop_delay.is_zero() {
            signals.stop_within(self.settings.stop_delay).await;
        }
        self.stop(signals, life).await;
    }

    /// Lets memcached stop, with its memory if it keeps one.
    async fn stop(&mut self, signals: &mut Signals, life: &Life) {
        self.state.update(|status| status.memcached.phase = Phase::Stopping);
        // The gentle one, whether or not there is a memory that we know of.
        life.child.signal(Signal::USR1);
        let exit = if let Ok(exit) = timeout(self.settings.stop_timeout, life.child.exit(signals)).await {
            exit
        } else {
            tracing::error!("memcached does not stop: it is killed, and starts empty");
            life.child.signal(Signal::KILL);
            life.child.exit(signals).await
        };
        tracing::info!(%exit, "memcached has stopped");
        self.ended(exit);
    }

    fn ended(&self, exit: Exit) {
        self.state.update(|status| {
            status.memcached.phase = Phase::Ended;
            status.memcached.last_exit = Some(exit.to_string());
        });
    }
}

/// Waits a while after one more failure; the code to end with, if we are told to stop meanwhile.
async fn pause_after(signals: &mut Signals, failures: &mut u32) -> Option<u8> {
    *failures = failures.saturating_add(1);
    signals.stop_within(backoff(*failures)).await.then_some(0)
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
