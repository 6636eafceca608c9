//! The rules of scopes, one by one: who leads beside whom, who waits and says for whom, who takes over.

use std::time::{Duration, Instant};

use super::ScopeStatus;
use super::world_tests::{Candidate, Server, pass};

fn candidates<const N: usize>(of: [(&str, &str, &[&str]); N]) -> [Candidate; N] {
    let clock = Instant::now();
    of.map(|(identity, release, watches)| Candidate::new(clock, identity, release, watches))
}

fn waits(release: &str, namespace: &str) -> Vec<(String, String)> {
    vec![(release.to_owned(), namespace.to_owned())]
}

#[test]
fn disjoint_scopes_lead_side_by_side() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &["a", "b"]), ("two", "second", &["c"])]);
    pass(17, &mut server, &mut [&mut one, &mut two]);
    assert!(one.leads() && two.leads());
    assert_eq!(["a", "b", "c"].map(|namespace| server.holder(namespace)), ["one", "one", "two"]);
}

#[test]
fn a_claim_stands_for_a_lease_duration_before_it_leads() {
    let mut server = Server::default();
    let [mut one] = candidates([("one", "first", &["a"])]);
    pass(1, &mut server, &mut [&mut one]);
    assert_eq!((server.holder("a"), one.status()), ("one".to_owned(), ScopeStatus::Claiming));
    assert!(one.status().check().is_err());
    pass(14, &mut server, &mut [&mut one]);
    assert!(!one.leads());
    pass(3, &mut server, &mut [&mut one]);
    assert!(one.leads());
    assert_eq!(one.status().check(), Ok(()));
}

#[test]
fn the_second_in_a_namespace_waits_there_and_says_for_whom() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &["b"]), ("two", "second", &["b"])]);
    pass(17, &mut server, &mut [&mut one]);
    pass(60, &mut server, &mut [&mut one, &mut two]);
    assert!(one.leads() && !two.leads());
    assert_eq!(two.waits_for(), waits("first", "b"));
    let detail = two.status().check().unwrap_err();
    assert_eq!(detail, "waiting for first (one), which watches b and holds the Lease in namespace b");
}

#[test]
fn of_overlapping_scopes_each_leads_where_it_was_first() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &["a", "b"]), ("two", "second", &["b", "c"])]);
    pass(17, &mut server, &mut [&mut one]);
    pass(60, &mut server, &mut [&mut one, &mut two]);
    assert_eq!(["a", "b"].map(|namespace| one.works_in(namespace)), [true, true]);
    assert_eq!(["b", "c"].map(|namespace| two.works_in(namespace)), [false, true]);
    assert_eq!((two.status().check(), one.without()), (Ok(()), Vec::new()));
    let why = two.elector.without(two.clock);
    let words = "waiting for first (one), which watches a,b and holds the Lease in namespace b. End that release";
    assert!(why["b"].starts_with(words), "{why:?}");
    one.end(&mut server);
    pass(40, &mut server, &mut [&mut two]);
    assert!(two.works_in("b") && two.without().is_empty());
}

#[test]
fn the_second_takes_over_when_the_first_ends_but_not_at_once() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &["a"]), ("two", "second", &["a"])]);
    pass(17, &mut server, &mut [&mut one]);
    pass(5, &mut server, &mut [&mut one, &mut two]);
    one.end(&mut server);
    pass(14, &mut server, &mut [&mut two]);
    assert_eq!(two.waits_for(), waits("first", "a"), "the next replica of the first has the first choice");
    pass(20, &mut server, &mut [&mut two]);
    assert!(two.leads());
}

#[test]
fn the_second_takes_over_when_the_first_has_expired() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &["a"]), ("two", "second", &["a"])]);
    pass(17, &mut server, &mut [&mut one]);
    pass(29, &mut server, &mut [&mut two]);
    assert_eq!(server.holder("a"), "one");
    pass(20, &mut server, &mut [&mut two]);
    assert!(two.leads());
}

