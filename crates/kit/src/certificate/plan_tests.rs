//! The plan over decades: steps at their time, and a simulated fleet in which no call is ever refused.

use std::time::Duration;

use jiff::Timestamp;

use super::plan::{BACKDATE, CertificateState, RenewalStep, Signer, plan};
use super::trust::Trust;
use super::{DAY, Material, Times, Validity};

const NAMES: [&str; 1] = ["widgets.operators.svc"];

fn start() -> Timestamp {
    "2026-03-01T12:00:00Z".parse().unwrap()
}

fn after(days: u32) -> Timestamp {
    start() + days * DAY
}

fn issued(at: Timestamp, lifetime: Duration) -> Validity {
    Validity { not_before: at - BACKDATE, not_after: at + lifetime }
}

/// What there is right after the beginning.
fn fresh() -> CertificateState {
    let times = Times::default();
    CertificateState {
        authority: issued(start(), times.authority),
        serving: issued(start(), times.serving),
        signer: Signer::Authority,
        has_previous: false,
        has_names: true,
        published: Some(start()),
    }
}

fn at(now: Timestamp, certificates: CertificateState) -> RenewalStep {
    plan(now, &certificates, &Times::default())
}

#[test]
fn a_serving_certificate_is_renewed_after_two_thirds_of_its_life() {
    assert_eq!(at(start(), fresh()), RenewalStep::Wait(after(60)));
    assert_eq!(at(after(59), fresh()), RenewalStep::Wait(after(60)));
    assert_eq!(at(after(60), fresh()), RenewalStep::RenewServing);
    assert_eq!(at(after(400), fresh()), RenewalStep::RenewServing, "also when it is late");
    assert_eq!(at(start(), CertificateState { has_names: false, ..fresh() }), RenewalStep::RenewServing);
}

#[test]
fn an_authority_is_followed_by_another_after_two_thirds_of_its_life() {
    let young = CertificateState { serving: issued(after(2430), 90 * DAY), ..fresh() };
    assert_eq!(at(after(2431), young), RenewalStep::Wait(after(2434) + 16 * DAY / 24));
    assert_eq!(at(after(2435), young), RenewalStep::RenewAuthority);
}

#[test]
fn a_new_authority_signs_only_once_everybody_trusts_it() {
    let waiting = CertificateState { signer: Signer::Previous(0), has_previous: true, published: None, ..fresh() };
    assert_eq!(at(after(1), waiting), RenewalStep::Wait(after(90)));
    let published = CertificateState { published: Some(after(1)), ..waiting };
    let settled = after(1) + Duration::from_secs(60);
    assert_eq!(at(after(1), published), RenewalStep::Wait(settled));
    assert_eq!(at(settled, published), RenewalStep::RenewServing);
    assert_eq!(at(after(90), waiting), RenewalStep::RenewServing, "an expired certificate is not worth waiting");
}

#[test]
fn an_old_authority_goes_after_the_overlap_and_not_before_trust_has_settled() {
    let overlapping = CertificateState { has_previous: true, ..fresh() };
    assert_eq!(at(start(), overlapping), RenewalStep::Wait(after(1)));
    assert_eq!(at(after(1), overlapping), RenewalStep::RetirePrevious);
    let unpublished = CertificateState { published: None, ..overlapping };
    assert_eq!(at(after(1), unpublished), RenewalStep::Wait(after(60)));
    let late = CertificateState { published: Some(after(1)), ..overlapping };
    assert_eq!(at(after(1), late), RenewalStep::Wait(after(1) + Duration::from_secs(60)));
}

#[test]
fn an_overlap_longer_than_certificates_live_ends_all_the_same() {
    let times = Times { overlap: 365 * DAY, ..Times::default() };
    let overlapping = CertificateState { has_previous: true, ..fresh() };
    assert_eq!(plan(after(60), &overlapping, &times), RenewalStep::RetirePrevious);
}

/// One leader, replicas that follow it, and API servers that learn of everything late.
struct Fleet {
    times: Times,
    now: Timestamp,
    /// What the Secret holds, and since when.
    secret: (Material, Timestamp),
    served: Vec<Material>,
    /// The bundles that were written, and when.
    bundles: Vec<(String, Timestamp)>,
    trust: Trust,
    steps: Vec<RenewalStep>,
}

