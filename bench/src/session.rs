//! One measurement under way: the place, the operator in it, the clock, and what is counted from when.
//! Scenarios are made of its steps.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use testbed::audit::Mark;
use tokio::task::JoinHandle;

use crate::arena::Arena;
use crate::bare;
use crate::error::{Error, Result};
use crate::meter::Reading;
use crate::outcome::Idle;
use crate::plan::{Key, Subject};
use crate::process::Process;
use crate::request::Kind;
use crate::tracker::{Goal, Tracker};
use crate::traffic::Traffic;

/// How often it is looked whether something is still missing.
const POLL: Duration = Duration::from_millis(250);
/// How often people are told.
const SAY_EVERY: Duration = Duration::from_secs(5);
/// An operator that asked for nothing and hardly used the CPU for so long is at rest.
const QUIET: Duration = Duration::from_secs(3);
/// It is given up after this time: one that is never at rest is measured as it is.
const SETTLE_LIMIT: Duration = Duration::from_secs(120);
/// So many CPU seconds between two polls are work: two ticks of the kernel's clock.
const BUSY: f64 = 0.02;

/// How measurements are made.
#[derive(Debug, Clone)]
pub struct Settings {
    /// Our operator's program.
    pub ours: PathBuf,
    /// Where results and logs go.
    pub output: PathBuf,
    /// How long writes are counted after convergence; the scenario's own time if none.
    pub idle_seconds: Option<u64>,
    /// How long an operator may take, in seconds.
    pub deadline: u64,
}

/// Where the clock and the counters started.
struct Start {
    began: Instant,
    mark: Mark,
    cpu_seconds: f64,
}

/// One measurement.
pub struct Session {
    /// What is measured.
    pub key: Key,
    /// Where.
    pub arena: Arena,
    /// What was noticed.
    pub notes: Vec<String>,
    settings: Settings,
    processes: Vec<Process>,
    killed: Vec<Process>,
    background: Option<JoinHandle<Result<()>>>,
    start: Start,
    starts: usize,
}

impl Session {
    /// Prepares the place; the clock does not run yet.
    pub async fn prepare(key: Key, settings: &Settings) -> Result<Self> {
        let arena = Arena::prepare(key).await?;
        let start = Start { began: Instant::now(), mark: arena.cluster.audit().mark()?, cpu_seconds: 0.0 };
        Ok(Self {
            key,
            arena,
            notes: Vec::new(),
            settings: settings.clone(),
            processes: Vec::new(),
            killed: Vec::new(),
            background: None,
            start,
            starts: 0,
        })
    }

    /// Starts the clock; what is counted is counted from here.
    pub fn begin(&mut self) -> Result<()> {
        let mark = self.arena.cluster.audit().mark()?;
        self.start = Start { mark, cpu_seconds: self.cpu_total(), began: Instant::now() };
        Ok(())
    }

    /// The time on the clock at a moment.
    pub fn seconds_until(&self, moment: Instant) -> f64 {
        moment.saturating_duration_since(self.start.began).as_secs_f64()
    }

    /// Lets the subject begin: a process, several replicas of it, or the writing of bare requests.
    pub async fn start_subject(&mut self, replicas: usize) -> Result<()> {
        if self.key.subject == Subject::Bare {
            let requests = self.arena.requests_as(&self.user(1, 1)).await?;
            let work = bare::create(requests, self.arena.targets.clone(), self.key.scenario.has_secrets());
            // Making the client is none of the work.
            self.begin()?;
            self.in_background(work);
            return Ok(());
        }
        for number in 1..=replicas {
            let process = self.start_process(number, replicas)?;
            self.processes.push(process);
        }
        Ok(())
    }

    fn start_process(&mut self, number: usize, replicas: usize) -> Result<Process> {
        self.starts += 1;
        let log = self.settings.output.join(format!("logs/{}-{}.log", self.key, self.starts));
        let (cluster, user) = (&self.arena.cluster, self.user(number, replicas));
        match &self.arena.peer {
            Some(program) => Process::peer(cluster, program, &user, &log),
            None => Process::ours(cluster, &self.settings.ours, &user, &log),
        }
    }

    /// Under which name the audit log knows a replica.
    fn user(&self, number: usize, replicas: usize) -> String {
        if replicas == 1 {
            format!("bench-{}", self.key.subject)
        } else {
            format!("bench-{}-{number}", self.key.subject)
        }
    }

    /// Ends the subject as the kubelet would.
    pub async fn stop_subject(&mut self) {
        for process in &mut self.processes {
            process.terminate().await;
        }
        self.processes.clear();
    }

