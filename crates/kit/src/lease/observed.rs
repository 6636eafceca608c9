//! A Lease as it was last seen, and from when on it may be taken.
//! Only this process's own clock decides, as in client-go; the timestamps in the Lease are for people.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::LeaseConfig;
use super::mark::{Mark, Phase, Rival};

/// How many lease durations of our own another may promise itself. Who says more is believed for that long: a holder
/// that lives renews much more often.
const MOST_PROMISED: u32 = 4;

#[derive(Debug, Clone)]
pub(super) struct ObservedLease {
    pub(super) lease: Lease,
    /// When its spec was first seen as it is.
    pub(super) since: Instant,
}

impl ObservedLease {
    /// The Lease seen `now`, after what was seen `before`.
    pub(super) fn after(before: Option<&Self>, lease: Lease, now: Instant) -> Self {
        let unchanged = before.filter(|before| before.lease.spec == lease.spec);
        Self { since: unchanged.map_or(now, |before| before.since), lease }
    }

    pub(super) fn spec(&self) -> LeaseSpec {
        self.lease.spec.clone().unwrap_or_default()
    }

    pub(super) fn holder(&self) -> Option<&str> {
        let holder = self.lease.spec.as_ref()?.holder_identity.as_deref();
        holder.filter(|holder| !holder.is_empty())
    }

    /// When we may take the Lease: now if nobody holds it, else after the time that its holder was promised,
    /// counted from when we first saw it as it is. The replicas of the release that led have the first choice.
    pub(super) fn expiry(&self, config: &LeaseConfig) -> Instant {
        let free = if self.holder().is_some() { self.since + self.promised(config) } else { self.since };
        let is_kept = config.mark.as_ref().is_some_and(|mark| {
            let led = matches!(mark.phase(&self.lease), Some(Phase::Leading | Phase::Blocking));
            led && !mark.is_own(&self.lease)
        });
        if is_kept { free + config.lease_duration } else { free }
    }

    fn promised(&self, config: &LeaseConfig) -> Duration {
        let seconds = self.lease.spec.as_ref().and_then(|spec| spec.lease_duration_seconds);
        let seconds = seconds.and_then(|seconds| u64::try_from(seconds).ok());
        let promised = seconds.filter(|seconds| *seconds > 0).map_or(config.lease_duration, Duration::from_secs);
        promised.min(config.lease_duration * MOST_PROMISED)
    }

    /// Who claimed first, for those who look at both claims: people's clocks decide, and names between equals.
    pub(super) fn seniority(&self) -> (Option<MicroTime>, Option<String>) {
        let acquired = self.lease.spec.as_ref().and_then(|spec| spec.acquire_time.clone());
        (acquired, self.lease.metadata.namespace.clone())
    }

    pub(super) fn rival(&self, mark: &Mark) -> Rival {
        let own = |text: Option<&str>| readable(text.unwrap_or_default());
        Rival {
            namespace: own(self.lease.metadata.namespace.as_deref()),
            holder: own(self.holder()),
            release: own(mark.release(&self.lease)),
            watches: own(mark.watched(&self.lease)),
        }
    }
}

/// As much of a text as a name can have, on one line: anybody may have written it, and it ends up in logs and metrics.
fn readable(text: &str) -> String {
    text.chars().filter(|each| !each.is_control()).take(253).collect()
}
