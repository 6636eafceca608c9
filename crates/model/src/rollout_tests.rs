use proptest::prelude::*;

use super::*;

const PACE: Pace = Pace { max_unavailable: 1, pause: Duration::ZERO, deadline: Duration::from_secs(60) };

#[allow(clippy::unnecessary_wraps, reason = "a slot may have no pod")]
fn ready(change: Change) -> Option<Slot> {
    let ready_for = Duration::from_secs(100);
    Some(Slot { change, is_ready: true, ready_for, is_terminating: false, progress: None, refused: None })
}

fn with(slot: Option<Slot>, alter: impl FnOnce(&mut Slot)) -> Option<Slot> {
    slot.map(|mut slot| {
        alter(&mut slot);
        slot
    })
}

fn away(change: Change) -> Option<Slot> {
    with(ready(change), |slot| slot.is_ready = false)
}

fn begun(progress: Progress) -> Option<Slot> {
    with(ready(Change::None), |slot| slot.progress = Some(progress))
}

#[test]
fn the_last_pod_is_proven_and_then_changed() {
    let slots = |proof| [ready(Change::InPlace(Proof::Missing)), ready(Change::InPlace(proof))];
    assert_eq!(next(&slots(Proof::Missing), PACE), Step::Prove(1));
    assert_eq!(next(&slots(Proof::UnderWay), PACE), Step::Wait(None));
    assert_eq!(next(&slots(Proof::Good), PACE), Step::Change(1));
    assert_eq!(next(&slots(Proof::Bad("no such image".into())), PACE), Step::Stop("no such image".into()));
}

#[test]
fn nobody_else_goes_while_one_is_away() {
    let good = || ready(Change::InPlace(Proof::Good));
    let waiting = begun(Progress::Waiting(Duration::from_secs(20)));
    assert_eq!(next(&[good(), waiting], PACE), Step::Wait(Some(Duration::from_secs(40))));
    assert_eq!(next(&[good(), None], PACE), Step::Wait(None));
    assert_eq!(next(&[good(), away(Change::None)], PACE), Step::Wait(None));
    let two = Pace { max_unavailable: 2, ..PACE };
    assert_eq!(next(&[good(), away(Change::None)], two), Step::Change(0));
}

#[test]
fn one_that_is_away_anyway_is_changed_first_and_at_once() {
    let slots = [away(Change::InPlace(Proof::Good)), ready(Change::InPlace(Proof::Good))];
    assert_eq!(next(&slots, PACE), Step::Change(0));
    let slots = [away(Change::Recreate), None, ready(Change::Recreate)];
    assert_eq!(next(&slots, PACE), Step::Recreate(0));
}

#[test]
fn what_needs_no_restart_waits_for_nobody() {
    assert_eq!(next(&[None, ready(Change::Live), away(Change::None)], PACE), Step::Change(1));
    let refused = with(ready(Change::InPlace(Proof::Good)), |slot| slot.refused = Some("no".into()));
    assert_eq!(next(&[ready(Change::Live), refused], PACE), Step::Change(0));
}

#[test]
fn one_that_does_not_come_back_is_changed_back_and_the_rollout_stops() {
    let late = begun(Progress::Waiting(Duration::from_secs(60)));
    assert!(matches!(next(&[ready(Change::InPlace(Proof::Good)), late], PACE), Step::Revert(1, _)));
    let failed = begun(Progress::Failed("it crashes".into()));
    assert_eq!(next(&[ready(Change::Recreate), failed], PACE), Step::Revert(1, "it crashes".into()));
    let refused = with(ready(Change::InPlace(Proof::Good)), |slot| slot.refused = Some("it crashes".into()));
    assert_eq!(next(&[ready(Change::InPlace(Proof::Good)), refused], PACE), Step::Stop("it crashes".into()));
}

#[test]
fn a_change_that_is_in_force_is_confirmed_before_the_next_one_begins() {
    let slots = [ready(Change::InPlace(Proof::Good)), begun(Progress::Confirmed)];
    assert_eq!(next(&slots, PACE), Step::Confirm(1));
}

