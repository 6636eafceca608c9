//! The rules of the election as a state machine without IO: fed what was seen and when, it says what to do next.
//! Only durations on this process's own clock decide; the timestamps in the Lease are for people.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::LeaseConfig;
use super::mark::Phase;
use super::observed::ObservedLease;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum ElectionStep {
    /// Nothing, for that long.
    Sleep(Duration),
    /// Read the Lease and tell [`Elector::observed`].
    Read,
    /// Create this Lease and tell [`Elector::written`] or [`Elector::refused`].
    Create(Lease),
    /// Replace the Lease by this one, which carries the resourceVersion that was read, and tell the same.
    Replace(Lease),
}

/// One candidate's view of the election.
#[derive(Debug, Clone)]
pub struct Elector {
    config: LeaseConfig,
    seen: Option<ObservedLease>,
    /// Whether `seen` is what the API server said last, and nothing was tried since with an unknown outcome.
    fresh: bool,
    /// The acquireTime under which this process claims the lease. Together with the identity it tells our own
    /// writes from anybody's, also those whose answer never came.
    claim: Option<MicroTime>,
    /// Since when the claim is known to have been accepted.
    claimed: Option<Instant>,
    /// How long a claim has to stand before it may lead.
    probation: Duration,
    /// Until when this process leads.
    until: Option<Instant>,
    /// Nothing is tried before.
    rest: Option<Instant>,
    /// Whether the last write was refused.
    was_refused: bool,
}

impl Elector {
    /// A candidate that has seen nothing yet.
    pub fn new(config: LeaseConfig) -> Self {
        let (claim, claimed, until, rest) = (None, None, None, None);
        let (fresh, was_refused) = (false, false);
        Self { config, seen: None, fresh, claim, claimed, probation: Duration::ZERO, until, rest, was_refused }
    }

    /// The same, whose claims have to stand for a while before they may lead.
    #[must_use]
    pub(super) fn with_probation(self, probation: Duration) -> Self {
        Self { probation, ..self }
    }

