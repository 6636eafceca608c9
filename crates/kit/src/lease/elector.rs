//! The rules of the election as a state machine without IO: fed what was seen and when, it says what to do next.
//! Only durations on this process's own clock decide; the timestamps in the Lease are for people.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::LeaseConfig;

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Nothing, for that long.
    Sleep(Duration),
    /// Read the Lease and tell [`Elector::observed`].
    Read,
    /// Create this Lease and tell [`Elector::written`] or [`Elector::refused`].
    Create(Lease),
    /// Replace the Lease by this one, which carries the resourceVersion that was read, and tell the same.
    Replace(Lease),
}

/// The Lease as it was last seen.
#[derive(Debug, Clone)]
struct Seen {
    lease: Lease,
    /// When its spec was first seen as it is.
    since: Instant,
}

/// One candidate's view of the election.
#[derive(Debug, Clone)]
pub struct Elector {
    config: LeaseConfig,
    seen: Option<Seen>,
    /// Whether `seen` is what the API server said last, and nothing was tried since with an unknown outcome.
    fresh: bool,
    /// The acquireTime under which this process claims the lease. Together with the identity it tells our own
    /// writes from anybody's, also those whose answer never came.
    claim: Option<MicroTime>,
    /// Until when this process leads.
    until: Option<Instant>,
    /// Nothing is tried before.
    rest: Option<Instant>,
}

impl Elector {
    /// A candidate that has seen nothing yet.
    pub fn new(config: LeaseConfig) -> Self {
        Self { config, seen: None, fresh: false, claim: None, until: None, rest: None }
    }

    /// Until when this process leads, if it does.
    pub fn leads_until(&self, now: Instant) -> Option<Instant> {
        self.until.filter(|until| now < *until)
    }

    /// Who holds the lease, as last seen.
    pub fn holder(&self) -> Option<&str> {
        let spec = self.seen.as_ref()?.lease.spec.as_ref()?;
        spec.holder_identity.as_deref().filter(|holder| !holder.is_empty())
    }

    /// What to do now. `wall` only ends up in the Lease.
    pub fn next(&mut self, now: Instant, wall: Timestamp) -> Step {
        if let Some(rest) = self.rest.filter(|rest| now < *rest) {
            return Step::Sleep(rest - now);
        }
        if !self.fresh {
            return Step::Read;
        }
        let wall = micro(wall);
        let Some(seen) = self.seen.clone() else {
            let mut lease = Lease::default();
            lease.metadata.name = Some(self.config.name.clone());
            lease.metadata.namespace = Some(self.config.namespace.clone());
            lease.spec = Some(self.taken(None, wall));
            return Step::Create(lease);
        };
        let spec = seen.lease.spec.clone().unwrap_or_default();
        if self.is_ours(&spec) {
            let spec = LeaseSpec { renew_time: Some(wall), lease_duration_seconds: Some(self.seconds()), ..spec };
            return Step::Replace(Lease { spec: Some(spec), ..seen.lease });
        }
        let left = self.expiry(&seen, &spec).saturating_duration_since(now);
        if left.is_zero() {
            let spec = self.taken(Some(spec), wall);
            return Step::Replace(Lease { spec: Some(spec), ..seen.lease });
        }
        self.fresh = false;
        self.claim = None;
        let pause = left.min(self.config.retry_period);
        self.rest = Some(now + pause);
        Step::Sleep(pause)
    }

    /// The Lease was read: as given, or not there.
    pub fn observed(&mut self, now: Instant, lease: Option<Lease>) {
        self.fresh = true;
        self.rest = None;
        let ours = lease.as_ref().and_then(|lease| lease.spec.as_ref()).is_some_and(|spec| self.is_ours(spec));
        if !ours {
            self.until = None;
        }
        self.seen = lease.map(|lease| {
            let unchanged = self.seen.as_ref().filter(|seen| seen.lease.spec == lease.spec);
            Seen { since: unchanged.map_or(now, |seen| seen.since), lease }
        });
    }

    /// Our write, sent at `sent`, was accepted and made the Lease this.
    ///
    /// Leadership counts from the sending: others cannot have seen the renewal earlier than that.
    pub fn written(&mut self, sent: Instant, lease: Lease) {
        self.seen = Some(Seen { lease, since: sent });
        self.fresh = true;
        self.until = Some(sent + self.config.renew_deadline);
        self.rest = Some(sent + self.config.retry_period);
    }

    /// Our write met a Lease other than the one we had read: somebody was faster.
    pub fn refused(&mut self, now: Instant) {
        self.fresh = false;
        // A leader finds out at once, as the write may have been about a label; a candidate has lost this round.
        self.rest = self.leads_until(now).is_none().then(|| now + self.config.retry_period);
    }

    /// A request failed, or its outcome is unknown.
    pub fn failed(&mut self, now: Instant) {
        self.fresh = false;
        self.rest = Some(now + self.config.retry_period);
    }

    /// The Lease given back, if the one last seen is ours to give; this process leads no more.
    pub fn release(&mut self, wall: Timestamp) -> Option<Lease> {
        self.until = None;
        let seen = self.seen.as_ref()?;
        let spec = seen.lease.spec.as_ref().filter(|spec| self.is_ours(spec))?;
        let wall = micro(wall);
        let spec = LeaseSpec {
            // Empty, and valid for the shortest time there is, for those who look at time only.
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            acquire_time: Some(wall.clone()),
            renew_time: Some(wall),
            ..spec.clone()
        };
        Some(Lease { spec: Some(spec), ..seen.lease.clone() })
    }

    /// Whether a write of this very process made the Lease what it is. A namesake's is not ours.
    fn is_ours(&self, spec: &LeaseSpec) -> bool {
        self.claim.is_some()
            && spec.holder_identity.as_ref() == Some(&self.config.identity)
            && spec.acquire_time == self.claim
    }

    /// When others may take the lease: now if nobody holds it, else after the time that its holder was
    /// promised, counted from when we first saw it as it is.
    fn expiry(&self, seen: &Seen, spec: &LeaseSpec) -> Instant {
        if spec.holder_identity.as_deref().unwrap_or_default().is_empty() {
            return seen.since;
        }
        let promised = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let promised = promised.filter(|seconds| *seconds > 0).map_or(self.config.lease_duration, Duration::from_secs);
        seen.since + promised
    }

    /// The lease in our hands, after `previous`.
    fn taken(&mut self, previous: Option<LeaseSpec>, wall: MicroTime) -> LeaseSpec {
        // A claim that was sent before may still arrive: it has to be recognised as well.
        let claim = self.claim.get_or_insert_with(|| wall.clone()).clone();
        let transitions = previous.as_ref().map(|spec| spec.lease_transitions.unwrap_or_default().saturating_add(1));
        LeaseSpec {
            holder_identity: Some(self.config.identity.clone()),
            lease_duration_seconds: Some(self.seconds()),
            acquire_time: Some(claim),
            renew_time: Some(wall),
            lease_transitions: Some(transitions.unwrap_or_default()),
            ..previous.unwrap_or_default()
        }
    }

    /// The promise to others, in whole seconds: rounded up, never shorter than what we rely on.
    fn seconds(&self) -> i32 {
        let duration = self.config.lease_duration;
        let seconds = duration.as_secs() + u64::from(duration.subsec_nanos() > 0);
        i32::try_from(seconds).unwrap_or(i32::MAX)
    }
}

/// Cut to what a Lease can hold, so that what comes back equals what was sent.
fn micro(time: Timestamp) -> MicroTime {
    MicroTime(Timestamp::from_microsecond(time.as_microsecond()).unwrap_or(time))
}
