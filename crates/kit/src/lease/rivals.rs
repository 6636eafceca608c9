//! What an operator of every namespace does about the Leases of others, as rules without IO.
//!
//! It lists the Leases of its name in all namespaces, and what it may do follows from a list that is not old. A Lease
//! claims its own namespace: while it is somebody else's, this one namespace is done without. It claims every
//! namespace only if it says so and its holder is trusted to, or whoever may write a Lease in one namespace could stop
//! the work in all of them.
//!
//! Who holds a Lease in phase `Claiming` does not lead yet and waits for longer than a list can be old: the Lease is
//! taken away from it, with the resourceVersion that was read. A Lease in phase `Leading` is respected until it has
//! expired, and then cleared, so that its holder cannot come back to it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use super::LeaseConfig;
use super::elector::{freed, micro};
use super::mark::{Mark, Phase, Rival};
use super::observed::ObservedLease;

/// What follows from one Lease of another.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "one is made a renewal, and taken apart at once")]
enum Precedence {
    /// Nobody can lead by it before the next list is due.
    Free,
    /// The same, and it is time to renew our hold on it.
    Keep(Lease),
    /// Nobody can once it is replaced by this one.
    Take(Lease),
    /// Its holder goes first.
    Yield,
}

/// What follows from all of them.
#[derive(Debug, Clone, Default)]
pub(super) struct Judgement {
    /// Who goes first everywhere.
    pub(super) yields_to: Vec<Rival>,
    /// Whether a claim of every namespace has still to be taken away: such a list makes nobody lead.
    pub(super) is_open: bool,
    /// What to replace next.
    pub(super) replacement: Option<Lease>,
    /// Namespaces in which somebody else may lead.
    pub(super) contested: BTreeMap<String, Contest>,
}

/// A namespace in which somebody else may lead.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contest {
    pub(super) rival: Rival,
    /// Whether its Lease is about to be taken.
    pub(super) is_passing: bool,
}

/// The Leases of others, as last listed.
#[derive(Debug, Clone)]
pub(super) struct Rivals {
    config: LeaseConfig,
    mark: Mark,
    seen: BTreeMap<String, ObservedLease>,
    /// Namespaces whose Lease may claim every namespace.
    trusted: BTreeSet<String>,
    /// Namespaces whose Lease we failed to replace since the list.
    failed: BTreeSet<String>,
    /// When the last list that was answered had been sent; none if it is known to be outdated.
    sent: Option<Instant>,
    rest: Option<Instant>,
}

impl Rivals {
    pub(super) fn new(config: LeaseConfig, mark: Mark) -> Self {
        let (seen, trusted, failed) = (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        Self { config, mark, seen, trusted, failed, sent: None, rest: None }
    }

    /// When the list that counts was sent.
    pub(super) fn sent(&self) -> Option<Instant> {
        self.sent
    }

    /// How long until the next list is due.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        self.rest.map_or(Duration::ZERO, |rest| rest.saturating_duration_since(now))
    }

    /// All Leases of our name were listed; those in the `trusted` namespaces may claim every namespace.
    pub(super) fn listed(&mut self, sent: Instant, now: Instant, leases: Vec<Lease>, trusted: BTreeSet<String>) {
        let mut before = std::mem::take(&mut self.seen);
        for lease in leases {
            let namespace = lease.metadata.namespace.clone().unwrap_or_default();
            if namespace != self.config.namespace {
                let before = before.remove(&namespace);
                self.seen.insert(namespace, ObservedLease::after(before.as_ref(), lease, now));
            }
        }
        self.trusted = trusted;
        self.failed.clear();
        self.sent = Some(sent);
        self.rest = Some(sent + self.config.retry_period);
    }

    /// A list failed.
    pub(super) fn failed(&mut self, now: Instant) {
        self.rest = Some(now + self.config.retry_period);
    }

    /// Our write was accepted and made a Lease this.
    pub(super) fn written(&mut self, now: Instant, lease: Lease) {
        let namespace = lease.metadata.namespace.clone().unwrap_or_default();
        self.seen.insert(namespace, ObservedLease { lease, since: now });
    }

    /// The Lease of that namespace was not replaced, or nobody knows. The next list tells, and comes no sooner for it:
    /// who writes a Lease without pause would keep us busy.
    pub(super) fn refused(&mut self, namespace: &str) {
        self.failed.insert(namespace.to_owned());
    }

    /// What was listed is not enough, as a claim of our own is younger.
    pub(super) fn outdated(&mut self) {
        self.sent = None;
        self.rest = None;
    }

