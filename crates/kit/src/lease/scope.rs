//! The rules for a whole scope, without IO: one Lease in each watched namespace, or one for all of them and an eye on
//! everybody else's. All are held or none: a part is given back, so that `{a, b}` and `{b, c}` cannot block each other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::mark::{Rival, Scope};
use super::rivals::{Precedence, Rivals};
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
    config: LeaseConfig,
    electors: Vec<Elector>,
    /// Namespaces that cannot be had, with the reason: gone, terminating, or without the right to hold a Lease there.
    without: BTreeMap<String, String>,
    /// For an operator of every namespace: everybody else.
    rivals: Option<Rivals>,
    /// When the list was sent from which we may lead.
    support: Option<Instant>,
    /// Who goes first, as last listed.
    yields_to: Vec<Rival>,
    /// The latest moment until which this process has led.
    led: Option<Instant>,
    /// Why requests failed: about a Lease of our own, by its number, or about others'.
    failures: BTreeMap<Option<usize>, String>,
    status: ScopeStatus,
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
            without: BTreeMap::new(),
            rivals,
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

    /// Until when this process leads, if it does.
    pub fn leads_until(&mut self, now: Instant) -> Option<Instant> {
        let ends: Option<Vec<Instant>> = self.wanted().map(|elector| elector.leads_until(now)).collect();
        let mut until = ends?.into_iter().min()?;
        if self.rivals.is_some() {
            until = until.min(self.supported()? + self.config.renew_deadline);
        }
        self.led = self.led.max(Some(until));
        Some(until).filter(|until| now < *until)
    }

    /// Namespaces of the scope in which this process must not write: their Leases are not to be had.
    pub fn without(&self) -> BTreeSet<String> {
        self.without.keys().cloned().collect()
    }

    /// What to do now. `wall` only ends up in Leases.
    pub fn next(&mut self, now: Instant, wall: Timestamp) -> ScopeStep {
        if let Some(number) = self.electors.iter().position(|elector| elector.needs_read(now)) {
            return ScopeStep::Own(number, ElectionStep::Read);
        }
        if let Some(step) = self.next_rival(now, wall) {
            return step;
        }
        let is_blocked = !self.yields_to.is_empty() || self.wanted().any(|elector| !elector.is_open(now));
        if is_blocked {
            return self.stand_back(now, wall);
        }
        let may_lead = self.may_lead(now);
        let mut pause = self.rivals.as_ref().map_or(self.config.retry_period, |rivals| rivals.pause(now));
        for (number, elector) in self.electors.iter_mut().enumerate() {
            let may = may_lead || self.without.contains_key(elector.namespace());
            match elector.next_if(now, wall, may) {
                ElectionStep::Sleep(some) => pause = pause.min(some),
                step => return ScopeStep::Own(number, step),
            }
        }
        ScopeStep::Sleep(pause)
    }

    /// What everybody else's Leases ask for.
    fn next_rival(&mut self, now: Instant, wall: Timestamp) -> Option<ScopeStep> {
        let rivals = self.rivals.as_mut()?;
        if rivals.pause(now).is_zero() {
            return Some(ScopeStep::List);
        }
        let own = self.electors.first().and_then(Elector::held);
        self.yields_to.clear();
        // An outdated list says nothing.
        let sent = rivals.sent()?;
        match rivals.judge(now, wall, own.map(|(seen, _)| seen)) {
            // Whoever claims at the same time sees our claim, or we see theirs: the list has to be the later one.
            Precedence::Alone if own.is_some_and(|(_, claimed)| sent < claimed) => {
                rivals.outdated();
                Some(ScopeStep::List)
            }
            Precedence::Alone => {
                self.support = Some(sent);
                None
            }
            Precedence::Replace(lease) => Some(ScopeStep::Rival(lease)),
            Precedence::Yield(rivals) => {
                self.support = None;
                self.yields_to = rivals;
                None
            }
        }
    }

    /// When the list was sent from which we may lead: later than the claim that it is to support.
    fn supported(&self) -> Option<Instant> {
        let (_, claimed) = self.electors.first()?.held()?;
        self.support.filter(|sent| claimed <= *sent)
    }

    /// Whether every claim is ripe; one that leads alone would keep others out for nothing.
    fn may_lead(&self, now: Instant) -> bool {
        let is_supported = self.rivals.is_none() || self.supported().is_some();
        is_supported && self.wanted().all(|elector| elector.is_ripe(now))
    }

    /// Somebody else goes first: we keep nothing, and look again in a while.
    fn stand_back(&mut self, now: Instant, wall: Timestamp) -> ScopeStep {
        // Writes that began while we led may still be under way.
        let under_way = self.config.lease_duration.saturating_sub(self.config.renew_deadline);
        if self.config.mark.is_some() && self.led.is_none_or(|led| led + under_way <= now) {
            for (number, elector) in self.electors.iter_mut().enumerate() {
                if let Some(lease) = elector.give_back(wall) {
                    return ScopeStep::GiveBack(number, lease);
                }
            }
        }
        // All at once: what is known about one has to be known about the others at the same time.
        let mut pause = self.wanted().map(|elector| elector.pause(now)).min().unwrap_or(self.config.retry_period);
        for elector in self.electors.iter_mut().filter(|elector| !self.without.contains_key(elector.namespace())) {
            elector.rest_for(now, pause);
        }
        if let Some(rivals) = &self.rivals {
            pause = pause.min(rivals.pause(now));
        }
        ScopeStep::Sleep(pause)
    }

    fn wanted(&self) -> impl Iterator<Item = &Elector> {
        self.electors.iter().filter(|elector| !self.without.contains_key(elector.namespace()))
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
            self.without.remove(elector.namespace());
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

    /// There is no Lease to be had in a namespace of several: it is done without. Whether that is news.
    pub fn denied(&mut self, number: usize, now: Instant, why: &str) -> bool {
        self.failed(number, now, why);
        let Some(elector) = self.electors.get_mut(number) else { return false };
        elector.rest_for(now, self.config.renew_deadline / 2);
        self.without.insert(elector.namespace().to_owned(), why.to_owned()).is_none()
    }

    /// All Leases of our name were listed, asked for at `sent`.
    pub fn listed(&mut self, sent: Instant, now: Instant, leases: Vec<Lease>) {
        self.failures.remove(&None);
        if let Some(rivals) = &mut self.rivals {
            rivals.listed(sent, now, leases);
        }
    }

    /// A list, or a write to the Lease of another, failed.
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

    /// The Lease of another had changed.
    pub fn rival_refused(&mut self) {
        if let Some(rivals) = &mut self.rivals {
            rivals.outdated();
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

    /// Where this process stands beside others.
    pub fn status(&mut self, now: Instant) -> ScopeStatus {
        let next = self.current(now);
        let is_news = matches!(next, ScopeStatus::Settled | ScopeStatus::Waiting(_));
        // A replica that is about to take over from one of its own, or cannot ask, is no rival because of that.
        if is_news || self.status != ScopeStatus::Settled {
            self.status = next;
        }
        self.status.clone()
    }

    fn current(&mut self, now: Instant) -> ScopeStatus {
        let Some(mark) = self.config.mark.clone() else { return ScopeStatus::Settled };
        if self.leads_until(now).is_some() {
            return ScopeStatus::Settled;
        }
        let obstacles = || self.wanted().filter_map(|elector| elector.obstacle(now));
        // A Lease of ours without a mark is held by a replica that knows of none.
        let is_ours = |lease: &Lease| {
            let is_at_home = lease.metadata.namespace.as_ref() == Some(&self.config.namespace);
            mark.release(lease).map_or(is_at_home, |release| release == mark.release)
        };
        let mut rivals: Vec<Rival> =
            obstacles().filter(|seen| !is_ours(&seen.lease)).map(|seen| seen.rival(&mark)).collect();
        if rivals.is_empty() && obstacles().next().is_some() {
            return ScopeStatus::Settled;
        }
        rivals.extend(self.yields_to.iter().filter(|rival| rival.release != mark.release).cloned());
        if rivals.is_empty() && !self.yields_to.is_empty() {
            return ScopeStatus::Settled;
        }
        if !rivals.is_empty() {
            // The holder renews: that alone is no news.
            rivals.sort();
            return ScopeStatus::Waiting(rivals);
        }
        if let Some(failure) = self.failures.values().next() {
            return ScopeStatus::Unknown(failure.clone());
        }
        if self.electors.iter().any(Elector::holds) {
            return ScopeStatus::Claiming;
        }
        ScopeStatus::Unknown("the Lease is free and about to be claimed".into())
    }
}
