//! The handle that the rest of the operator holds: am I the leader, right now?
//! Leadership carries its own end: it lapses at the deadline even when nobody is there to take it away.

use std::collections::{BTreeMap, BTreeSet};
use std::future;
use std::time::Instant;

use tokio::sync::watch;

use super::status::ScopeStatus;

/// Who leads, as far as this process may believe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    /// Somebody else, or nobody.
    Follower,
    /// This process, until then at most.
    Leader { until: Instant },
    /// There is no election.
    Always,
}

impl Standing {
    fn leads(self, now: Instant) -> bool {
        match self {
            Self::Follower => false,
            Self::Leader { until } => now < until,
            Self::Always => true,
        }
    }
}

/// This process is not, or no longer, the leader: it must not write.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this replica is not the leader")]
pub struct NotLeader;

/// A handle on leadership; clones of it all say the same.
///
/// ```
/// use operator_kit::lease::Leadership;
///
/// let alone = Leadership::always();
/// assert!(alone.is_leader());
/// assert!(alone.check().is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct Leadership {
    standing: watch::Receiver<Standing>,
    scope: watch::Receiver<ScopeState>,
}

/// What is known about the scope beside who leads.
#[derive(Debug, Clone)]
struct ScopeState {
    status: ScopeStatus,
    /// Namespaces in which this process must not write any more from then on, or at all, although it leads.
    limits: BTreeMap<String, Option<Instant>>,
    /// Namespaces that nobody of this release works in, and why.
    without: BTreeMap<String, String>,
    /// How many times each namespace has come back.
    returns: BTreeMap<String, u64>,
}

impl ScopeState {
    const fn of(status: ScopeStatus) -> Self {
        Self { status, limits: BTreeMap::new(), without: BTreeMap::new(), returns: BTreeMap::new() }
    }

    fn allows(&self, namespace: &str, now: Instant) -> bool {
        self.limits.get(namespace).is_none_or(|limit| limit.is_some_and(|limit| now < limit))
    }
}

impl Leadership {
    /// Leadership without an election.
    pub fn always() -> Self {
        let scope = watch::channel(ScopeState::of(ScopeStatus::Settled)).1;
        Self { standing: watch::channel(Standing::Always).1, scope }
    }

    /// Leadership without an election, and without one namespace.
    #[cfg(test)]
    pub(crate) fn always_but_in(namespace: &str) -> Self {
        let mut scope = ScopeState::of(ScopeStatus::Settled);
        scope.limits.insert(namespace.to_owned(), None);
        scope.without.insert(namespace.to_owned(), "it is somebody's".to_owned());
        Self { standing: watch::channel(Standing::Always).1, scope: watch::channel(scope).1 }
    }

    /// Whether this process leads, at this moment.
    pub fn is_leader(&self) -> bool {
        self.standing.borrow().leads(Instant::now())
    }

    /// The check that belongs before every write.
    pub fn check(&self) -> Result<(), NotLeader> {
        if self.is_leader() { Ok(()) } else { Err(NotLeader) }
    }

    /// The same for a write in one namespace of the scope: its Lease may not be to be had.
    pub fn check_in(&self, namespace: &str) -> Result<(), NotLeader> {
        self.check()?;
        if self.scope.borrow().allows(namespace, Instant::now()) { Ok(()) } else { Err(NotLeader) }
    }

    /// Namespaces of the scope that nobody of this release works in while this process leads in others, and why.
    pub fn without(&self) -> BTreeMap<String, String> {
        self.scope.borrow().without.clone()
    }

    /// Tells from now on which namespaces come back.
    pub fn returns(&self) -> Returns {
        let mut scope = self.scope.clone();
        let seen = scope.borrow_and_update().returns.clone();
        Returns { scope, seen }
    }

    /// Where this process stands beside other operators.
    pub fn status(&self) -> ScopeStatus {
        self.scope.borrow().status.clone()
    }

