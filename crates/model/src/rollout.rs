//! What a rollout does next, pod by pod: a pure function of what is observed. Nothing is remembered between two calls; what
//! has to outlive an operator is written on the pods.

use std::time::Duration;

/// What separates a pod from what is desired.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// Something that can be changed without a restart, at any time.
    Live,
    /// Something that takes a restart in place: the pod stays, with its memory.
    InPlace(Proof),
    /// Something that takes another pod.
    Recreate,
}

/// Whether what is desired starts on a pod's node. The kubelet stops a container before it pulls the next image, so that
/// is tried before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Proof {
    /// Nobody has tried yet.
    Missing,
    /// It is being tried.
    UnderWay,
    /// It does.
    Good,
    /// It does not, for this reason.
    Bad(String),
}

/// How far a change is that was made to a pod and has not been confirmed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Progress {
    /// The pod is not back, for so long.
    Waiting(Duration),
    /// It is in force.
    Confirmed,
    /// It will not be, for this reason.
    Failed(String),
}

/// A pod of a slot, as far as a rollout looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// What separates it from what is desired.
    pub change: Change,
    /// Whether it is ready.
    pub is_ready: bool,
    /// For how long it has been.
    pub ready_for: Duration,
    /// It is being deleted.
    pub is_terminating: bool,
    /// A change to what is desired that was begun.
    pub progress: Option<Progress>,
    /// It was changed to what is desired, did not come back, and was changed back, for this reason.
    pub refused: Option<String>,
}

/// How fast it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many pods may be unavailable at once; at least one.
    pub max_unavailable: usize,
    /// How long a pod has to be ready before the next one is changed.
    pub pause: Duration,
    /// How long a changed pod may take to be ready again.
    pub deadline: Duration,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// All pods are as desired.
    Done,
    /// Nothing, until something changes or this time has passed.
    Wait(Option<Duration>),
    /// Try on the node of this slot's pod whether what is desired starts.
    Prove(usize),
    /// Change the pod of this slot in place.
    Change(usize),
    /// The change of this slot's pod is in force: write that down.
    Confirm(usize),
    /// Replace the pod of this slot.
    Recreate(usize),
    /// Change the pod of this slot back, for this reason: it does not come back as it is.
    Revert(usize, String),
    /// Nothing more until something else is desired, for this reason.
    Stop(String),
}

/// Decides the next step. `slots` are the pods by ordinal; none where there is none at the moment.
pub fn next(slots: &[Option<Slot>], pace: Pace) -> Step {
    if let Some(step) = finish(slots, pace) {
        return step;
    }
    if let Some((slot, _)) = pods(slots).find(|(_, pod)| pod.change == Change::Live && !pod.is_terminating) {
        return Step::Change(slot);
    }
    if let Some(why) = pods(slots).find_map(|(_, pod)| refusal(pod)) {
        return Step::Stop(why.to_owned());
    }
    let Some((slot, pod)) = candidate(slots) else {
        return if is_settled(slots) { Step::Done } else { Step::Wait(time_left(slots, pace)) };
    };
    match room(slots, pod, pace) {
        Room::None(wait) => Step::Wait(wait.or_else(|| time_left(slots, pace))),
        Room::Enough => match &pod.change {
            Change::InPlace(Proof::Missing) => Step::Prove(slot),
            Change::InPlace(Proof::UnderWay) => Step::Wait(None),
            Change::Recreate => Step::Recreate(slot),
            _ => Step::Change(slot),
        },
    }
}

fn pods(slots: &[Option<Slot>]) -> impl DoubleEndedIterator<Item = (usize, &Slot)> {
    slots.iter().enumerate().filter_map(|(slot, pod)| Some((slot, pod.as_ref()?)))
}

/// What was begun comes first: a pod that does not come back is away, and what it has in memory waits.
fn finish(slots: &[Option<Slot>], pace: Pace) -> Option<Step> {
    let step = |(slot, pod): (usize, &Slot)| match pod.progress.as_ref()? {
        Progress::Failed(why) => Some(Step::Revert(slot, why.clone())),
        Progress::Waiting(since) if *since >= pace.deadline => {
            let why = format!("it was not ready within {} s after it was changed", pace.deadline.as_secs());
            Some(Step::Revert(slot, why))
        }
        _ => None,
    };
    let confirmed =
        |(slot, pod): (usize, &Slot)| (pod.progress == Some(Progress::Confirmed)).then_some(Step::Confirm(slot));
    pods(slots).find_map(step).or_else(|| pods(slots).find_map(confirmed))
}

fn refusal(pod: &Slot) -> Option<&str> {
    match &pod.change {
        Change::InPlace(Proof::Bad(why)) => Some(why),
        _ => pod.refused.as_deref(),
    }
}

/// When the deadline of what is under way has passed, if nothing happens before.
fn time_left(slots: &[Option<Slot>], pace: Pace) -> Option<Duration> {
    let left = pods(slots).filter_map(|(_, pod)| match pod.progress {
        Some(Progress::Waiting(since)) => pace.deadline.checked_sub(since),
        _ => None,
    });
    left.min()
}

/// The pod to change next: one that is not ready anyway, else the last one, as the StatefulSet controller does.
fn candidate(slots: &[Option<Slot>]) -> Option<(usize, &Slot)> {
    let pending = || {
        let is_pending = |pod: &Slot| pod.change != Change::None && !pod.is_terminating && pod.progress.is_none();
        pods(slots).rev().filter(move |(_, pod)| is_pending(pod))
    };
    pending().find(|(_, pod)| !pod.is_ready).or_else(|| pending().next())
}

enum Room {
    Enough,
    None(Option<Duration>),
}

/// Whether the pod may be unavailable now.
fn room(slots: &[Option<Slot>], pod: &Slot, pace: Pace) -> Room {
    // One that is unavailable already takes nothing from anybody.
    if !is_available(pod) {
        return Room::Enough;
    }
    let unavailable = slots.iter().filter(|slot| !slot.as_ref().is_some_and(is_available)).count();
    if unavailable >= pace.max_unavailable.max(1) {
        return Room::None(None);
    }
    let changed = slots.iter().flatten().filter(|pod| pod.change == Change::None && is_available(pod));
    let left = changed.filter_map(|pod| pace.pause.checked_sub(pod.ready_for)).filter(|left| !left.is_zero()).max();
    left.map_or(Room::Enough, |left| Room::None(Some(left)))
}

fn is_available(pod: &Slot) -> bool {
    pod.is_ready && !pod.is_terminating && pod.progress.is_none()
}

fn is_settled(slots: &[Option<Slot>]) -> bool {
    let is_settled = |pod: &Slot| pod.change == Change::None && pod.progress.is_none() && !pod.is_terminating;
    slots.iter().all(|slot| slot.as_ref().is_some_and(is_settled))
}

#[cfg(test)]
#[path = "rollout_tests.rs"]
mod tests;
