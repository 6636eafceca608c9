//! The work queue of all controllers, with client-go's rules: an object waits once however often it is asked for, and
//! is never reconciled twice at the same time; one that changes while it is reconciled waits again.
//!
//! kube's own `Controller` has one queue and one concurrency a kind and namespace; here one bound holds for all.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, HashSet, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// An object to be reconciled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// So many that are passed over may wait.
const FEW: usize = 64;

/// Objects that wait to be reconciled.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Ready to be reconciled, in order. One that was forgotten meanwhile is passed over.
    ready: VecDeque<Request>,
    /// Everything that is in `ready`, or was asked for again while it is being reconciled.
    dirty: HashSet<Request>,
    /// Being reconciled.
    active: HashSet<Request>,
    /// When an object is to be asked for; the earliest time counts.
    delayed: HashMap<Request, Instant>,
    /// The same in the order of time. One whose time is not that of `delayed` any more is passed over.
    due: BinaryHeap<Reverse<(Instant, Request)>>,
    /// How many of `dirty` are of a kind.
    depths: BTreeMap<&'static str, usize>,
}

impl State {
    fn add(&mut self, request: Request) {
        self.delayed.remove(&request);
        if self.mark(&request) && !self.active.contains(&request) {
            self.ready.push_back(request);
        }
    }

    /// Notes that an object is asked for; whether it was not before.
    fn mark(&mut self, request: &Request) -> bool {
        let is_new = self.dirty.insert(request.clone());
        if is_new {
            *self.depths.entry(request.kind).or_default() += 1;
        }
        is_new
    }

    /// Notes that an object is asked for no more; whether it was before.
    fn unmark(&mut self, request: &Request) -> bool {
        let was_marked = self.dirty.remove(request);
        if was_marked && let Some(depth) = self.depths.get_mut(request.kind) {
            *depth = depth.saturating_sub(1);
        }
        was_marked
    }

    fn add_at(&mut self, request: Request, at: Instant) {
        match self.delayed.get(&request) {
            Some(earlier) if *earlier <= at => {}
            _ => {
                self.delayed.insert(request.clone(), at);
                self.due.push(Reverse((at, request)));
            }
        }
        // What is passed over must not pile up behind something that is due earlier.
        if self.due.len() > 2 * self.delayed.len() + FEW {
            self.due = self.delayed.iter().map(|(request, at)| Reverse((*at, request.clone()))).collect();
        }
    }

    /// Forgets that an object is asked for; nobody takes from the queue of a replica that does not lead.
    fn drop_waiting(&mut self, request: &Request) {
        self.unmark(request);
        if self.ready.len() > 2 * self.dirty.len() + FEW {
            let Self { ready, dirty, .. } = self;
            ready.retain(|waiting| dirty.contains(waiting));
        }
    }

    /// Moves what is due to the queue; when the next one is.
    fn promote(&mut self, now: Instant) -> Option<Instant> {
        loop {
            let Reverse((at, request)) = self.due.peek()?;
            let is_current = self.delayed.get(request) == Some(at);
            if is_current && *at > now {
                return Some(*at);
            }
            let Reverse((_, request)) = self.due.pop()?;
            if is_current {
                self.add(request);
            }
        }
    }

    fn take(&mut self) -> Option<Request> {
        loop {
            let request = self.ready.pop_front()?;
            // One that is being reconciled is put back when that is done.
            if !self.active.contains(&request) && self.unmark(&request) {
                self.active.insert(request.clone());
                return Some(request);
            }
        }
    }
}

impl Queue {
    /// Asks for an object now.
    pub fn add(&self, request: Request) {
        self.state().add(request);
        self.changed.notify_one();
    }

    /// Asks for an object at a time, unless it is asked for earlier.
    pub fn add_at(&self, request: Request, at: Instant) {
        let mut state = self.state();
        if state.dirty.contains(&request) {
            return;
        }
        state.add_at(request, at);
        drop(state);
        self.changed.notify_one();
    }

    /// The next object; it has to be given back with [`Queue::done`].
    pub async fn next(&self) -> Request {
        loop {
            let changed = self.changed.notified();
            let (next, due) = {
                let mut state = self.state();
                let due = state.promote(Instant::now());
                (state.take(), due)
            };
            if let Some(request) = next {
                return request;
            }
            match due {
                Some(due) => {
                    tokio::select! {
                        () = tokio::time::sleep_until(due) => {}
                        () = changed => {}
                    }
                }
                None => changed.await,
            }
        }
    }

