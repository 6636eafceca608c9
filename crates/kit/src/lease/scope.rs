//! The rules for a whole scope, without IO: one Lease in each watched namespace, each for itself, or one for all of
//! them and an eye on everybody else's.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::mark::{Rival, Scope};
use super::rivals::{Contest, Rivals};
use super::status::ScopeStatus;
use super::{ElectionStep, Elector, LeaseConfig};

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub enum ScopeStep {
    /// Nothing, for that long.
    Sleep(Duration),
    /// Something about the Lease of our own with that number; tell [`ScopeElector::observed`],
    /// [`ScopeElector::written`] or [`ScopeElector::refused`].
    Own(usize, ElectionStep),
    /// Replace the Lease with that number by this one, which is free; tell [`ScopeElector::given_back`].
    GiveBack(usize, Lease),
    /// List the Leases of our name in all namespaces and tell [`ScopeElector::listed`].
    List,
    /// Replace the Lease of another by this one and tell [`ScopeElector::rival_written`] or
    /// [`ScopeElector::rival_refused`].
    Rival(Lease),
}

/// One candidate's view of its scope.
#[derive(Debug, Clone)]
pub struct ScopeElector {
    pub(super) config: LeaseConfig,
    pub(super) electors: Vec<Elector>,
    /// Of several namespaces, those whose Lease cannot be had, with the reason: gone, terminating, or without the right
    /// to hold a Lease there.
    pub(super) denied: BTreeMap<String, String>,
    /// Of several namespaces, whose turn it is: where there are many, each is asked for before any is again.
    pub(super) turn: usize,
    /// Since when Leases are left to another replica of our release that seems to be about to take them.
    pub(super) defers: Option<Instant>,
    /// For an operator of every namespace: everybody else.
    pub(super) rivals: Option<Rivals>,
    /// For an operator of every namespace: where somebody else may lead.
    pub(super) contested: BTreeMap<String, Contest>,
    /// When the list was sent from which we may lead.
    pub(super) support: Option<Instant>,
    /// Who goes first everywhere, as last listed.
    pub(super) yields_to: Vec<Rival>,
    /// The latest moment until which this process has led.
    pub(super) led: Option<Instant>,
    /// Why requests failed: about a Lease of our own, by its number, or about others'.
    pub(super) failures: BTreeMap<Option<usize>, String>,
    pub(super) status: ScopeStatus,
}

impl ScopeElector {
    /// A candidate that has seen nothing yet.
    pub fn new(config: LeaseConfig) -> Self {
        let mut rivals = None;
        let electors = match config.mark.clone() {
            Some(mark) => match &mark.scope {
                // Who may not see others has to give them time to object: longer than a list of theirs can be old.
                Scope::Namespaces(namespaces) => {
                    let of = |namespace: &String| LeaseConfig { namespace: namespace.clone(), ..config.clone() };
                    let elector = |namespace| Elector::new(of(namespace)).with_probation(config.lease_duration);
                    namespaces.iter().map(elector).collect()
                }
                Scope::All => {
                    rivals = Some(Rivals::new(config.clone(), mark));
                    vec![Elector::new(config.clone())]
                }
            },
            None => vec![Elector::new(config.clone())],
        };
        Self {
            config,
            electors,
            denied: BTreeMap::new(),
            turn: 0,
            defers: None,
            rivals,
            contested: BTreeMap::new(),
            support: None,
            yields_to: Vec::new(),
            led: None,
            failures: BTreeMap::new(),
            status: ScopeStatus::Unknown("the Lease has not been read yet".into()),
        }
    }

    /// The namespace of a Lease of our own.
    pub fn namespace(&self, number: usize) -> &str {
        self.electors.get(number).map_or(&self.config.namespace, Elector::namespace)
    }

    /// How many Leases of our own there are.
    pub fn len(&self) -> usize {
        self.electors.len()
    }

    /// Whether there is nothing to lead.
    pub fn is_empty(&self) -> bool {
        self.electors.is_empty()
    }

    /// Until when this process leads anywhere, if it does.
    pub fn leads_until(&mut self, now: Instant) -> Option<Instant> {
        let mut until = self.electors.iter().filter_map(|elector| elector.leads_until(now)).max()?;
        if self.rivals.is_some() {
            until = until.min(self.supported()? + self.config.renew_deadline);
        }
        self.led = self.led.max(Some(until));
        Some(until).filter(|until| now < *until)
    }

