//! The election's rules, one by one, on a clock that the tests hold in their hands.

use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;

use super::{ElectionStep, Elector, LeaseConfig};

/// A candidate with a clock of its own, and an API server that it alone uses.
struct Candidate {
    elector: Elector,
    clock: Instant,
    wall: Timestamp,
}

impl Candidate {
    fn new(identity: &str) -> Self {
        let config = LeaseConfig::new("operators", "widget", identity);
        Self { elector: Elector::new(config), clock: Instant::now(), wall: "2030-01-02T03:04:05Z".parse().unwrap() }
    }

    fn wait(&mut self, seconds: u64) {
        self.clock += Duration::from_secs(seconds);
        self.wall += Duration::from_secs(seconds);
    }

    fn next(&mut self) -> ElectionStep {
        self.elector.next(self.clock, self.wall)
    }

    fn leads(&self) -> bool {
        self.elector.leads_until(self.clock).is_some()
    }

    /// Carries out one step on the server; `false` when there was nothing to do.
    fn act(&mut self, server: &mut Server) -> bool {
        match self.next() {
            ElectionStep::Sleep(_) => return false,
            ElectionStep::Read => self.elector.observed(self.clock, server.lease.clone()),
            ElectionStep::Create(lease) | ElectionStep::Replace(lease) => match server.write(lease) {
                Some(lease) => self.elector.written(self.clock, lease),
                None => self.elector.refused(self.clock),
            },
        }
        true
    }

    fn settle(&mut self, server: &mut Server) {
        while self.act(server) {}
    }
}

#[derive(Default)]
struct Server {
    lease: Option<Lease>,
    version: u32,
}

impl Server {
    /// Accepts a write with the current resourceVersion only.
    fn write(&mut self, mut lease: Lease) -> Option<Lease> {
        let current = self.lease.as_ref().and_then(|lease| lease.metadata.resource_version.clone());
        if lease.metadata.resource_version != current {
            return None;
        }
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.lease = Some(lease.clone());
        Some(lease)
    }

    fn spec(&self) -> LeaseSpec {
        self.lease.clone().unwrap().spec.unwrap()
    }

    fn annotate(&mut self) {
        let mut lease = self.lease.clone().unwrap();
        lease.metadata.annotations = Some([("seen-by".to_owned(), "somebody".to_owned())].into());
        self.write(lease).unwrap();
    }
}

fn leader_and_follower() -> (Candidate, Candidate, Server) {
    let (mut leader, mut follower) = (Candidate::new("one"), Candidate::new("two"));
    let mut server = Server::default();
    leader.settle(&mut server);
    follower.settle(&mut server);
    assert!(leader.leads() && !follower.leads());
    (leader, follower, server)
}

#[test]
fn an_absent_lease_is_created_and_led() {
    let mut candidate = Candidate::new("one");
    let mut server = Server::default();
    assert_eq!(candidate.next(), ElectionStep::Read);
    candidate.settle(&mut server);
    assert!(candidate.leads());
    let spec = server.spec();
    assert_eq!(spec.holder_identity.as_deref(), Some("one"));
    assert_eq!((spec.lease_duration_seconds, spec.lease_transitions), (Some(15), Some(0)));
    assert_eq!(candidate.next(), ElectionStep::Sleep(Duration::from_secs(2)));
}

#[test]
fn a_renewal_keeps_the_claim_and_moves_the_renew_time() {
    let (mut leader, _, mut server) = leader_and_follower();
    let before = server.spec();
    leader.wait(2);
    leader.settle(&mut server);
    let after = server.spec();
    assert_eq!((&after.acquire_time, after.lease_transitions), (&before.acquire_time, Some(0)));
    assert_ne!(after.renew_time, before.renew_time);
    leader.wait(9);
    assert!(leader.leads(), "ten seconds count from the last renewal");
}

