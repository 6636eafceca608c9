//! What an operator of every namespace does about the Leases of others, as rules without IO.
//!
//! It lists the Leases of its name in all namespaces before every renewal, and leads only from a list in which every
//! other Lease is free, or was made so. Who holds a Lease in phase `Claiming` does not lead yet and waits for longer
//! than a list can be old: the Lease is taken away from it, with the resourceVersion that was read. A Lease in phase
//! `Leading` is respected until it has expired, and then cleared, so that its holder cannot come back to it.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use super::LeaseConfig;
use super::elector::{freed, micro};
use super::mark::{Mark, Phase, Rival};
use super::observed::ObservedLease;

/// What follows from the Leases of others.
#[derive(Debug, Clone, PartialEq)]
#[allow(clippy::large_enum_variant, reason = "one is made a renewal, and taken apart at once")]
pub(super) enum Precedence {
    /// Nobody else can lead before the next list is due.
    Alone,
    /// This Lease has to be replaced first.
    Replace(Lease),
    /// These go first.
    Yield(Vec<Rival>),
}

/// The Leases of others, as last listed.
#[derive(Debug, Clone)]
pub(super) struct Rivals {
    config: LeaseConfig,
    mark: Mark,
    seen: BTreeMap<String, ObservedLease>,
    /// When the last list that was answered had been sent; none if it is known to be outdated.
    sent: Option<Instant>,
    rest: Option<Instant>,
}

impl Rivals {
    pub(super) fn new(config: LeaseConfig, mark: Mark) -> Self {
        Self { config, mark, seen: BTreeMap::new(), sent: None, rest: None }
    }

    /// When the list that counts was sent.
    pub(super) fn sent(&self) -> Option<Instant> {
        self.sent
    }

    /// How long until the next list is due.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        self.rest.map_or(Duration::ZERO, |rest| rest.saturating_duration_since(now))
    }

    /// All Leases of our name were listed.
    pub(super) fn listed(&mut self, sent: Instant, now: Instant, leases: Vec<Lease>) {
        let mut before = std::mem::take(&mut self.seen);
        for lease in leases {
            let namespace = lease.metadata.namespace.clone().unwrap_or_default();
            if namespace != self.config.namespace {
                let before = before.remove(&namespace);
                self.seen.insert(namespace, ObservedLease::after(before.as_ref(), lease, now));
            }
        }
        self.sent = Some(sent);
        self.rest = Some(sent + self.config.retry_period);
    }

    /// A request failed, or its outcome is unknown.
    pub(super) fn failed(&mut self, now: Instant) {
        self.rest = Some(now + self.config.retry_period);
    }

    /// Our write was accepted and made a Lease this.
    pub(super) fn written(&mut self, now: Instant, lease: Lease) {
        let namespace = lease.metadata.namespace.clone().unwrap_or_default();
        self.seen.insert(namespace, ObservedLease { lease, since: now });
    }

    /// What was listed is not enough: a Lease has changed since, or is younger.
    pub(super) fn outdated(&mut self) {
        self.sent = None;
        self.rest = None;
    }

    /// What to do, with `own` as the Lease that we hold.
    pub(super) fn judge(&self, now: Instant, wall: Timestamp, own: Option<&ObservedLease>) -> Precedence {
        let mut rivals = Vec::new();
        let mut replacement = None;
        for seen in self.seen.values() {
            match self.judge_one(seen, now, wall, own) {
                Precedence::Alone => {}
                Precedence::Replace(lease) => replacement = replacement.or(Some(lease)),
                Precedence::Yield(some) => rivals.extend(some),
            }
        }
        if !rivals.is_empty() {
            return Precedence::Yield(rivals);
        }
        // Who holds nothing leaves everything as it is.
        replacement.filter(|_| own.is_some()).map_or(Precedence::Alone, Precedence::Replace)
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
                return Precedence::Alone;
            }
            // The next replica of that release would lead without a claim.
            return if seen.expiry(config) <= now { self.cleared(seen, wall) } else { self.give_way(seen) };
        };
        if holder == config.identity {
            let is_due = now >= seen.since + config.renew_deadline / 2;
            return if is_due { self.blocked(seen, wall) } else { Precedence::Alone };
        }
        if phase == Some(Phase::Blocking) && mark.is_own(&seen.lease) {
            // Held by a replica of ours on the strength of the Lease that we look after now.
            return self.blocked(seen, wall);
        }
        if seen.expiry(config) <= now {
            return self.cleared(seen, wall);
        }
        let goes_first =
            own.is_some_and(|own| mark.phase(&own.lease) == Some(Phase::Leading) || own.seniority() < seen.seniority());
        if phase == Some(Phase::Claiming) && goes_first { self.blocked(seen, wall) } else { self.give_way(seen) }
    }

    fn give_way(&self, seen: &ObservedLease) -> Precedence {
        Precedence::Yield(vec![seen.rival(&self.mark)])
    }

    /// Free, and without a way to lead but by a new claim.
    fn cleared(&self, seen: &ObservedLease, wall: Timestamp) -> Precedence {
        let mut lease = freed(seen.lease.clone(), wall);
        self.mark.strip(&mut lease);
        Precedence::Replace(lease)
    }

    /// In our hands, so that whoever claimed it waits.
    fn blocked(&self, seen: &ObservedLease, wall: Timestamp) -> Precedence {
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
        Precedence::Replace(lease)
    }

    /// The Leases that we keep others out of, given back. They stay marked: the next replica of ours goes first.
    pub(super) fn release(&mut self, wall: Timestamp) -> Vec<Lease> {
        let ours = |seen: &&ObservedLease| seen.holder() == Some(self.config.identity.as_str());
        self.seen.values().filter(ours).map(|seen| freed(seen.lease.clone(), wall)).collect()
    }
}
