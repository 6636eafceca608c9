//! How far a replica has come: ready, and a little later surely reached by whoever calls.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use jiff::Timestamp;

/// Since when a replica is ready, and what that means.
#[derive(Debug)]
pub(super) struct State {
    is_ready: Arc<AtomicBool>,
    reach: Duration,
    callable_at: Option<Timestamp>,
}

impl State {
    pub(super) fn new(is_ready: Arc<AtomicBool>, reach: Duration) -> Self {
        Self { is_ready, reach, callable_at: None }
    }

    /// It is ready, from now on.
    pub(super) fn set_ready(&mut self, now: Timestamp) {
        if !self.is_ready.swap(true, Ordering::Relaxed) {
            tracing::info!("the webhooks can be called");
        }
        self.callable_at.get_or_insert_with(|| now.checked_add(self.reach).unwrap_or(now));
    }

    /// Whether the API server reaches it, so that it may be told to call.
    pub(super) fn is_callable(&self, now: Timestamp) -> bool {
        self.callable_at.is_some_and(|at| now >= at)
    }

    /// When that is, if it was still to come when it was `asked` whether it is: the answer may be in the past by now.
    pub(super) fn callable_at(&self, asked: Timestamp) -> Option<Timestamp> {
        self.callable_at.filter(|at| asked < *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_replica_is_called_a_while_after_it_is_ready_and_that_time_does_not_move() {
        let mut state = State::new(Arc::default(), Duration::from_secs(4));
        let at = |seconds: i64| Timestamp::from_second(1_800_000_000 + seconds).unwrap();
        assert!(!state.is_callable(at(100)) && state.callable_at(at(100)).is_none());
        state.set_ready(at(0));
        state.set_ready(at(3));
        assert!(!state.is_callable(at(3)));
        assert_eq!(state.callable_at(at(3)), Some(at(4)));
        assert!(state.is_callable(at(4)) && state.callable_at(at(4)).is_none());
    }
}