    /// An object was reconciled: it may be again.
    pub fn done(&self, request: &Request) {
        let mut state = self.state();
        state.active.remove(request);
        if state.dirty.contains(request) {
            state.ready.push_back(request.clone());
        }
        drop(state);
        self.changed.notify_one();
    }

    /// An object was deleted: it waits no more. One that is being reconciled is reconciled again, so that nothing stays
    /// that is noted of it until then.
    pub fn forget(&self, request: &Request) {
        let mut state = self.state();
        state.delayed.remove(request);
        if state.active.contains(request) {
            state.mark(request);
        } else {
            state.drop_waiting(request);
        }
    }

    /// How many objects of each kind wait.
    pub fn depths(&self) -> BTreeMap<&'static str, usize> {
        self.state().depths.clone()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn request(name: &str) -> Request {
        Request { kind: "Widget", namespace: "shop".into(), name: name.into() }
    }

    #[tokio::test]
    async fn an_object_waits_once_and_is_never_worked_on_twice() {
        let queue = Queue::default();
        queue.add(request("a"));
        queue.add(request("a"));
        queue.add(request("b"));
        assert_eq!(queue.depths()["Widget"], 2);
        assert_eq!(queue.next().await, request("a"));
        queue.add(request("a"));
        assert_eq!(queue.next().await, request("b"), "a is being reconciled");
        queue.done(&request("a"));
        assert_eq!(queue.next().await, request("a"), "it was asked for meanwhile");
        queue.done(&request("a"));
        queue.done(&request("b"));
        assert!(queue.depths()["Widget"] == 0 && queue.state().active.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn a_delayed_object_comes_when_it_is_due_or_earlier_if_asked_for() {
        let queue = Queue::default();
        let start = Instant::now();
        queue.add_at(request("late"), start + Duration::from_secs(60));
        queue.add_at(request("late"), start + Duration::from_secs(5));
        queue.add_at(request("late"), start + Duration::from_secs(30));
        assert_eq!(queue.next().await, request("late"));
        assert_eq!(start.elapsed(), Duration::from_secs(5));
        queue.done(&request("late"));
        queue.add_at(request("late"), Instant::now() + Duration::from_secs(3600));
        queue.add(request("late"));
        assert_eq!(queue.next().await, request("late"));
        assert!(start.elapsed() < Duration::from_secs(6), "asked for now");
        assert!(queue.state().delayed.is_empty(), "and not once more later");
    }

    #[tokio::test]
    async fn a_deleted_object_waits_no_more() {
        let queue = Queue::default();
        queue.add(request("a"));
        queue.add_at(request("b"), Instant::now());
        queue.forget(&request("a"));
        queue.forget(&request("b"));
        queue.add(request("c"));
        assert_eq!(queue.next().await, request("c"));
        queue.forget(&request("c"));
        queue.done(&request("c"));
        assert_eq!(queue.next().await, request("c"), "what its reconcile noted meanwhile has to go");
    }

    #[tokio::test]
    async fn what_is_passed_over_does_not_pile_up() {
        let queue = Queue::default();
        let now = Instant::now();
        queue.add_at(request("soon"), now + Duration::from_secs(60));
        for _ in 0..10_000 {
            queue.add(request("busy"));
            let busy = queue.next().await;
            queue.done(&busy);
            queue.add_at(busy, now + Duration::from_secs(3600));
        }
        for number in 0..10_000 {
            queue.add(request(&format!("brief-{number}")));
            queue.forget(&request(&format!("brief-{number}")));
        }
        let state = queue.state();
        assert!(state.due.len() < 200 && state.ready.len() < 200, "{} and {}", state.due.len(), state.ready.len());
        assert_eq!(state.delayed.len(), 2);
    }

    #[tokio::test]
    async fn an_object_that_was_forgotten_and_made_anew_is_still_worked_on_once_at_a_time() {
        let queue = Queue::default();
        queue.add(request("a"));
        queue.forget(&request("a"));
        queue.add(request("a"));
        assert_eq!(queue.next().await, request("a"));
        queue.add(request("a"));
        queue.add(request("b"));
        assert_eq!(queue.next().await, request("b"), "a is being reconciled");
        queue.done(&request("a"));
        assert_eq!(queue.next().await, request("a"));
        assert_eq!(queue.depths()["Widget"], 0);
    }
}
