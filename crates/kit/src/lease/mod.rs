//! Leader election with client-go's rules: of all replicas one writes, and it stops by itself in time.
//! The rules are in the pure [`Elector`] and [`ScopeElector`]; [`Election`] carries them out; [`Leadership`] is asked
//! before every write. Operators that share a Lease name and a namespace to watch never lead at once, whichever release
//! they belong to: a [`Mark`] says which scope they stand for.

mod election;
mod elector;
#[cfg(test)]
mod elector_tests;
#[cfg(test)]
mod hostile_tests;
mod leadership;
mod mark;
mod observed;
mod request;
mod rivals;
mod scope;
mod scope_status;
#[cfg(test)]
mod scope_tests;
mod scope_turn;
#[cfg(test)]
mod simulation_tests;
mod status;
mod trust;
#[cfg(test)]
mod world_tests;

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

use kube::{Client, Config};

pub use election::{Election, LeadershipEnd, candidate};
pub use elector::{ElectionStep, Elector};
pub use leadership::{Leadership, NotLeader, Returns};
pub use mark::{Mark, MarkKeys, Right, Rival, Scope};
pub use scope::{ScopeElector, ScopeStep};
pub use status::ScopeStatus;

/// Which lease to hold, as whom, and with which timeouts.
///
/// ```
/// use operator_kit::lease::{LeaseConfig, unique_identity};
///
/// let config = LeaseConfig::new("operators", "my-operator", &unique_identity("pod-1"));
/// assert!(config.check().is_ok());
/// ```
#[derive(Debug, Clone)]
pub struct LeaseConfig {
    /// The namespace of the Lease.
    pub namespace: String,
    /// The name of the Lease.
    pub name: String,
    /// Who this candidate is; no other process may ever have the same (see [`unique_identity`]).
    pub identity: String,
    /// How long others leave a lease alone that they see unchanged.
    pub lease_duration: Duration,
    /// How long the leader goes on without a successful renewal.
    ///
    /// A write that was begun under [`Leadership::check`] must end within `lease_duration` less this.
    pub renew_deadline: Duration,
    /// The pause between two tries, to acquire and to renew.
    pub retry_period: Duration,
    /// Which release this is and where it works. Without it there is this one Lease, and no other operator is looked
    /// for.
    pub mark: Option<Mark>,
}

impl LeaseConfig {
    /// A lease with client-go's durations: 15 s, 10 s, 2 s.
    pub fn new(namespace: &str, name: &str, identity: &str) -> Self {
        Self {
            namespace: namespace.to_owned(),
            name: name.to_owned(),
            identity: identity.to_owned(),
            lease_duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry_period: Duration::from_secs(2),
            mark: None,
        }
    }

    /// Whether these durations can keep two leaders apart.
    pub fn check(&self) -> Result<(), InvalidLease> {
        if self.identity.is_empty() {
            return Err(InvalidLease::NoIdentity);
        }
        if self.lease_duration <= self.renew_deadline {
            return Err(InvalidLease::DeadlineAfterExpiry);
        }
        // client-go's JitterFactor: there must be room for a second try.
        if self.renew_deadline <= self.retry_period.mul_f64(1.2) || self.retry_period.is_zero() {
            return Err(InvalidLease::NoTimeToRetry);
        }
        Ok(())
    }

    /// How long one request may take: two fit before the deadline.
    fn request_timeout(&self) -> Duration {
        self.renew_deadline / 2
    }

    /// The promise to others, in whole seconds: rounded up, never shorter than what we rely on.
    fn seconds(&self) -> i32 {
        let seconds = self.lease_duration.as_secs() + u64::from(self.lease_duration.subsec_nanos() > 0);
        i32::try_from(seconds).unwrap_or(i32::MAX)
    }
}

/// Why a [`LeaseConfig`] is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum InvalidLease {
    /// Nobody could tell whose lease it is.
    #[error("a candidate needs an identity")]
    NoIdentity,
    /// Another could lead before this one stops.
    #[error("the lease duration must be longer than the renew deadline")]
    DeadlineAfterExpiry,
    /// One failed request would end leadership.
    #[error("the renew deadline must be longer than 1.2 retry periods, and those above zero")]
    NoTimeToRetry,
}

/// A host or pod name made unique: a container that restarts is another candidate.
pub fn unique_identity(host: &str) -> String {
    // A new `RandomState` has random keys, which is all the randomness needed here.
    format!("{host}_{:016x}", RandomState::new().build_hasher().finish())
}

/// A client fit for the election: without retries, which would hide failures past the deadline (and
/// repeat writes), and with a connection of its own, so that no busy client delays a renewal.
pub fn client(mut config: Config) -> kube::Result<Client> {
    config.default_retry = false;
    Client::try_from(config)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_that_let_two_lead_are_refused() {
        let good = LeaseConfig::new("operators", "widget", "a");
        assert_eq!(good.check(), Ok(()));
        let refused = |change: fn(&mut LeaseConfig)| {
            let mut config = good.clone();
            change(&mut config);
            config.check().unwrap_err()
        };
        assert_eq!(refused(|c| c.identity.clear()), InvalidLease::NoIdentity);
        assert_eq!(refused(|c| c.lease_duration = c.renew_deadline), InvalidLease::DeadlineAfterExpiry);
        assert_eq!(refused(|c| c.retry_period = c.renew_deadline), InvalidLease::NoTimeToRetry);
        assert_eq!(refused(|c| c.retry_period = Duration::ZERO), InvalidLease::NoTimeToRetry);
    }

    #[test]
    fn identities_of_one_host_differ() {
        assert_ne!(unique_identity("pod-1"), unique_identity("pod-1"));
        assert!(unique_identity("pod-1").starts_with("pod-1_"));
    }
}