#[test]
fn replicas_of_one_release_hand_over_at_once() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &["a", "b"]), ("two", "first", &["a", "b"])]);
    pass(17, &mut server, &mut [&mut one]);
    pass(3, &mut server, &mut [&mut one, &mut two]);
    assert_eq!((two.leads(), two.status().check()), (false, Ok(())), "a follower is ready");
    one.end(&mut server);
    pass(2, &mut server, &mut [&mut two]);
    assert!(two.leads());
}

#[test]
fn replicas_of_one_release_do_not_share_its_namespaces_out() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &["a", "b"]), ("two", "first", &["a", "b"])]);
    // Both have read that everything is free; one is faster in the first namespace and the other in the second.
    for candidate in [&mut one, &mut two] {
        assert!((0..2).all(|_| candidate.step(&mut server)));
    }
    assert!(one.step(&mut server));
    two.settle(&mut server);
    assert_eq!((server.holder("a"), server.holder("b")), ("one".to_owned(), "two".to_owned()));
    pass(25, &mut server, &mut [&mut one, &mut two]);
    assert!(one.works_in("a") && one.works_in("b") && !two.leads());
    assert_eq!(two.status().check(), Ok(()));
}

#[test]
fn an_operator_of_all_namespaces_leads_at_once_and_hands_over_at_once() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &[]), ("two", "first", &[])]);
    one.settle(&mut server);
    assert!(one.leads());
    pass(5, &mut server, &mut [&mut one, &mut two]);
    assert_eq!((two.leads(), two.status().check()), (false, Ok(())));
    one.end(&mut server);
    pass(2, &mut server, &mut [&mut two]);
    assert!(two.leads());
}

#[test]
fn an_operator_of_all_namespaces_keeps_a_claim_from_leading() {
    let mut server = Server::default();
    let [mut all, mut one] = candidates([("all", "first", &[]), ("one", "second", &["a", "b"])]);
    all.settle(&mut server);
    for _ in 0..120 {
        pass(1, &mut server, &mut [&mut one, &mut all]);
        assert!(all.leads() && !one.leads());
    }
    assert!(one.waits_for().contains(&("first".to_owned(), "a".to_owned())), "{:?}", one.status());
    all.end(&mut server);
    pass(40, &mut server, &mut [&mut one]);
    assert!(one.leads());
}

#[test]
fn who_already_leads_in_a_namespace_goes_before_an_operator_of_all() {
    let mut server = Server::default();
    let [mut one, mut all] = candidates([("one", "first", &["a"]), ("all", "second", &[])]);
    pass(17, &mut server, &mut [&mut one]);
    for _ in 0..60 {
        pass(1, &mut server, &mut [&mut one, &mut all]);
        assert!(one.leads() && !all.works_in("a") && all.works_in("b"));
    }
    assert_eq!((all.without(), all.status().check()), (vec!["a".to_owned()], Ok(())));
    one.end(&mut server);
    pass(20, &mut server, &mut [&mut all]);
    assert!(all.works_in("a") && all.without().is_empty());
}

#[test]
fn who_comes_back_to_a_lease_that_was_cleared_does_not_lead() {
    let mut server = Server::default();
    let [mut one, mut all] = candidates([("one", "first", &["a"]), ("all", "second", &[])]);
    pass(17, &mut server, &mut [&mut one]);
    pass(40, &mut server, &mut [&mut all]);
    assert!(all.works_in("a"), "the other has not renewed for 30 s");
    one.wait(Duration::from_secs(40));
    one.settle(&mut server);
    assert!(!one.leads());
    pass(60, &mut server, &mut [&mut one, &mut all]);
    assert!(all.works_in("a") && !one.leads());
    assert_eq!(one.waits_for(), waits("second", "a"));
}