impl Fleet {
    fn new(times: Times) -> Self {
        let made = Material::make(&NAMES.map(str::to_owned), &times, start()).unwrap();
        Self {
            times,
            now: start(),
            served: vec![made.clone(); 3],
            bundles: vec![(made.bundle(), start() - times.settle)],
            secret: (made, start()),
            trust: Trust::default(),
            steps: Vec::new(),
        }
    }

    /// The leader's turn, as the keeper does it; returns when the next one is due.
    fn lead(&mut self) -> Timestamp {
        let material = self.secret.0.clone();
        if self.bundles.last().unwrap().0 != material.bundle() {
            self.bundles.push((material.bundle(), self.now));
        }
        let bundle = self.bundles.last().unwrap().0.clone();
        let known = super::x509::Certificate::read_all(&bundle).unwrap();
        let trusted = material.trusted().map(|authority| &authority.der);
        self.trust.observe(self.now, trusted, |authority| known.iter().any(|one| one.der == *authority));
        let names = NAMES.map(str::to_owned);
        let step = plan(self.now, &material.certificates(&names, self.trust.published(&material)), &self.times);
        let new = match step {
            RenewalStep::Wait(until) => return until,
            RenewalStep::RenewAuthority => material.with_new_authority(&self.times, self.now).unwrap(),
            RenewalStep::RenewServing => material.with_new_serving(&names, &self.times, self.now).unwrap(),
            RenewalStep::RetirePrevious => material.without_previous(),
        };
        self.steps.push(step);
        self.secret = (new, self.now);
        self.now
    }

    /// Replicas take what the Secret holds, each a little later than the other, well within the overlap.
    fn follow(&mut self) {
        let (material, since) = self.secret.clone();
        for (lag, served) in (0..).zip(&mut self.served) {
            if self.now >= since + lag * self.times.settle {
                *served = material.clone();
            }
        }
    }

    /// Every API server, however late it learns of bundles, trusts every replica.
    fn nobody_is_refused(&self) {
        let settled = self.bundles.iter().rposition(|(_, since)| *since + self.times.settle <= self.now).unwrap_or(0);
        for (bundle, _) in self.bundles.iter().skip(settled) {
            for served in &self.served {
                assert!(bundle.contains(&served.issuer().pem), "at {} after {:?}", self.now, self.steps);
                assert!(served.is_valid(self.now), "at {} after {:?}", self.now, self.steps);
            }
        }
    }

    fn run(&mut self, end: Timestamp) {
        while self.now < end {
            let next = self.lead();
            self.follow();
            self.nobody_is_refused();
            // Replicas and API servers move also when the leader does not.
            let tick = self.now + self.times.settle / 4;
            let is_busy = self.secret.1 + self.times.settle * 4 > self.now;
            self.now = if is_busy { tick } else { next.max(tick) };
        }
    }
}

#[test]
fn over_decades_no_call_is_refused() {
    let mut fleet = Fleet::new(Times::default());
    fleet.run(after(25 * 365));
    let count = |wanted: RenewalStep| fleet.steps.iter().filter(|step| **step == wanted).count();
    assert_eq!(count(RenewalStep::RenewAuthority), 3);
    assert_eq!(count(RenewalStep::RetirePrevious), 3);
    assert!((150..170).contains(&count(RenewalStep::RenewServing)), "{}", count(RenewalStep::RenewServing));
    assert!(fleet.bundles.len() == 7, "only a change of authorities is published: {}", fleet.bundles.len());
}

#[test]
fn no_call_is_refused_with_any_times() {
    let minutes = |minutes: u64| Duration::from_secs(60 * minutes);
    for (serving, authority, overlap) in [(600, 1200, 30), (600, 700, 300), (600, 6000, 5000), (60 * 24, 600, 60)] {
        let (serving, authority) = (minutes(serving), minutes(authority));
        let (settle, overlap) = (minutes(5), minutes(overlap));
        let times = Times { serving, authority, settle, overlap, ..Times::default() };
        let mut fleet = Fleet::new(times);
        fleet.run(start() + 6 * authority);
        assert!(
            fleet.steps.iter().filter(|step| **step == RenewalStep::RenewAuthority).count() >= 5,
            "{:?}",
            fleet.steps
        );
        assert!(fleet.secret.0.trusted().count() <= 3, "authorities are forgotten again");
    }
}
