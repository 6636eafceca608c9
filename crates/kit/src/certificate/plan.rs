//! When to renew what: a pure function of the time and of what there is.
//!
//! An authority is followed by another without a gap in trust: first the new one is published beside the old, then
//! it signs, and the old one goes when nobody can be serving what it has signed.

use jiff::Timestamp;

use super::{Times, Validity};

/// How far before now certificates begin to be valid: clocks differ.
pub(super) const BACKDATE: std::time::Duration = std::time::Duration::from_secs(3600);

/// What is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenewalStep {
    /// Nothing until then, if nothing changes.
    Wait(Timestamp),
    /// A new authority takes its place beside the present one.
    RenewAuthority,
    /// The authority signs a new serving certificate.
    RenewServing,
    /// Authorities that no longer sign are trusted no longer.
    RetirePrevious,
}

/// Who has signed the serving certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Signer {
    /// The authority that signs.
    Authority,
    /// One that has signed before; which.
    Previous(usize),
}

/// What there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CertificateState {
    /// How long the authority is good.
    pub authority: Validity,
    /// How long the serving certificate is good.
    pub serving: Validity,
    /// Who has signed it.
    pub signer: Signer,
    /// Whether authorities are trusted beside the one that signs.
    pub has_previous: bool,
    /// Whether the serving certificate is for all names.
    pub has_names: bool,
    /// Since when everybody who calls trusts all authorities.
    pub published: Option<Timestamp>,
}

/// What to do now.
pub fn plan(now: Timestamp, certificates: &CertificateState, times: &Times) -> RenewalStep {
    let settled = certificates.published.map(|since| later(since, times.settle));
    if certificates.signer != Signer::Authority {
        // An expired certificate serves nobody: there is nothing to lose by a change.
        let at = settled.map_or(certificates.serving.not_after, |settled| settled.min(certificates.serving.not_after));
        return if now >= at { RenewalStep::RenewServing } else { RenewalStep::Wait(at) };
    }
    if now >= due(certificates.authority) {
        return RenewalStep::RenewAuthority;
    }
    // Only what is trusted everywhere is served, so nothing is retired before that is settled.
    let retire = settled
        .map(|settled| settled.max(later(issued(certificates.serving), times.overlap).min(due(certificates.serving))));
    let retire = retire.filter(|_| certificates.has_previous);
    if retire.is_some_and(|at| now >= at) {
        return RenewalStep::RetirePrevious;
    }
    if !certificates.has_names || now >= due(certificates.serving) {
        return RenewalStep::RenewServing;
    }
    let next = due(certificates.authority).min(due(certificates.serving));
    RenewalStep::Wait(retire.map_or(next, |at| at.min(next)))
}

/// When a certificate is to be renewed: after two thirds of its life.
fn due(validity: Validity) -> Timestamp {
    let issued = issued(validity);
    let life = validity.not_after.as_second().saturating_sub(issued.as_second()).max(0);
    later(issued, std::time::Duration::from_secs(u64::try_from(life / 3 * 2).unwrap_or_default()))
}

fn issued(validity: Validity) -> Timestamp {
    later(validity.not_before, BACKDATE)
}

fn later(time: Timestamp, duration: std::time::Duration) -> Timestamp {
    time.checked_add(duration).unwrap_or(Timestamp::MAX)
}