#[test]
fn a_lease_expires_only_when_seen_unchanged_for_its_duration() {
    let (mut leader, mut follower, mut server) = leader_and_follower();
    for _ in 0..10 {
        leader.wait(2);
        follower.wait(2);
        leader.settle(&mut server);
        follower.settle(&mut server);
        assert!(!follower.leads(), "it is renewed");
    }
    for waited in 1..=14 {
        follower.wait(1);
        follower.settle(&mut server);
        assert!(!follower.leads(), "after {waited} s");
    }
    follower.wait(1);
    follower.settle(&mut server);
    assert!(follower.leads());
    assert_eq!(server.spec().lease_transitions, Some(1));
}

#[test]
fn the_first_look_never_expires_a_lease_however_old_it_claims_to_be() {
    let (_, _, mut server) = leader_and_follower();
    let mut late = Candidate::new("late");
    late.wall = "2099-01-01T00:00:00Z".parse().unwrap();
    late.settle(&mut server);
    assert!(!late.leads());
    late.wait(14);
    late.settle(&mut server);
    assert!(!late.leads());
}

#[test]
fn wall_clocks_that_run_wild_change_nothing() {
    for wall in ["1971-01-01T00:00:00Z", "2500-01-01T00:00:00Z"] {
        let (mut leader, mut follower, mut server) = leader_and_follower();
        leader.wall = wall.parse().unwrap();
        leader.wait(2);
        leader.settle(&mut server);
        assert!(leader.leads());
        follower.wait(2);
        follower.settle(&mut server);
        assert!(!follower.leads(), "the renewal counts, whatever its date");
        follower.wait(15);
        follower.settle(&mut server);
        assert!(follower.leads());
    }
}

#[test]
fn the_holder_is_granted_the_duration_it_was_promised() {
    let (_, mut follower, mut server) = leader_and_follower();
    let mut lease = server.lease.clone().unwrap();
    lease.spec.as_mut().unwrap().lease_duration_seconds = Some(60);
    server.write(lease).unwrap();
    follower.wait(2);
    follower.settle(&mut server);
    follower.wait(59);
    follower.settle(&mut server);
    assert!(!follower.leads());
    follower.wait(1);
    follower.settle(&mut server);
    assert!(follower.leads());
}

#[test]
fn a_leader_stops_by_itself_at_the_renew_deadline() {
    let (mut leader, mut follower, mut server) = leader_and_follower();
    for _ in 0..5 {
        assert!(leader.leads());
        leader.wait(2);
        leader.elector.failed(leader.clock);
    }
    assert!(!leader.leads());
    follower.wait(10);
    follower.settle(&mut server);
    assert!(!follower.leads(), "there is a gap between the two");
}

#[test]
fn a_leader_that_returns_to_its_own_lease_takes_it_up_at_once() {
    let (mut leader, _, mut server) = leader_and_follower();
    leader.elector.failed(leader.clock);
    leader.wait(30);
    assert!(!leader.leads());
    leader.settle(&mut server);
    assert!(leader.leads());
    assert_eq!(server.spec().lease_transitions, Some(0));
}

#[test]
fn leadership_counts_from_the_sending_of_the_write() {
    let mut candidate = Candidate::new("one");
    candidate.elector.observed(candidate.clock, None);
    let ElectionStep::Create(lease) = candidate.next() else { panic!("the lease is absent") };
    let sent = candidate.clock;
    candidate.wait(4);
    candidate.elector.written(sent, lease);
    assert_eq!(candidate.elector.leads_until(candidate.clock), Some(sent + Duration::from_secs(10)));
}

#[test]
fn a_conflict_about_something_else_keeps_the_leader() {
    let (mut leader, _, mut server) = leader_and_follower();
    server.annotate();
    leader.wait(2);
    leader.settle(&mut server);
    leader.wait(9);
    assert!(leader.leads(), "it read again and renewed");
    assert!(server.lease.unwrap().metadata.annotations.is_some(), "what others wrote is kept");
}