    /// Kills the replica that has written most, which is the one that leads.
    pub fn kill_leader(&mut self) -> Result<()> {
        let audit = self.arena.cluster.audit();
        let mut leader = (0, 0);
        for (position, process) in self.processes.iter().enumerate() {
            let writes = Traffic::of(audit.count_by(process.user(), self.start.mark)?).writes;
            if writes > leader.1 {
                leader = (position, writes);
            }
        }
        let mut process = self.processes.remove(leader.0);
        process.kill();
        let (seconds, user) = (self.start.began.elapsed().as_secs_f64(), process.user());
        self.notes.push(format!("{user} led, and was killed after {seconds:.1} s and {} writes", leader.1));
        self.killed.push(process);
        Ok(())
    }

    /// Does something while others wait for its effect; its error ends the measurement.
    pub fn in_background(&mut self, work: impl Future<Output = Result<()>> + Send + 'static) {
        self.background = Some(tokio::spawn(work));
    }

    /// Waits for what was begun in the background.
    pub async fn join(&mut self) -> Result<()> {
        match self.background.take() {
            Some(task) => task.await.map_err(|error| Error::Other(error.to_string()))?,
            None => Ok(()),
        }
    }

    /// An error if the subject has ended, or something in the background has failed.
    async fn check(&mut self) -> Result<()> {
        for process in &mut self.processes {
            process.check()?;
        }
        if self.background.as_ref().is_some_and(JoinHandle::is_finished) { self.join().await } else { Ok(()) }
    }

    /// Follows the objects on their way to a goal.
    pub async fn track(&self, goal: Goal) -> Result<Tracker> {
        Tracker::start(&self.arena.user, goal).await
    }

    /// Waits until so many objects have reached their goal; when that was.
    pub async fn reach(&mut self, tracker: &mut Tracker, wanted: usize) -> Result<Instant> {
        let mut said = Instant::now();
        loop {
            let progress = tracker.progress();
            if progress.met >= wanted {
                return Ok(progress.at);
            }
            let seen = format!("{} of {wanted} objects", progress.met);
            self.wait_more(&seen, &mut said).await?;
            tracker.changed().await?;
        }
    }

    /// Looks again and again until nothing is missing; when that was first seen. `earliest` counts if it is so at once.
    pub async fn until_nothing_is_missing(
        &mut self,
        earliest: Instant,
        mut missing: impl AsyncFnMut(&Arena) -> Result<Option<String>>,
    ) -> Result<Instant> {
        let (mut moment, mut said) = (earliest, Instant::now());
        while let Some(what) = missing(&self.arena).await? {
            self.wait_more(&what, &mut said).await?;
            tokio::time::sleep(POLL).await;
            moment = Instant::now();
        }
        Ok(moment)
    }

    /// Waits until every object has its Deployment, Service and PodDisruptionBudget.
    pub async fn until_children_exist(&mut self, earliest: Instant) -> Result<Instant> {
        self.until_nothing_is_missing(earliest, async |arena: &Arena| {
            for kind in [Kind::Deployment, Kind::Service, Kind::PodDisruptionBudget] {
                let children = arena.user.list_metadata(&kind.everywhere()).await?;
                // The API server has a Service of its own.
                let (count, wanted) =
                    (children.iter().filter(|c| c.namespace != "default").count(), arena.targets.len());
                if count < wanted {
                    return Ok::<_, Error>(Some(format!("{count} of {wanted} {}", kind.plural())));
                }
            }
            Ok(None)
        })
        .await
    }

    /// Not yet: says so now and then, and ends what is dead or takes too long.
    async fn wait_more(&mut self, seen: &str, said: &mut Instant) -> Result<()> {
        self.check().await?;
        let elapsed = self.start.began.elapsed();
        if elapsed > Duration::from_secs(self.settings.deadline) {
            return Err(Error::NotConverged { seconds: self.settings.deadline, seen: seen.into() });
        }
        if said.elapsed() >= SAY_EVERY {
            say(&format!("{}: {seen} after {:.0} s", self.key, elapsed.as_secs_f64()));
            *said = Instant::now();
        }
        Ok(())
    }