    /// Namespaces of the scope in which this process leads for a shorter time, or not at all.
    pub fn limits(&self, now: Instant) -> BTreeMap<String, Option<Instant>> {
        if self.rivals.is_some() {
            return self.contested.keys().map(|namespace| (namespace.clone(), None)).collect();
        }
        if self.config.mark.is_none() {
            return BTreeMap::new();
        }
        let limit = |elector: &Elector| (elector.namespace().to_owned(), elector.leads_until(now));
        self.electors.iter().map(limit).collect()
    }

    /// What to do now. `wall` only ends up in Leases.
    pub fn next(&mut self, now: Instant, wall: Timestamp) -> ScopeStep {
        if let Some(number) = self.electors.iter().position(|elector| elector.needs_read(now)) {
            return ScopeStep::Own(number, ElectionStep::Read);
        }
        if self.rivals.is_some() { self.next_of_all(now, wall) } else { self.next_of_some(now, wall) }
    }

    /// When the list was sent from which we may lead: later than the claim that it is to support.
    pub(super) fn supported(&self) -> Option<Instant> {
        let (_, claimed) = self.electors.first()?.held()?;
        self.support.filter(|sent| claimed <= *sent)
    }

    /// A Lease of our own was read: as given, or not there.
    pub fn observed(&mut self, number: usize, now: Instant, lease: Option<Lease>) {
        self.failures.remove(&Some(number));
        if let Some(elector) = self.electors.get_mut(number) {
            elector.observed(now, lease);
        }
    }

    /// Our write, sent at `sent` and answered by `now`, made a Lease of our own this.
    pub fn written(&mut self, number: usize, sent: Instant, now: Instant, lease: Lease) {
        self.failures.remove(&Some(number));
        let Some(elector) = self.electors.get_mut(number) else { return };
        elector.written(sent, lease);
        elector.settled(now);
        if elector.leads_until(now).is_some() {
            self.denied.remove(elector.namespace());
        }
    }

    /// A Lease of our own is free, as was asked for.
    pub fn given_back(&mut self, number: usize, now: Instant, lease: Lease) {
        if let Some(elector) = self.electors.get_mut(number) {
            elector.given_back(now, lease);
        }
    }

    /// Our write met a Lease other than the one we had read: somebody was faster.
    pub fn refused(&mut self, number: usize, now: Instant) {
        if let Some(elector) = self.electors.get_mut(number) {
            elector.refused(now);
        }
    }

    /// A request about a Lease of our own failed, or its outcome is unknown.
    pub fn failed(&mut self, number: usize, now: Instant, why: &str) {
        if let Some(elector) = self.electors.get_mut(number) {
            self.failures.insert(Some(number), format!("namespace {}: {why}", elector.namespace()));
            elector.failed(now);
        }
    }

    /// There is no Lease to be had in a namespace of several: it is done without.
    pub fn denied(&mut self, number: usize, now: Instant, why: &str) {
        self.failed(number, now, why);
        let Some(elector) = self.electors.get_mut(number) else { return };
        elector.rest_for(now, self.config.renew_deadline / 2);
        self.denied.insert(elector.namespace().to_owned(), why.to_owned());
    }

    /// All Leases of our name were listed, asked for at `sent`. Those in the `trusted` namespaces may claim every
    /// namespace, others only their own.
    pub fn listed(&mut self, sent: Instant, now: Instant, leases: Vec<Lease>, trusted: BTreeSet<String>) {
        self.failures.remove(&None);
        if let Some(rivals) = &mut self.rivals {
            rivals.listed(sent, now, leases, trusted);
        }
    }

    /// A list failed.
    pub fn rivals_failed(&mut self, now: Instant, why: &str) {
        self.failures.insert(None, why.to_owned());
        if let Some(rivals) = &mut self.rivals {
            rivals.failed(now);
        }
    }

    /// Our write was accepted and made the Lease of another this.
    pub fn rival_written(&mut self, now: Instant, lease: Lease) {
        if let Some(rivals) = &mut self.rivals {
            rivals.written(now, lease);
        }
    }

    /// The Lease of another in that namespace had changed, or could not be written.
    pub fn rival_refused(&mut self, namespace: &str) {
        if let Some(rivals) = &mut self.rivals {
            rivals.refused(namespace);
        }
    }

    /// A Lease of our own given back at the end, if it is ours to give.
    pub fn release(&mut self, number: usize, wall: Timestamp) -> Option<Lease> {
        self.electors.get_mut(number)?.release(wall)
    }

    /// The Leases of others that we keep them out of, given back at the end.
    pub fn release_rivals(&mut self, wall: Timestamp) -> Vec<Lease> {
        self.rivals.as_mut().map(|rivals| rivals.release(wall)).unwrap_or_default()
    }
}