#[test]
fn the_next_one_waits_for_the_pause() {
    let pace = Pace { pause: Duration::from_secs(120), ..PACE };
    let slots = [ready(Change::InPlace(Proof::Good)), ready(Change::None)];
    assert_eq!(next(&slots, pace), Step::Wait(Some(Duration::from_secs(20))));
    let slots = [away(Change::InPlace(Proof::Good)), ready(Change::None)];
    assert_eq!(next(&slots, pace), Step::Change(0), "it serves nobody");
}

#[test]
fn it_is_done_when_all_pods_are_there_as_desired() {
    assert_eq!(next(&[], PACE), Step::Done);
    assert_eq!(next(&[ready(Change::None), away(Change::None)], PACE), Step::Done, "readiness is not a rollout's");
    assert_eq!(next(&[ready(Change::None), None], PACE), Step::Wait(None));
    let terminating = with(ready(Change::None), |slot| slot.is_terminating = true);
    assert_eq!(next(&[terminating], PACE), Step::Wait(None));
}

/// A cluster that does what it is told, one step at a time.
fn carry_out(slots: &mut [Option<Slot>], step: &Step) {
    let slot = |slots: &mut [Option<Slot>], index: usize, alter: fn(&mut Slot)| {
        let pod = slots[index].as_mut().unwrap();
        alter(pod);
    };
    match step {
        Step::Prove(index) => slot(slots, *index, |pod| pod.change = Change::InPlace(Proof::Good)),
        Step::Change(index) => slot(slots, *index, |pod| {
            let is_live = pod.change == Change::Live;
            pod.change = Change::None;
            pod.progress = (!is_live).then_some(Progress::Confirmed);
        }),
        Step::Confirm(index) => slot(slots, *index, |pod| {
            pod.progress = None;
            pod.is_ready = true;
        }),
        Step::Recreate(index) => slot(slots, *index, |pod| {
            pod.change = Change::None;
            pod.is_ready = false;
        }),
        Step::Wait(_) => {
            // Whatever is away comes back.
            for pod in slots.iter_mut() {
                match pod {
                    None => *pod = ready(Change::None),
                    Some(pod) if pod.is_terminating => *pod = ready(Change::None).unwrap(),
                    Some(pod) => {
                        pod.is_ready |= pod.change == Change::None;
                        if pod.change == Change::InPlace(Proof::UnderWay) {
                            pod.change = Change::InPlace(Proof::Good);
                        }
                    }
                }
            }
        }
        Step::Done | Step::Stop(_) | Step::Revert(..) => {}
    }
}

fn any_slot() -> impl Strategy<Value = Option<Slot>> {
    let change = prop_oneof![
        Just(Change::None),
        Just(Change::Live),
        Just(Change::InPlace(Proof::Missing)),
        Just(Change::InPlace(Proof::UnderWay)),
        Just(Change::InPlace(Proof::Good)),
        Just(Change::Recreate),
    ];
    let slot = (change, any::<bool>(), any::<bool>()).prop_map(|(change, is_ready, is_terminating)| Slot {
        change,
        is_ready,
        ready_for: Duration::from_secs(100),
        is_terminating,
        progress: None,
        refused: None,
    });
    prop::option::of(slot)
}

proptest! {
    #[test]
    fn every_rollout_ends_and_never_takes_more_away_than_it_may(
        mut slots in prop::collection::vec(any_slot(), 0..6),
        max_unavailable in 1_usize..4,
    ) {
        let pace = Pace { max_unavailable, ..PACE };
        for _ in 0..100 {
            let step = next(&slots, pace);
            let unavailable = |slots: &[Option<Slot>]| {
                slots.iter().filter(|slot| !slot.as_ref().is_some_and(is_available)).count()
            };
            let before = unavailable(&slots);
            carry_out(&mut slots, &step);
            let after = unavailable(&slots);
            prop_assert!(after <= before.max(max_unavailable), "{step:?}: {before} then {after}");
            if step == Step::Done {
                prop_assert!(slots.iter().all(|slot| slot.as_ref().is_some_and(|pod| pod.change == Change::None)));
                return Ok(());
            }
        }
        prop_assert!(false, "it never ends: {slots:?}");
    }
}