    /// Waits until the subject has opened its stores and, where replicas elect a leader, holds the Lease.
    pub async fn until_at_work(&mut self) -> Result<()> {
        let (mark, elects) = (self.start.mark, self.key.subject == Subject::Ours);
        let users = self.users();
        let at_work = async |arena: &Arena| {
            let mut traffic = Traffic::default();
            for user in &users {
                traffic.add(arena.cluster.audit().count_by(user, mark)?);
            }
            let did = |verbs: &[&str], resource: &str| {
                verbs.iter().any(|verb| traffic.requests.contains_key(&format!("{verb} {resource}")))
            };
            let leads = !elects || did(&["create", "update", "patch"], "leases");
            let watches = did(&["list", "watch"], "memcacheds");
            Ok::<_, Error>(if leads && watches { None } else { Some("the operator has yet to start".to_owned()) })
        };
        self.until_nothing_is_missing(Instant::now(), at_work).await.map(drop)
    }

    /// Waits until the subject is at rest; when it was last seen at work.
    pub async fn settle(&mut self) -> Result<Instant> {
        self.settle_for(QUIET).await
    }

    /// The same, where it may be silent for a while although it has more to do.
    pub async fn settle_for(&mut self, quiet: Duration) -> Result<Instant> {
        let began = Instant::now();
        if self.processes.is_empty() {
            return Ok(began);
        }
        let mut last = began;
        let (mut mark, mut cpu) = (self.arena.cluster.audit().mark()?, self.cpu_total());
        while last.elapsed() < quiet {
            if began.elapsed() > SETTLE_LIMIT {
                self.notes.push(format!("still at work {} s after convergence", SETTLE_LIMIT.as_secs()));
                return Ok(last);
            }
            tokio::time::sleep(POLL).await;
            self.check().await?;
            let (next, now) = (self.arena.cluster.audit().mark()?, self.cpu_total());
            let traffic = self.traffic_since(mark)?;
            if now - cpu > BUSY || traffic.work() + traffic.upkeep() > traffic.leases {
                last = Instant::now();
            }
            (mark, cpu) = (next, now);
        }
        Ok(last)
    }

    /// What the subject does while nothing happens; none where there is no process.
    pub async fn idle(&mut self) -> Result<Option<Idle>> {
        if self.processes.is_empty() {
            return Ok(None);
        }
        let seconds = self.settings.idle_seconds.unwrap_or(self.key.scenario.idle_seconds());
        say(&format!("{}: idle for {seconds} s", self.key));
        let (began, mark, cpu) = (Instant::now(), self.arena.cluster.audit().mark()?, self.cpu_total());
        while began.elapsed() < Duration::from_secs(seconds) {
            tokio::time::sleep(POLL).await;
            self.check().await?;
        }
        Ok(Some(Idle { seconds, traffic: self.traffic_since(mark)?, cpu_seconds: self.cpu_total() - cpu }))
    }

    /// What the subject asked for since the clock started.
    pub fn traffic(&self) -> Result<Traffic> {
        self.traffic_since(self.start.mark)
    }

    /// The most requests that it made in one second since the clock started.
    pub fn busiest_second(&self) -> Result<usize> {
        let audit = self.arena.cluster.audit();
        let mut seconds: BTreeMap<String, usize> = BTreeMap::new();
        for user in self.users() {
            for (second, count) in audit.count_by_second(&user, self.start.mark)? {
                *seconds.entry(second).or_default() += count;
            }
        }
        Ok(seconds.into_values().max().unwrap_or_default())
    }

    fn traffic_since(&self, mark: Mark) -> Result<Traffic> {
        let audit = self.arena.cluster.audit();
        let mut traffic = Traffic::default();
        for user in self.users() {
            traffic.add(audit.count_by(&user, mark)?);
        }
        Ok(traffic)
    }

    /// The names of all processes there were.
    fn users(&self) -> Vec<String> {
        if self.key.subject == Subject::Bare {
            return vec![self.user(1, 1)];
        }
        self.all_processes().map(|process| process.user().to_owned()).collect()
    }

    /// What is known of the processes; none where there is none.
    pub fn reading(&self) -> Option<Reading> {
        self.all_processes().map(Process::read).reduce(Reading::and)
    }

    /// The CPU seconds since the clock started.
    pub fn cpu_seconds(&self) -> f64 {
        self.cpu_total() - self.start.cpu_seconds
    }

    fn cpu_total(&self) -> f64 {
        self.all_processes().map(Process::cpu_seconds).sum()
    }

    fn all_processes(&self) -> impl Iterator<Item = &Process> {
        self.processes.iter().chain(&self.killed)
    }
}

/// A line about how it goes; a closed standard error is no reason to stop.
pub fn say(line: &str) {
    use std::io::Write;
    writeln!(std::io::stderr(), "{line}").ok();
}
