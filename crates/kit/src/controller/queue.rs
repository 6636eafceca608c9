//! The work queue of all controllers, with client-go's rules: an object waits once however often it is asked for, and
//! is never reconciled twice at the same time; one that changes while it is reconciled waits again.
//!
//! kube's own `Controller` has one queue and one concurrency a kind and namespace; here one bound holds for all.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::time::Instant;

/// An object to be reconciled.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Request {
    /// Its kind.
    pub kind: &'static str,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}/{}", self.kind, self.namespace, self.name)
    }
}

/// Objects that wait to be reconciled.
#[derive(Debug, Default)]
pub struct Queue {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// Ready to be reconciled, in order.
    ready: VecDeque<Request>,
    /// Everything that is in `ready`, or was asked for again while it is being reconciled.
    dirty: BTreeSet<Request>,
    /// Being reconciled.
    active: BTreeSet<Request>,
    /// To be asked for at a time; the earliest one counts.
    delayed: BTreeMap<Request, Instant>,
}

impl State {
    fn add(&mut self, request: Request) {
        self.delayed.remove(&request);
        if self.dirty.insert(request.clone()) && !self.active.contains(&request) {
            self.ready.push_back(request);
        }
    }

    /// Moves what is due to the queue; when the next one is.
    fn promote(&mut self, now: Instant) -> Option<Instant> {
        let due: Vec<Request> = self.delayed.iter().filter(|(_, at)| **at <= now).map(|(r, _)| r.clone()).collect();
        for request in due {
            self.add(request);
        }
        self.delayed.values().min().copied()
    }

    fn take(&mut self) -> Option<Request> {
        let request = self.ready.pop_front()?;
        self.dirty.remove(&request);
        self.active.insert(request.clone());
        Some(request)
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
        let earliest = state.delayed.entry(request).or_insert(at);
        *earliest = at.min(*earliest);
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
            state.dirty.insert(request.clone());
        } else if state.dirty.remove(request) {
            state.ready.retain(|waiting| waiting != request);
        }
    }

    /// How many objects of each kind wait.
    pub fn depths(&self) -> HashMap<&'static str, usize> {
        let mut depths = HashMap::new();
        for request in &self.state().dirty {
            *depths.entry(request.kind).or_default() += 1;
        }
        depths
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
        assert!(queue.depths().is_empty() && queue.state().active.is_empty());
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
}