    /// Until when this process leads, if it does.
    pub fn leads_until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }

    /// Who holds the lease, as last seen.
    pub fn holder(&self) -> Option<&str> {
        self.seen.as_ref()?.holder()
    }

    pub(super) fn namespace(&self) -> &str {
        &self.config.namespace
    }

    /// What to do now. `wall` only ends up in the Lease.
    pub fn next(&mut self, now: Instant, wall: Timestamp) -> ElectionStep {
        self.next_if(now, wall, true)
    }

    /// The same, where a claim only begins to lead if it `may`.
    pub(super) fn next_if(&mut self, now: Instant, wall: Timestamp, may: bool) -> ElectionStep {
        // A claim that may lead does so at once, and not at its next renewal.
        let is_due = may && self.fresh && self.is_ripe(now) && self.leads_until(now).is_none();
        if let Some(rest) = self.rest.filter(|rest| now < *rest && !is_due) {
            return ElectionStep::Sleep(rest - now);
        }
        if !self.fresh {
            return ElectionStep::Read;
        }
        let wall = micro(wall);
        let Some(seen) = self.seen.clone() else {
            let mut lease = Lease::default();
            lease.metadata.name = Some(self.config.name.clone());
            lease.metadata.namespace = Some(self.config.namespace.clone());
            return ElectionStep::Create(self.taken(lease, wall));
        };
        if self.holds() {
            return ElectionStep::Replace(self.renewed(seen, now, wall, may));
        }
        if seen.expiry(&self.config) <= now {
            return ElectionStep::Replace(self.taken(seen.lease, wall));
        }
        let pause = self.pause(now);
        self.rest_for(now, pause);
        ElectionStep::Sleep(pause)
    }

    /// How long there is nothing to do about a lease that we may not have.
    pub(super) fn pause(&self, now: Instant) -> Duration {
        if let Some(rest) = self.rest.filter(|rest| now < *rest) {
            return rest - now;
        }
        let retry = self.config.retry_period;
        self.obstacle(now).map_or(retry, |seen| (seen.expiry(&self.config) - now).min(retry))
    }

    /// Leaves the lease alone for that long, then reads it again.
    pub(super) fn rest_for(&mut self, now: Instant, pause: Duration) {
        self.fresh = false;
        if self.obstacle(now).is_some() {
            self.claim = None;
        }
        self.rest = Some(now + pause);
    }

    /// Whether the Lease has to be read before anything else can be done about it.
    pub(super) fn needs_read(&self, now: Instant) -> bool {
        !self.fresh && self.rest.is_none_or(|rest| rest <= now)
    }

    /// The Lease, as last seen, if it is somebody else's and must be left alone.
    pub(super) fn obstacle(&self, now: Instant) -> Option<&ObservedLease> {
        self.seen.as_ref().filter(|seen| !self.holds() && now < seen.expiry(&self.config))
    }

    /// Whether the lease can be taken or is held, as far as is known.
    pub(super) fn is_open(&self, now: Instant) -> bool {
        self.holds() || (self.fresh && self.obstacle(now).is_none())
    }

    /// Whether the lease is ours, as last seen.
    pub(super) fn holds(&self) -> bool {
        self.seen.as_ref().and_then(|seen| seen.lease.spec.as_ref()).is_some_and(|spec| self.is_ours(spec))
    }

    /// What we hold: the Lease, and since when at the latest.
    pub(super) fn held(&self) -> Option<(&ObservedLease, Instant)> {
        self.seen.as_ref().filter(|_| self.holds()).zip(self.claimed)
    }

    /// Whether the lease is ours and has been for long enough to lead.
    pub(super) fn is_ripe(&self, now: Instant) -> bool {
        let is_leading = self.seen.as_ref().is_some_and(|seen| self.leads_by(&seen.lease));
        self.holds() && (is_leading || self.claimed.is_some_and(|claimed| claimed + self.probation <= now))
    }

    /// The Lease was read: as given, or not there.
    pub fn observed(&mut self, now: Instant, lease: Option<Lease>) {
        self.fresh = true;
        self.rest = None;
        self.seen = lease.map(|lease| ObservedLease::after(self.seen.as_ref(), lease, now));
        if self.holds() {
            self.claimed.get_or_insert(now);
        } else {
            (self.until, self.claimed) = (None, None);
        }
    }

    /// Our write, sent at `sent`, was accepted and made the Lease this.
    ///
    /// Leadership counts from the sending: others cannot have seen the renewal earlier than that. A claim counts from
    /// when it was surely there.
    pub fn written(&mut self, sent: Instant, lease: Lease) {
        self.until = self.leads_by(&lease).then(|| sent + self.config.renew_deadline);
        self.seen = Some(ObservedLease { lease, since: sent });
        (self.fresh, self.was_refused) = (true, false);
        self.rest = Some(sent + self.config.retry_period);
    }

    /// The answer to our write has come by now.
    pub(super) fn settled(&mut self, now: Instant) {
        self.claimed.get_or_insert(now);
    }

    /// The Lease that we gave back is free.
    pub(super) fn given_back(&mut self, now: Instant, lease: Lease) {
        self.seen = Some(ObservedLease { lease, since: now });
        (self.claim, self.claimed, self.until) = (None, None, None);
        self.fresh = false;
        self.rest = Some(now + self.config.retry_period);
    }

    /// Our write met a Lease other than the one we had read: somebody was faster.
    pub fn refused(&mut self, now: Instant) {
        self.fresh = false;
        // A leader finds out at once, as the write may have been about a label; a candidate has lost this round. So has
        // a leader the second time: somebody who writes without pause must not keep us from our other Leases.
        let is_paced = self.leads_until(now).is_none() || self.was_refused;
        self.rest = is_paced.then(|| now + self.config.retry_period);
        self.was_refused = true;
    }

    /// A request failed, or its outcome is unknown.
    pub fn failed(&mut self, now: Instant) {
        self.fresh = false;
        self.rest = Some(now + self.config.retry_period);
    }

    /// The Lease given back, if the one last seen is ours to give; this process leads no more.
    ///
    /// What led stays marked: the next replica of the release takes it up at once.
    pub fn release(&mut self, wall: Timestamp) -> Option<Lease> {
        self.until = None;
        let lease = self.seen.as_ref().filter(|_| self.holds())?.lease.clone();
        let mut lease = freed(lease, wall);
        if let Some(mark) = self.config.mark.as_ref().filter(|mark| mark.phase(&lease) != Some(Phase::Leading)) {
            mark.strip(&mut lease);
        }
        Some(lease)
    }

    /// The Lease given back for good: we wait for somebody, and keep nobody waiting meanwhile.
    pub(super) fn give_back(&mut self, wall: Timestamp) -> Option<Lease> {
        let mut lease = self.release(wall)?;
        if let Some(mark) = &self.config.mark {
            mark.strip(&mut lease);
        }
        Some(lease)
    }

    /// Whether a write of this very process made the Lease what it is. A namesake's is not ours.
    fn is_ours(&self, spec: &LeaseSpec) -> bool {
        self.claim.is_some()
            && spec.holder_identity.as_ref() == Some(&self.config.identity)
            && spec.acquire_time == self.claim
    }

    /// Whether the holder of such a Lease leads, and not merely claims.
    fn leads_by(&self, lease: &Lease) -> bool {
        self.config.mark.as_ref().is_none_or(|mark| mark.phase(lease) == Some(Phase::Leading))
    }

    /// The Lease in our hands, for longer.
    fn renewed(&self, seen: ObservedLease, now: Instant, wall: MicroTime, may: bool) -> Lease {
        let mut lease = seen.lease;
        if let Some(mark) = &self.config.mark {
            let leads = self.leads_by(&lease) || (may && self.is_ripe(now));
            mark.put(&mut lease, if leads { Phase::Leading } else { Phase::Claiming });
        }
        let spec = lease.spec.unwrap_or_default();
        let seconds = Some(self.config.seconds());
        Lease { spec: Some(LeaseSpec { renew_time: Some(wall), lease_duration_seconds: seconds, ..spec }), ..lease }
    }

    /// The Lease in our hands, after whoever had it.
    fn taken(&mut self, mut lease: Lease, wall: MicroTime) -> Lease {
        // A claim that was sent before may still arrive: it has to be recognised as well.
        let claim = self.claim.get_or_insert_with(|| wall.clone()).clone();
        self.claimed = None;
        let transitions = lease.spec.as_ref().map(|spec| spec.lease_transitions.unwrap_or_default().saturating_add(1));
        if let Some(mark) = &self.config.mark {
            // What led was never beside a leader of every namespace, and is not when it is handed over.
            let is_handed_over = mark.is_own(&lease) && self.leads_by(&lease);
            mark.put(&mut lease, if is_handed_over { Phase::Leading } else { Phase::Claiming });
        }
        lease.spec = Some(LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(self.config.seconds()),
            acquire_time: Some(claim),
            renew_time: Some(wall),
            lease_transitions: Some(transitions.unwrap_or_default()),
            ..lease.spec.unwrap_or_default()
        });
        lease
    }
}

/// A Lease that nobody holds any more.
pub(super) fn freed(lease: Lease, wall: Timestamp) -> Lease {
    let wall = micro(wall);
    let spec = LeaseSpec {
        // Empty, and valid for the shortest time there is, for those who look at time only.
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        acquire_time: Some(wall.clone()),
        renew_time: Some(wall),
        ..lease.spec.unwrap_or_default()
    };
    Lease { spec: Some(spec), ..lease }
}

/// Cut to what a Lease can hold, so that what comes back equals what was sent.
pub(super) fn micro(time: Timestamp) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time))
}
