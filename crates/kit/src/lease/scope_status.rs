//! What a candidate for a scope says about itself.

use std::collections::BTreeMap;
use std::time::Instant;

use k8s_openapi::api::coordination::v1::Lease;

use super::mark::{Mark, Rival};
use super::{Elector, ScopeElector, ScopeStatus};

impl ScopeElector {
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

    /// Namespaces that nobody of this release works in although this process leads in others, and why.
    pub fn without(&mut self, now: Instant) -> BTreeMap<String, String> {
        let Some(mark) = self.config.mark.clone().filter(|_| self.leads_until(now).is_some()) else {
            return BTreeMap::new();
        };
        if self.rivals.is_some() {
            let lasting = self.contested.iter().filter(|(_, contest)| !contest.is_passing);
            return lasting.map(|(namespace, contest)| (namespace.clone(), waits_for(&contest.rival))).collect();
        }
        let idle = self.electors.iter().enumerate().filter(|(_, elector)| elector.leads_until(now).is_none());
        idle.filter_map(|(number, elector)| {
            let namespace = elector.namespace();
            let denied =
                || self.denied.get(namespace).map(|why| format!("{why}. It has to exist, and RBAC to allow it"));
            let failed = || self.failures.get(&Some(number)).cloned();
            let foreign = || self.foreign(elector, &mark, now).as_ref().map(waits_for);
            Some((namespace.to_owned(), denied().or_else(failed).or_else(foreign)?))
        })
        .collect()
    }

    /// The other release that has a Lease which we want.
    fn foreign(&self, elector: &Elector, mark: &Mark, now: Instant) -> Option<Rival> {
        elector.obstacle(now).filter(|seen| !self.is_ours(mark, &seen.lease)).map(|seen| seen.rival(mark))
    }

    /// A Lease of ours without a mark is held by a replica that knows of none.
    fn is_ours(&self, mark: &Mark, lease: &Lease) -> bool {
        let is_at_home = lease.metadata.namespace.as_ref() == Some(&self.config.namespace);
        mark.release(lease).map_or(is_at_home, |release| release == mark.release)
    }

    fn current(&mut self, now: Instant) -> ScopeStatus {
        let Some(mark) = self.config.mark.clone() else { return ScopeStatus::Settled };
        if self.leads_until(now).is_some() {
            return ScopeStatus::Settled;
        }
        let is_sister = |elector: &Elector| elector.obstacle(now).is_some_and(|seen| self.is_ours(&mark, &seen.lease));
        if self.electors.iter().any(is_sister) {
            return ScopeStatus::Settled;
        }
        let mut rivals: Vec<Rival> =
            self.electors.iter().filter_map(|elector| self.foreign(elector, &mark, now)).collect();
        rivals.extend(self.yields_to.iter().filter(|rival| rival.release != mark.release).cloned());
        if rivals.is_empty() && !self.yields_to.is_empty() {
            return ScopeStatus::Settled;
        }
        // A claim that stands is about to lead: it does not matter then who has the other namespaces.
        let claims = self.yields_to.is_empty() && self.electors.iter().any(Elector::holds);
        if !rivals.is_empty() && !claims {
            // The holder renews: that alone is no news.
            rivals.sort();
            return ScopeStatus::Waiting(rivals);
        }
        if let Some(failure) = self.failures.values().next() {
            return ScopeStatus::Unknown(failure.clone());
        }
        if claims {
            return ScopeStatus::Claiming;
        }
        ScopeStatus::Unknown("the Lease is free and about to be claimed".into())
    }
}

fn waits_for(rival: &Rival) -> String {
    format!("waiting for {rival}. End that release, or delete the Lease if no operator holds it")
}
