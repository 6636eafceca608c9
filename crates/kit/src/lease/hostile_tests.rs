//! Somebody who may write any Lease in one namespace: it costs them that namespace, and nobody else anything.

use std::time::{Duration, Instant};

use super::mark::Phase;
use super::world_tests::{Candidate, Server, forged, mark_of, pass};
use super::{ElectionStep, ScopeStatus, ScopeStep};

const PHASES: [Option<Phase>; 4] = [None, Some(Phase::Claiming), Some(Phase::Leading), Some(Phase::Blocking)];

fn candidate(identity: &str, release: &str, watches: &[&str]) -> Candidate {
    Candidate::new(Instant::now(), identity, release, watches)
}

#[test]
fn a_forged_lease_takes_its_own_namespace_from_an_operator_of_all() {
    for release in ["victim", "another"] {
        for watches in [&[] as &[&str], &["tenant-x"], &["shop", "bank"]] {
            for phase in PHASES {
                let (mut server, mut victim) = (Server::default(), candidate("v", "victim", &[]));
                let mark = mark_of(release, watches);
                for second in 0..120 {
                    let lease = forged("x", phase.map(|phase| (&mark, phase)), victim.wall);
                    server.force("tenant-x", Some(lease));
                    pass(1, &mut server, &mut [&mut victim]);
                    assert!(victim.works_in("shop"), "{release} {watches:?} {phase:?} after {second} s");
                    assert_eq!(victim.status(), ScopeStatus::Settled);
                }
            }
        }
    }
}

#[test]
fn what_a_forged_lease_promises_is_believed_for_four_lease_durations() {
    let (mut server, mut victim) = (Server::default(), candidate("v", "victim", &[]));
    let mark = mark_of("another", &[]);
    server.force("tenant-x", Some(forged("x", Some((&mark, Phase::Leading)), victim.wall)));
    pass(70, &mut server, &mut [&mut victim]);
    assert_eq!((victim.works_in("tenant-x"), victim.without()), (false, vec!["tenant-x".to_owned()]));
    pass(10, &mut server, &mut [&mut victim]);
    assert!(victim.works_in("tenant-x") && victim.without().is_empty());
    assert_eq!(server.holder("tenant-x"), "", "it was cleared");
}

#[test]
fn a_forged_lease_takes_its_own_namespace_from_an_operator_of_some() {
    for release in ["victim", "another"] {
        for phase in PHASES {
            let (mut server, mut victim) = (Server::default(), candidate("v", "victim", &["shop", "tenant-x"]));
            let mark = mark_of(release, &[]);
            for second in 0..120 {
                // Now and then it is free, so that every courtesy begins anew.
                let lease = forged("x", phase.map(|phase| (&mark, phase)), victim.wall);
                server.force("tenant-x", (second % 10 != 0).then_some(lease));
                pass(1, &mut server, &mut [&mut victim]);
                assert!(second < 50 || victim.works_in("shop"), "{release} {phase:?} after {second} s");
            }
        }
    }
}

#[test]
fn a_trusted_claim_of_everything_is_respected_everywhere() {
    let (mut server, mut one) = (Server::default(), candidate("one", "first", &[]));
    let mark = mark_of("second", &[]);
    server.force("second", Some(forged("two", Some((&mark, Phase::Leading)), one.wall)));
    pass(20, &mut server, &mut [&mut one]);
    assert!(!one.leads());
    assert_eq!(one.waits_for(), [("second".to_owned(), "second".to_owned())]);
}

#[test]
fn a_lease_that_is_rewritten_without_pause_costs_one_try_a_list_and_no_renewal() {
    let (mut server, mut victim) = (Server::default(), candidate("v", "victim", &[]));
    victim.settle(&mut server);
    let mark = mark_of("another", &["tenant-x"]);
    let (mut lists, mut tries, mut renewals) = (0, 0, 0);
    for _ in 0..60 {
        victim.wait(Duration::from_secs(1));
        server.force("tenant-x", Some(forged("x", Some((&mark, Phase::Claiming)), victim.wall)));
        loop {
            let step = victim.next();
            match &step {
                ScopeStep::Sleep(_) => break,
                ScopeStep::List => lists += 1,
                ScopeStep::Rival(_) => {
                    tries += 1;
                    let other = format!("x-{tries}");
                    server.force("tenant-x", Some(forged(&other, Some((&mark, Phase::Claiming)), victim.wall)));
                }
                ScopeStep::Own(_, ElectionStep::Replace(_)) => {
                    renewals += 1;
                    assert_eq!((lists, tries), (renewals - 1, renewals - 1), "our own Lease goes first");
                }
                _ => {}
            }
            let answer = victim.carry_out(&step, &mut server);
            victim.take_in(step, victim.clock, Some(answer));
        }
        assert!(victim.works_in("shop") && lists <= renewals && tries <= lists);
    }
    assert_eq!((lists, tries, renewals), (30, 30, 30), "one of each in a retry period");
    assert_eq!(victim.without(), ["tenant-x"]);
}

#[test]
fn annotations_that_change_without_pause_cost_two_tries_a_retry_period() {
    let (mut server, mut victim) = (Server::default(), candidate("v", "victim", &["shop", "tenant-x"]));
    pass(20, &mut server, &mut [&mut victim]);
    assert!(victim.works_in("shop") && victim.works_in("tenant-x"));
    let mut writes = 0;
    for _ in 0..60 {
        victim.wait(Duration::from_secs(1));
        loop {
            let step = victim.next();
            if matches!(step, ScopeStep::Sleep(_)) {
                break;
            }
            if matches!(step, ScopeStep::Own(1, ElectionStep::Replace(_))) {
                writes += 1;
                let lease = server.leases.get("tenant-x").cloned();
                server.force("tenant-x", lease);
            }
            let answer = victim.carry_out(&step, &mut server);
            victim.take_in(step, victim.clock, Some(answer));
        }
        assert!(victim.works_in("shop"));
    }
    assert!(writes <= 62, "{writes}");
}
