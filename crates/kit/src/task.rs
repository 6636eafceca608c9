//! Background tasks that nobody waits for: one that panics or ends takes the process down with a message, instead of
//! leaving an operator that looks healthy and does nothing.

use std::sync::Arc;

use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::task::AbortHandle;
use tokio_util::sync::CancellationToken;

use crate::shutdown::Shutdown;

/// Spawns tasks that have to run as long as the process does; clones are the same group.
#[derive(Debug, Clone)]
pub struct Tasks {
    failures: UnboundedSender<TaskEnded>,
    cancelled: CancellationToken,
    // Ends all tasks with the last handle on the group.
    _guard: Arc<tokio_util::sync::DropGuard>,
}

/// A task that ended although it should not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TaskEnded {
    /// It returned.
    #[error("the task {0:?} ended: this is a bug, please report it")]
    Returned(&'static str),
    /// It panicked.
    #[error("the task {0:?} panicked: {1}")]
    Panicked(&'static str, String),
}

/// The failures of a group of tasks.
#[derive(Debug)]
pub struct Failures {
    failures: UnboundedReceiver<TaskEnded>,
}

/// A group of tasks, and what fails in it.
pub fn tasks() -> (Tasks, Failures) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let cancelled = CancellationToken::new();
    let guard = Arc::new(cancelled.clone().drop_guard());
    (Tasks { failures: sender, cancelled, _guard: guard }, Failures { failures: receiver })
}

impl Tasks {
    /// Runs a task until the group is cancelled; its end before that is a failure. Aborting it is none.
    pub fn spawn(&self, name: &'static str, task: impl Future<Output = ()> + Send + 'static) -> AbortHandle {
        let cancelled = self.cancelled.clone();
        let handle = tokio::spawn(async move { cancelled.run_until_cancelled(task).await.is_some() });
        let abort = handle.abort_handle();
        let failures = self.failures.clone();
        tokio::spawn(async move {
            let ended = match handle.await {
                Ok(true) => TaskEnded::Returned(name),
                Ok(false) => return,
                Err(error) => match error.try_into_panic() {
                    Ok(panic) => TaskEnded::Panicked(name, panic_message(panic.as_ref())),
                    Err(_) => return,
                },
            };
            failures.send(ended).ok();
        });
        abort
    }

    /// Runs a task that ends by itself once the shutdown is requested; its end before that is a failure.
    pub fn spawn_until(&self, name: &'static str, shutdown: Shutdown, task: impl Future<Output = ()> + Send + 'static) {
        self.spawn(name, async move {
            task.await;
            if shutdown.is_requested() {
                std::future::pending::<()>().await;
            }
        });
    }

    /// Ends all tasks of the group.
    pub fn cancel(&self) {
        self.cancelled.cancel();
    }
}

impl Failures {
    /// Waits for the first failure; for ever if there is none.
    pub async fn first(&mut self) -> TaskEnded {
        match self.failures.recv().await {
            Some(failure) => failure,
            None => std::future::pending().await,
        }
    }
}

/// What a panic said.
pub fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(ToString::to_string);
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "no message".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_task_that_panics_or_returns_is_a_failure() {
        let (group, mut failures) = tasks();
        group.spawn("careless", async { panic!("no such thing") });
        assert_eq!(failures.first().await, TaskEnded::Panicked("careless", "no such thing".into()));
        group.spawn("brief", async {});
        assert_eq!(failures.first().await, TaskEnded::Returned("brief"));
    }

    #[tokio::test]
    async fn a_task_may_end_with_the_shutdown_but_not_before() {
        let (group, mut failures) = tasks();
        let (trigger, shutdown) = crate::shutdown::channel();
        let token = shutdown.clone();
        group.spawn_until("orderly", shutdown.clone(), async move { token.requested().await });
        group.spawn_until("early", shutdown, async {});
        assert_eq!(failures.first().await, TaskEnded::Returned("early"));
        trigger.fire();
        let more = tokio::time::timeout(std::time::Duration::from_millis(50), failures.first()).await;
        assert!(more.is_err(), "{more:?}");
    }

    #[tokio::test]
    async fn a_task_that_is_aborted_or_cancelled_is_none() {
        let (group, mut failures) = tasks();
        group.spawn("aborted", std::future::pending()).abort();
        group.spawn("cancelled", std::future::pending());
        group.cancel();
        drop(group);
        // Nothing is left that could fail.
        assert!(failures.failures.recv().await.is_none());
    }
}
