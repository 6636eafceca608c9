//! What a candidate for a scope does next.

use std::time::Instant;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;

use super::{ElectionStep, Elector, ScopeElector, ScopeStep};

/// For how many lease durations Leases are left to another replica of our release.
const DEFERENCE: u32 = 2;

impl ScopeElector {
    /// Of every namespace: our own Lease first, so that nobody's Leases can keep us from renewing it.
    pub(super) fn next_of_all(&mut self, now: Instant, wall: Timestamp) -> ScopeStep {
        let replacement = self.judge(now, wall);
        let is_blocked = !self.yields_to.is_empty() || self.electors.iter().any(|elector| !elector.is_open(now));
        let holds = self.electors.iter().any(Elector::holds);
        let may_lead = self.supported().is_some();
        let mut step = ElectionStep::Sleep(self.config.retry_period);
        if let Some(elector) = self.electors.first_mut().filter(|_| holds && !is_blocked) {
            step = elector.next_if(now, wall, may_lead);
        }
        let ElectionStep::Sleep(mut pause) = step else { return ScopeStep::Own(0, step) };
        let until_list = self.rivals.as_ref().map_or(self.config.retry_period, |rivals| rivals.pause(now));
        if until_list.is_zero() {
            return ScopeStep::List;
        }
        if let Some(lease) = replacement.filter(|_| !is_blocked) {
            return ScopeStep::Rival(lease);
        }
        if is_blocked {
            return self.stand_back(now, wall);
        }
        // A claim is for those who have seen who else is there.
        if let Some(elector) = self.electors.first_mut().filter(|_| !holds) {
            match elector.next_if(now, wall, may_lead) {
                ElectionStep::Sleep(some) => pause = pause.min(some),
                step => return ScopeStep::Own(0, step),
            }
        }
        ScopeStep::Sleep(pause.min(until_list))
    }

    /// What everybody else's Leases mean to us, and which of them to replace.
    fn judge(&mut self, now: Instant, wall: Timestamp) -> Option<Lease> {
        let rivals = self.rivals.as_mut()?;
        // An outdated list says nothing.
        let sent = rivals.sent()?;
        let own = self.electors.first().and_then(Elector::held);
        let judgement = rivals.judge(now, wall, own.map(|(seen, _)| seen));
        self.yields_to = judgement.yields_to;
        self.contested = judgement.contested;
        if !self.yields_to.is_empty() {
            self.support = None;
            return None;
        }
        // Whoever claims at the same time sees our claim, or we see theirs: the list has to be the later one.
        if own.is_some_and(|(_, claimed)| sent < claimed) {
            rivals.outdated();
            return None;
        }
        if !judgement.is_open {
            self.support = Some(sent);
        }
        judgement.replacement
    }

    /// Somebody else goes first: we keep nothing, and look again in a while.
    fn stand_back(&mut self, now: Instant, wall: Timestamp) -> ScopeStep {
        // Writes that began while we led may still be under way.
        let under_way = self.config.lease_duration.saturating_sub(self.config.renew_deadline);
        let is_over = self.led.is_none_or(|led| led + under_way <= now);
        let mut pause = self.rivals.as_ref().map_or(self.config.retry_period, |rivals| rivals.pause(now));
        for (number, elector) in self.electors.iter_mut().enumerate() {
            if let Some(lease) = is_over.then(|| elector.give_back(wall)).flatten() {
                return ScopeStep::GiveBack(number, lease);
            }
            let some = elector.pause(now);
            elector.rest_for(now, some);
            pause = pause.min(some);
        }
        ScopeStep::Sleep(pause)
    }

    /// Of some namespaces: each for itself, so that a Lease in one does not touch the others.
    pub(super) fn next_of_some(&mut self, now: Instant, wall: Timestamp) -> ScopeStep {
        let defers = self.defers(now);
        let mut pause = self.config.retry_period;
        let count = self.electors.len();
        for number in (0..count).map(|offset| (self.turn + offset) % count) {
            let Some(elector) = self.electors.get_mut(number) else { continue };
            if defers && elector.leads_until(now).is_none() {
                if let Some(lease) = elector.give_back(wall) {
                    self.turn = number + 1;
                    return ScopeStep::GiveBack(number, lease);
                }
                let some = elector.pause(now);
                elector.rest_for(now, some);
                pause = pause.min(some);
                continue;
            }
            match elector.next_if(now, wall, true) {
                ElectionStep::Sleep(some) => pause = pause.min(some),
                step => {
                    self.turn = number + 1;
                    return ScopeStep::Own(number, step);
                }
            }
        }
        ScopeStep::Sleep(pause)
    }

    /// Whether another replica of our release is about to take what is free: one is to lead in all namespaces that can
    /// be had. Of two that have begun it is the one with the first namespace.
    ///
    /// A Lease may lie about its release, so this is a courtesy with an end, and is not begun anew before every Lease
    /// has been somebody's.
    fn defers(&mut self, now: Instant) -> bool {
        let Some(mark) = &self.config.mark else { return false };
        let is_pending = |elector: &Elector| {
            let is_foreign = elector.obstacle(now).is_some();
            !is_foreign && elector.leads_until(now).is_none() && !self.denied.contains_key(elector.namespace())
        };
        if !self.electors.iter().any(is_pending) {
            self.defers = None;
            return false;
        }
        let is_sister = |elector: &Elector| elector.obstacle(now).is_some_and(|seen| mark.is_own(&seen.lease));
        let Some(theirs) = self.electors.iter().position(is_sister) else { return false };
        if self.electors.iter().position(Elector::holds).is_some_and(|ours| ours < theirs) {
            return false;
        }
        let since = *self.defers.get_or_insert(now);
        now < since + self.config.lease_duration * DEFERENCE
    }
}