    /// Waits until this process leads; forever if the election has ended.
    pub async fn acquired(&self) {
        let mut standing = self.standing.clone();
        if standing.wait_for(|standing| standing.leads(Instant::now())).await.is_err() {
            future::pending::<()>().await;
        }
    }

    /// Waits until this process does not lead.
    pub async fn lost(&self) {
        let mut standing = self.standing.clone();
        loop {
            let current = *standing.borrow_and_update();
            let until = match current {
                Standing::Follower => return,
                Standing::Leader { until } if until <= Instant::now() => return,
                Standing::Leader { until } => until,
                Standing::Always => future::pending().await,
            };
            tokio::select! {
                () = tokio::time::sleep_until(until.into()) => {}
                Ok(()) = standing.changed() => {}
            }
        }
    }

    /// A channel that says `true` and `false` as leadership comes and goes.
    pub fn watch(&self) -> watch::Receiver<bool> {
        let (sender, receiver) = watch::channel(self.is_leader());
        let leadership = self.clone();
        tokio::spawn(async move {
            loop {
                let turn = async {
                    leadership.acquired().await;
                    sender.send_if_modified(|leads| !std::mem::replace(leads, true));
                    leadership.lost().await;
                    sender.send_if_modified(|leads| std::mem::replace(leads, false));
                };
                tokio::select! {
                    () = turn => {}
                    () = sender.closed() => return,
                }
            }
        });
        receiver
    }
}

/// Namespaces in which this process must not write for a while although it leads, and then may again: what was refused
/// there meanwhile has to be looked at.
#[derive(Debug)]
pub struct Returns {
    scope: watch::Receiver<ScopeState>,
    seen: BTreeMap<String, u64>,
}

impl Returns {
    /// Waits for namespaces that have come back since the last time; forever if the election has ended.
    pub async fn next(&mut self) -> BTreeSet<String> {
        loop {
            if self.scope.changed().await.is_err() {
                future::pending::<()>().await;
            }
            let returns = self.scope.borrow_and_update().returns.clone();
            let is_new = |(namespace, count): &(&String, &u64)| self.seen.get(*namespace) != Some(*count);
            let came: BTreeSet<String> =
                returns.iter().filter(is_new).map(|(namespace, _)| namespace.clone()).collect();
            self.seen = returns;
            if !came.is_empty() {
                return came;
            }
        }
    }
}

/// What is worth a line in the log.
#[derive(Debug, Default)]
pub(super) struct News {
    /// Whether the status is another.
    pub(super) status: bool,
    /// Namespaces that are done without from now on, and why.
    pub(super) without: BTreeMap<String, String>,
    /// Namespaces that are done without no more.
    pub(super) returned: BTreeSet<String>,
}

/// The election's end of a [`Leadership`].
#[derive(Debug)]
pub(super) struct Publisher {
    standing: watch::Sender<Standing>,
    scope: watch::Sender<ScopeState>,
}

impl Publisher {
    pub(super) fn new() -> (Self, Leadership) {
        let (standing, receiver) = watch::channel(Standing::Follower);
        let unknown = ScopeStatus::Unknown("the Lease has not been read yet".into());
        let (scope, status) = watch::channel(ScopeState::of(unknown));
        (Self { standing, scope }, Leadership { standing: receiver, scope: status })
    }

    /// Says where this process stands, in which namespaces it must not write, and which it does without.
    pub(super) fn describe(
        &self,
        status: ScopeStatus,
        limits: BTreeMap<String, Option<Instant>>,
        without: BTreeMap<String, String>,
    ) -> News {
        let now = Instant::now();
        let mut news = News::default();
        self.scope.send_if_modified(|scope| {
            let returns = scope.returns.clone();
            let before = std::mem::replace(scope, ScopeState { status, limits, without, returns });
            news.status = before.status != scope.status;
            let is_new = |(namespace, _): &(&String, &String)| !before.without.contains_key(*namespace);
            news.without = scope.without.iter().filter(is_new).map(|(a, b)| (a.clone(), b.clone())).collect();
            news.returned = before.without.keys().filter(|name| !scope.without.contains_key(*name)).cloned().collect();
            let back = before.limits.keys().filter(|name| !before.allows(name, now) && scope.allows(name, now));
            let back: Vec<String> = back.cloned().collect();
            for namespace in &back {
                *scope.returns.entry(namespace.clone()).or_default() += 1;
            }
            news.status || !back.is_empty()
        });
        news
    }