    /// What to do, with `own` as the Lease that we hold.
    pub(super) fn judge(&self, now: Instant, wall: Timestamp, own: Option<&ObservedLease>) -> Judgement {
        let mut judgement = Judgement::default();
        for (namespace, seen) in &self.seen {
            let is_everything = self.trusted.contains(namespace) && self.mark.claims_all(&seen.lease);
            let may_try = !self.failed.contains(namespace);
            let rival = || seen.rival(&self.mark);
            match self.judge_one(seen, now, wall, own) {
                Precedence::Free => {}
                // Who holds nothing leaves everything as it is.
                Precedence::Take(_) if own.is_none() => {}
                Precedence::Keep(lease) => judgement.replace(lease, may_try),
                // Those come first that keep us from leading at all.
                Precedence::Take(lease) if is_everything => {
                    judgement.is_open = true;
                    judgement.replacement = Some(lease).filter(|_| may_try).or(judgement.replacement.take());
                }
                Precedence::Take(lease) => {
                    judgement.replace(lease, may_try);
                    let contest = Contest { rival: rival(), is_passing: may_try };
                    judgement.contested.insert(namespace.clone(), contest);
                }
                Precedence::Yield if is_everything => judgement.yields_to.push(rival()),
                Precedence::Yield => {
                    let contest = Contest { rival: rival(), is_passing: false };
                    judgement.contested.insert(namespace.clone(), contest);
                }
            }
        }
        judgement
    }

    fn judge_one(
        &self,
        seen: &ObservedLease,
        now: Instant,
        wall: Timestamp,
        own: Option<&ObservedLease>,
    ) -> Precedence {
        let Self { config, mark, .. } = self;
        let phase = mark.phase(&seen.lease);
        let Some(holder) = seen.holder() else {
            if phase != Some(Phase::Leading) {
                return Precedence::Free;
            }
            // The next replica of that release would lead without a claim.
            return if seen.expiry(config) <= now { self.cleared(seen, wall) } else { Precedence::Yield };
        };
        if holder == config.identity {
            let is_due = now >= seen.since + config.renew_deadline / 2;
            return if is_due { Precedence::Keep(self.blocked(seen, wall)) } else { Precedence::Free };
        }
        if phase == Some(Phase::Blocking) && mark.is_own(&seen.lease) {
            // Held by a replica of ours on the strength of the Lease that we look after now.
            return Precedence::Take(self.blocked(seen, wall));
        }
        if seen.expiry(config) <= now {
            return self.cleared(seen, wall);
        }
        let goes_first =
            own.is_some_and(|own| mark.phase(&own.lease) == Some(Phase::Leading) || own.seniority() < seen.seniority());
        if phase == Some(Phase::Claiming) && goes_first {
            Precedence::Take(self.blocked(seen, wall))
        } else {
            Precedence::Yield
        }
    }

    /// Free, and without a way to lead but by a new claim.
    fn cleared(&self, seen: &ObservedLease, wall: Timestamp) -> Precedence {
        let mut lease = freed(seen.lease.clone(), wall);
        self.mark.strip(&mut lease);
        Precedence::Take(lease)
    }

    /// In our hands, so that whoever claimed it waits.
    fn blocked(&self, seen: &ObservedLease, wall: Timestamp) -> Lease {
        let mut lease = seen.lease.clone();
        let previous = seen.spec();
        let is_renewal = seen.holder() == Some(self.config.identity.as_str());
        let transitions = previous.lease_transitions.unwrap_or_default();
        self.mark.put(&mut lease, Phase::Blocking);
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(self.config.seconds()),
            acquire_time: if is_renewal { previous.acquire_time.clone() } else { Some(micro(wall)) },
            renew_time: Some(micro(wall)),
            lease_transitions: Some(if is_renewal { transitions } else { transitions.saturating_add(1) }),
            ..previous
        });
        lease
    }

    /// The Leases that we keep others out of, given back. They stay marked: the next replica of ours goes first.
    pub(super) fn release(&mut self, wall: Timestamp) -> Vec<Lease> {
        let ours = |seen: &&ObservedLease| seen.holder() == Some(self.config.identity.as_str());
        self.seen.values().filter(ours).map(|seen| freed(seen.lease.clone(), wall)).collect()
    }
}

impl Judgement {
    fn replace(&mut self, lease: Lease, may_try: bool) {
        if may_try {
            self.replacement.get_or_insert(lease);
        }
    }
}
