//! What a rollout does next, pod by pod: a pure function of what is observed. Nothing is remembered between two calls; what
//! has to outlive an operator is written on the pods.

use std::time::Duration;

/// What separates a pod from what is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Nothing.
    None,
    /// Something that can be changed while the pod stays, with its memory.
    InPlace,
    /// The same, with an image that has to be proven on the pod's node first: the kubelet stops the old container before
    /// it pulls.
    Image(Proof),
    /// Something that takes another pod.
    Recreate,
}

/// Whether an image runs on a node.
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

/// A pod of a slot, as far as a rollout looks at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pod {
    /// What separates it from what is wanted.
    pub change: Change,
    /// Whether it serves.
    pub is_ready: bool,
    /// For how long it has.
    pub ready_for: Duration,
    /// It is about to go.
    pub is_terminating: bool,
    /// For how long our last change is under way; none if it is over, or there was none.
    pub changing_for: Option<Duration>,
    /// It was changed to what is wanted, did not come back, and was changed back, for this reason.
    pub refused: Option<String>,
}

/// How fast it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// How many pods may be away at once; at least one.
    pub max_unavailable: usize,
    /// How long a pod has to serve before the next one is changed.
    pub pause: Duration,
    /// How long a changed pod may take to serve again.
    pub deadline: Duration,
}

/// The next step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// All pods are as wanted.
    Done,
    /// Nothing, until something changes or this time has passed.
    Wait(Option<Duration>),
    /// Try the image on the node of this slot's pod.
    Prove(usize),
    /// Change the pod of this slot in place.
    Change(usize),
    /// Replace the pod of this slot.
    Recreate(usize),
    /// Change the pod of this slot back: it does not come back as it is.
    Revert(usize),
    /// Nothing more until something else is wanted, for this reason.
    Stop(String),
}

/// Decides the next step. `slots` are the pods by ordinal; none where there is none yet.
pub fn next(slots: &[Option<Pod>], pace: Pace) -> Step {
    let pods = || slots.iter().enumerate().filter_map(|(slot, pod)| Some((slot, pod.as_ref()?)));
    // One that does not come back first: it is away, and what it has in memory waits.
    if let Some((slot, _)) = pods().find(|(_, pod)| pod.changing_for.is_some_and(|since| since >= pace.deadline)) {
        return Step::Revert(slot);
    }
    let refused = pods().find_map(|(_, pod)| pod.refused.clone());
    let unproven = pods().find_map(|(_, pod)| match &pod.change {
        Change::Image(Proof::Bad(why)) => Some(why.clone()),
        _ => None,
    });
    if let Some(why) = refused.or(unproven) {
        return Step::Stop(why);
    }
    let Some((slot, pod)) = candidate(slots) else {
        return if pods().all(|(_, pod)| pod.change == Change::None) && is_settled(slots) { Step::Done } else { Step::Wait(None) };
    };
    match room(slots, pod, pace) {
        Room::None(wait) => Step::Wait(wait),
        Room::Enough => match &pod.change {
            Change::Image(Proof::Missing) => Step::Prove(slot),
            Change::Image(Proof::UnderWay) => Step::Wait(None),
            Change::Recreate => Step::Recreate(slot),
            _ => Step::Change(slot),
        },
    }
}

/// The pod to change next: one that does not serve anyway, else the last one, as the StatefulSet controller does.
fn candidate(slots: &[Option<Pod>]) -> Option<(usize, &Pod)> {
    let pending = || {
        slots.iter().enumerate().rev().filter_map(|(slot, pod)| Some((slot, pod.as_ref()?))).filter(|(_, pod)| {
            pod.change != Change::None && !pod.is_terminating && pod.changing_for.is_none()
        })
    };
    pending().find(|(_, pod)| !pod.is_ready).or_else(|| pending().next())
}

enum Room {
    Enough,
    None(Option<Duration>),
}

/// Whether the pod may be away now.
fn room(slots: &[Option<Pod>], pod: &Pod, pace: Pace) -> Room {
    let away = slots.iter().filter(|slot| slot.as_ref().is_none_or(|pod| !serves(pod))).count();
    // One that is away already takes nothing from anybody.
    if serves(pod) && away >= pace.max_unavailable.max(1) {
        return Room::None(None);
    }
    let fresh = slots.iter().flatten().filter(|pod| pod.change == Change::None && serves(pod));
    match fresh.filter_map(|pod| pace.pause.checked_sub(pod.ready_for)).filter(|left| !left.is_zero()).max() {
        Some(left) if serves(pod) => Room::None(Some(left)),
        _ => Room::Enough,
    }
}

fn serves(pod: &Pod) -> bool {
    pod.is_ready && !pod.is_terminating && pod.changing_for.is_none()
}

fn is_settled(slots: &[Option<Pod>]) -> bool {
    slots.iter().all(|slot| slot.as_ref().is_some_and(|pod| pod.changing_for.is_none() && !pod.is_terminating))
}