#[test]
fn of_two_operators_of_all_namespaces_one_leads() {
    let mut server = Server::default();
    let [mut one, mut two] = candidates([("one", "first", &[]), ("two", "second", &[])]);
    for _ in 0..10 {
        pass(1, &mut server, &mut [&mut one, &mut two]);
        assert!(!(one.leads() && two.leads()));
    }
    assert!(one.leads());
    assert_eq!(two.waits_for().first().map(|(release, _)| release.as_str()), Some("first"));
    one.end(&mut server);
    pass(40, &mut server, &mut [&mut two]);
    assert!(two.leads());
}

#[test]
fn a_release_that_changes_its_scope_hands_over_to_itself() {
    let scopes: [&[&str]; 3] = [&["a", "b"], &[], &["b", "c"]];
    for (before, after) in scopes.iter().zip(scopes.iter().cycle().skip(1)) {
        let mut server = Server::default();
        let [mut old, mut new] = candidates([("old", "first", before), ("new", "first", after)]);
        pass(17, &mut server, &mut [&mut old]);
        for _ in 0..20 {
            pass(1, &mut server, &mut [&mut old, &mut new]);
            for namespace in ["a", "b", "c"] {
                let is_new = new.works_in(namespace) && (after.is_empty() || after.contains(&namespace));
                let is_old = old.works_in(namespace) && (before.is_empty() || before.contains(&namespace));
                assert!(!(is_old && is_new), "{namespace} from {before:?} to {after:?}");
            }
            assert!(old.leads());
        }
        assert_eq!(new.status().check(), Ok(()), "a rollout waits until the new replica is ready");
        old.end(&mut server);
        pass(40, &mut server, &mut [&mut new]);
        let everywhere = ["a", "b", "c"].into_iter().filter(|some| after.is_empty() || after.contains(some));
        assert!(everywhere.into_iter().all(|namespace| new.works_in(namespace)), "from {before:?} to {after:?}");
    }
}

#[test]
fn a_list_that_fails_does_not_renew() {
    let mut server = Server::default();
    let [mut all] = candidates([("all", "first", &[])]);
    all.settle(&mut server);
    for _ in 0..10 {
        all.wait(Duration::from_secs(1));
        while let step @ (super::ScopeStep::List | super::ScopeStep::Own(..)) = all.next() {
            let is_list = step == super::ScopeStep::List;
            let answer = (!is_list).then(|| all.carry_out(&step, &mut server));
            all.take_in(step, all.clock, answer);
        }
    }
    assert!(!all.leads(), "the Lease was renewed, but nobody looked for others");
}

#[test]
fn a_namespace_that_is_not_to_be_had_is_done_without() {
    let mut server = Server::default();
    let [mut one] = candidates([("one", "first", &["a", "gone"])]);
    for _ in 0..20 {
        one.wait(Duration::from_secs(1));
        while let super::ScopeStep::Own(number, step) = one.next() {
            if number == 1 {
                one.elector.denied(number, one.clock, "the namespace is not there");
                continue;
            }
            let step = super::ScopeStep::Own(number, step);
            let answer = one.carry_out(&step, &mut server);
            one.take_in(step, one.clock, Some(answer));
        }
    }
    assert!(one.leads());
    assert!(one.works_in("a") && !one.works_in("gone"));
    assert_eq!(one.without(), ["gone"]);
    pass(40, &mut server, &mut [&mut one]);
    assert!(one.works_in("gone") && one.without().is_empty(), "it is back");
}

#[test]
fn the_last_of_many_namespaces_is_renewed_as_the_first_is() {
    let mut server = Server::default();
    let names: Vec<String> = (0..100).map(|number| format!("n{number:02}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut one = Candidate::new(Instant::now(), "one", "first", &names);
    // Each request takes its time, and all of them together more than the pause between two renewals.
    for _ in 0..2_000 {
        if !one.step(&mut server) {
            one.wait(Duration::from_millis(100));
        }
        one.wait(Duration::from_millis(30));
    }
    let idle: Vec<&&str> = names.iter().filter(|name| !one.works_in(name)).collect();
    assert!(idle.is_empty(), "{idle:?}");
}