    /// Says until when this process leads; only a change of leader wakes those who wait.
    ///
    /// Returns whether it was one.
    pub(super) fn publish(&self, until: Option<Instant>) -> bool {
        let next = until.map_or(Standing::Follower, |until| Standing::Leader { until });
        self.standing.send_if_modified(|standing| {
            let now = Instant::now();
            let named = (*standing == Standing::Follower) != (next == Standing::Follower);
            // Not the same: leadership that had lapsed is a new one, though it was never called off.
            let turned = named || standing.leads(now) != next.leads(now);
            *standing = next;
            turned
        })
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn in_millis(millis: u64) -> Instant {
        Instant::now() + Duration::from_millis(millis)
    }

    #[tokio::test]
    async fn leadership_lapses_when_its_election_has_died() {
        let (publisher, leadership) = Publisher::new();
        publisher.publish(Some(in_millis(50)));
        drop(publisher);
        assert_eq!(leadership.check(), Ok(()));
        leadership.lost().await;
        assert_eq!(leadership.check(), Err(NotLeader));
    }

    #[tokio::test]
    async fn renewals_extend_quietly_and_turns_are_heard() {
        let (publisher, leadership) = Publisher::new();
        assert!(!leadership.is_leader());
        assert!(publisher.publish(Some(in_millis(60_000))));
        leadership.acquired().await;
        assert!(!publisher.publish(Some(in_millis(120_000))));
        assert!(publisher.publish(None));
        leadership.lost().await;
        assert!(!leadership.is_leader());
    }

    #[tokio::test]
    async fn the_channel_follows_both_ways() {
        let (publisher, leadership) = Publisher::new();
        let mut leads = leadership.watch();
        assert!(!*leads.borrow_and_update());
        publisher.publish(Some(in_millis(60_000)));
        assert!(leads.wait_for(|leads| *leads).await.is_ok());
        publisher.publish(None);
        assert!(leads.wait_for(|leads| !*leads).await.is_ok());
    }

    #[tokio::test]
    async fn a_namespace_that_comes_back_is_told_even_if_it_was_away_between_two_looks() {
        let (publisher, leadership) = Publisher::new();
        let mut returns = leadership.returns();
        let describe = |limits: &[(&str, Option<Instant>)]| {
            let limits = limits.iter().map(|(namespace, limit)| ((*namespace).to_owned(), *limit)).collect();
            publisher.describe(ScopeStatus::Settled, limits, BTreeMap::new());
        };
        publisher.publish(Some(in_millis(60_000)));
        describe(&[("shop", None), ("bank", Some(in_millis(60_000)))]);
        assert_eq!((leadership.check_in("shop"), leadership.check_in("bank")), (Err(NotLeader), Ok(())));
        describe(&[]);
        describe(&[("shop", None)]);
        describe(&[]);
        assert_eq!(leadership.check_in("shop"), Ok(()));
        assert_eq!(returns.next().await.into_iter().collect::<Vec<_>>(), ["shop"]);
        describe(&[("shop", Some(Instant::now()))]);
        assert_eq!(leadership.check_in("shop"), Err(NotLeader), "its own limit has passed");
        let nothing = tokio::time::timeout(Duration::from_millis(20), returns.next());
        assert!(nothing.await.is_err());
    }

    #[tokio::test]
    async fn without_an_election_it_is_never_lost() {
        let leadership = Leadership::always();
        leadership.acquired().await;
        let lost = tokio::time::timeout(Duration::from_millis(20), leadership.lost());
        assert!(lost.await.is_err());
    }
}