#[test]
fn a_conflict_with_another_holder_ends_leadership() {
    let (mut leader, mut follower, mut server) = leader_and_follower();
    follower.wait(15);
    follower.settle(&mut server);
    assert!(follower.leads());
    leader.wait(2);
    leader.settle(&mut server);
    assert!(!leader.leads());
    assert_eq!(leader.elector.holder(), Some("two"));
}

#[test]
fn of_two_that_take_at_once_one_wins() {
    let (mut one, mut two, mut server) = (Candidate::new("one"), Candidate::new("two"), Server::default());
    one.act(&mut server);
    two.act(&mut server);
    one.settle(&mut server);
    two.settle(&mut server);
    assert!(one.leads() && !two.leads());
}

#[test]
fn a_write_whose_answer_got_lost_is_recognised() {
    let (_, mut follower, mut server) = leader_and_follower();
    follower.wait(15);
    assert!(follower.act(&mut server), "it reads");
    let ElectionStep::Replace(lease) = follower.next() else { panic!("the lease has expired") };
    server.write(lease).unwrap();
    follower.elector.failed(follower.clock);
    assert!(!follower.leads());
    follower.wait(2);
    follower.settle(&mut server);
    assert!(follower.leads());
    assert_eq!(server.spec().lease_transitions, Some(1));
}

#[test]
fn a_namesake_has_to_wait_like_anybody() {
    let (_, _, mut server) = leader_and_follower();
    let mut namesake = Candidate::new("one");
    namesake.wait(1);
    namesake.settle(&mut server);
    assert!(!namesake.leads());
    namesake.wait(15);
    namesake.settle(&mut server);
    assert!(namesake.leads());
}

#[test]
fn a_leader_does_not_take_its_namesakes_lease_for_its_own() {
    let (mut leader, _, mut server) = leader_and_follower();
    let mut namesake = Candidate::new("one");
    namesake.wait(1);
    namesake.settle(&mut server);
    namesake.wait(15);
    namesake.settle(&mut server);
    assert!(namesake.leads());
    leader.wait(2);
    leader.settle(&mut server);
    assert!(!leader.leads());
}

#[test]
fn a_released_lease_is_taken_at_the_next_look() {
    let (mut leader, mut follower, mut server) = leader_and_follower();
    let released = leader.elector.release(leader.wall).unwrap();
    assert!(!leader.leads());
    server.write(released).unwrap();
    let spec = server.spec();
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_duration_seconds), (Some(""), Some(1)));
    follower.wait(2);
    follower.settle(&mut server);
    assert!(follower.leads());
    assert_eq!(server.spec().lease_transitions, Some(1));
}

#[test]
fn a_follower_has_nothing_to_release() {
    let (_, mut follower, _) = leader_and_follower();
    assert_eq!(follower.elector.release(follower.wall), None);
}

#[test]
fn a_deleted_lease_ends_leadership_until_it_is_made_anew() {
    let (mut leader, _, mut server) = leader_and_follower();
    server.lease = None;
    leader.wait(2);
    assert!(leader.act(&mut server), "the renewal is refused");
    assert!(leader.act(&mut server), "it reads");
    assert!(!leader.leads());
    leader.settle(&mut server);
    assert!(leader.leads());
}

#[test]
fn times_survive_the_way_to_the_server_and_back() {
    let mut candidate = Candidate::new("one");
    candidate.wall = Timestamp::from_nanosecond(1_900_000_000_123_456_789).unwrap();
    candidate.elector.observed(candidate.clock, None);
    let ElectionStep::Create(lease) = candidate.next() else { panic!("the lease is absent") };
    let sent: MicroTime = lease.spec.unwrap().acquire_time.unwrap();
    let back: MicroTime = serde_json::from_str(&serde_json::to_string(&sent).unwrap()).unwrap();
    assert_eq!(sent, back);
}
