//! Who is trusted by those who call, and since when: what may be served follows from that.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use rustls::pki_types::CertificateDer;

use super::Material;

/// Since when authorities are in every bundle, as far as this replica has seen.
#[derive(Debug, Default)]
pub(super) struct Trust {
    since: BTreeMap<Vec<u8>, Timestamp>,
}

impl Trust {
    /// Looks who of these is trusted now.
    pub(super) fn observe<'a>(
        &mut self,
        now: Timestamp,
        authorities: impl Iterator<Item = &'a CertificateDer<'static>>,
        is_trusted: impl Fn(&CertificateDer<'static>) -> bool,
    ) {
        let before = std::mem::take(&mut self.since);
        for authority in authorities.filter(|authority| is_trusted(authority)) {
            let since = before.get(authority.as_ref()).copied().unwrap_or(now);
            self.since.insert(authority.to_vec(), since);
        }
    }

    /// Since when everybody trusts this one.
    pub(super) fn since(&self, authority: &CertificateDer<'_>) -> Option<Timestamp> {
        self.since.get(authority.as_ref()).copied()
    }

    /// Since when everybody trusts all who are to be trusted.
    pub(super) fn published(&self, material: &Material) -> Option<Timestamp> {
        let since: Option<Vec<_>> = material.trusted().map(|authority| self.since(&authority.der)).collect();
        since?.into_iter().max()
    }

    /// When a replica that serves `old` may serve `new`, as things stand.
    ///
    /// A Secret may come to hold anything, from a backup or from another installation, so it is not enough that
    /// whoever rotates keeps the order.
    pub(super) fn may_serve(
        &self,
        now: Timestamp,
        old: Option<&Material>,
        new: &Material,
        settle: Duration,
    ) -> Timestamp {
        let Some(old) = old.filter(|old| old.is_valid(now)) else { return now };
        let is_of_use = self.since(&old.issuer().der).is_some();
        // Whatever is missing: an expired certificate is not worth waiting any longer.
        let settled = match self.since(&new.issuer().der) {
            _ if !new.is_valid(now) => None,
            _ if !is_of_use || old.issuer() == new.issuer() => Some(now),
            since => since.map(|since| since.checked_add(settle).unwrap_or(Timestamp::MAX)),
        };
        settled.unwrap_or(Timestamp::MAX).min(old.expiry())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::certificate::Times;

    const SETTLE: Duration = Duration::from_secs(60);

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + seconds).unwrap()
    }

    fn made() -> Material {
        Material::make(&["localhost".to_owned()], &Times::default(), at(0)).unwrap()
    }

    fn trust(trust: &mut Trust, now: Timestamp, all: &[&Material], trusted: &[&Material]) {
        let ders = |all: &[&Material]| all.iter().map(|one| one.issuer().der.clone()).collect::<Vec<_>>();
        trust.observe(now, ders(all).iter(), |authority| ders(trusted).contains(authority));
    }

    #[test]
    fn an_unknown_one_is_served_once_its_authority_is_trusted_for_long_enough() {
        let (old, new) = (made(), made());
        let mut seen = Trust::default();
        trust(&mut seen, at(0), &[&old, &new], &[&old]);
        let may = |seen: &Trust, now| seen.may_serve(now, Some(&old), &new, SETTLE);
        assert_eq!(may(&seen, at(0)), old.expiry(), "at the latest when there is nothing to lose");
        trust(&mut seen, at(10), &[&old, &new], &[&old, &new]);
        assert_eq!(may(&seen, at(10)), at(70));
        trust(&mut seen, at(20), &[&old, &new], &[&old, &new]);
        assert_eq!(may(&seen, at(20)), at(70), "looking again changes nothing");
        assert_eq!(seen.published(&new), Some(at(10)));
        trust(&mut seen, at(30), &[&old, &new], &[&old]);
        trust(&mut seen, at(40), &[&old, &new], &[&old, &new]);
        assert_eq!(may(&seen, at(40)), at(100), "an interruption counts");
    }

    #[test]
    fn whoever_has_nothing_to_lose_serves_at_once() {
        let (old, new) = (made(), made());
        let renewed = old.clone().with_new_serving(&["localhost".to_owned()], &Times::default(), at(0)).unwrap();
        let mut seen = Trust::default();
        assert_eq!(seen.may_serve(at(0), None, &new, SETTLE), at(0));
        assert_eq!(seen.may_serve(at(0), Some(&old), &new, SETTLE), at(0), "nobody trusts the old one");
        trust(&mut seen, at(0), &[&old], &[&old]);
        assert_eq!(seen.may_serve(at(0), Some(&old), &renewed, SETTLE), at(0), "it is the same authority");
        let expired = Material::make(&["localhost".to_owned()], &Times::default(), at(-3600 * 24 * 365)).unwrap();
        let waits = seen.may_serve(at(0), Some(&old), &expired, SETTLE);
        assert_eq!(waits, old.expiry(), "an expired one is no improvement");
        let late = old.expiry();
        assert_eq!(seen.may_serve(late, Some(&old), &new, SETTLE), late, "the old one has expired");
    }
}
