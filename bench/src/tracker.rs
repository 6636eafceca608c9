//! Follows the objects by one watch and counts how many are where they should be.
//! Cheap for the API server: one list before the clock starts, then an event a change.

use std::collections::HashMap;
use std::pin::pin;
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::core::WatchEvent;
use serde::Deserialize;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::error::{Error, Result};
use crate::object::REPLICAS;
use crate::request::{Kind, Metadata, Requests};

/// The API server ends a watch at the latest after this many seconds.
const TIMEOUT: u32 = 290;
const RETRY: Duration = Duration::from_millis(200);

/// Where objects should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Goal {
    /// The status of each `Memcached` is about its declaration, whose generation is at least this one.
    Reconciled { generation: i64 },
    /// Each `Memcached` says that it is Ready.
    Ready,
    /// Each Deployment has all its pods ready: what Ready means where nobody writes conditions.
    RolledOut,
}

impl Goal {
    /// The kind that is watched for it.
    pub const fn kind(self) -> Kind {
        match self {
            Self::Reconciled { .. } | Self::Ready => Kind::Memcached,
            Self::RolledOut => Kind::Deployment,
        }
    }

    fn is_met(self, object: &Object) -> bool {
        let (generation, status) = (object.metadata.generation, &object.status);
        let is_current = generation > 0 && status.observed_generation >= generation;
        match self {
            Self::Reconciled { generation: least } => is_current && generation >= least,
            Self::Ready => is_current && status.conditions.iter().any(|c| c.type_ == "Ready" && c.status == "True"),
            Self::RolledOut => is_current && status.ready_replicas >= REPLICAS,
        }
    }
}

/// What we read of an object.
#[derive(Debug, Clone, Deserialize)]
struct Object {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    status: Status,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    observed_generation: i64,
    ready_replicas: i64,
    conditions: Vec<Condition>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default)]
struct Condition {
    #[serde(rename = "type")]
    type_: String,
    status: String,
}

/// How far the objects are.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// How many are where they should be.
    pub met: usize,
    /// When that number was last seen to change.
    pub at: Instant,
}

/// Which objects are where they should be.
#[derive(Debug, Default)]
struct Standing {
    met: HashMap<(String, String), bool>,
    count: usize,
}

impl Standing {
    fn of(goal: Goal, objects: &[Object]) -> Self {
        let mut standing = Self::default();
        for object in objects {
            standing.see(object, goal.is_met(object));
        }
        standing
    }

    fn see(&mut self, object: &Object, is_met: bool) {
        let key = (object.metadata.namespace.clone(), object.metadata.name.clone());
        let was_met = self.met.insert(key, is_met).unwrap_or(false);
        self.count = self.count + usize::from(is_met) - usize::from(was_met);
    }
}

/// Follows objects until it is dropped.
pub struct Tracker {
    progress: watch::Receiver<Progress>,
    task: JoinHandle<()>,
}

impl Tracker {
    /// Returns when the objects that are there are known.
    pub async fn start(requests: &Requests, goal: Goal) -> Result<Self> {
        let (objects, version) = requests.list_objects::<Object>(&goal.kind().everywhere()).await?;
        let standing = Standing::of(goal, &objects);
        let (sender, progress) = watch::channel(Progress { met: standing.count, at: Instant::now() });
        let task = tokio::spawn(follow(requests.clone(), goal, standing, version, sender));
        Ok(Self { progress, task })
    }

    /// How far they are now.
    pub fn progress(&self) -> Progress {
        *self.progress.borrow()
    }

    /// Returns when something has changed, or a second has passed.
    pub async fn changed(&mut self) -> Result<()> {
        match tokio::time::timeout(Duration::from_secs(1), self.progress.changed()).await {
            Ok(Err(_)) => Err(Error::Other("the task that follows the objects has ended".into())),
            Ok(Ok(())) | Err(_) => Ok(()),
        }
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches for ever; lists again when the API server no longer knows where we were.
async fn follow(
    requests: Requests,
    goal: Goal,
    mut standing: Standing,
    mut version: String,
    sender: watch::Sender<Progress>,
) {
    loop {
        if follow_once(&requests, goal, &mut standing, &mut version, &sender).await.is_err() {
            tokio::time::sleep(RETRY).await;
            if let Ok((objects, listed)) = requests.list_objects::<Object>(&goal.kind().everywhere()).await {
                (standing, version) = (Standing::of(goal, &objects), listed);
                sender.send_replace(Progress { met: standing.count, at: Instant::now() });
            }
        }
    }
}

/// One watch, until it ends.
async fn follow_once(
    requests: &Requests,
    goal: Goal,
    standing: &mut Standing,
    version: &mut String,
    sender: &watch::Sender<Progress>,
) -> Result<()> {
    let path = goal.kind().everywhere();
    let query = format!("watch=1&allowWatchBookmarks=true&timeoutSeconds={TIMEOUT}&resourceVersion={version}");
    let request = http::Request::get(format!("{path}?{query}")).body(Vec::new())?;
    let client = requests.client();
    let events = client.request_events::<Object>(request).await?;
    let mut events = pin!(events);
    while let Some(event) = events.next().await {
        let (object, is_met) = match event? {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                let is_met = goal.is_met(&object);
                (object, is_met)
            }
            WatchEvent::Deleted(object) => (object, false),
            WatchEvent::Bookmark(bookmark) => {
                *version = bookmark.metadata.resource_version;
                continue;
            }
            WatchEvent::Error(status) => return Err(Error::Other(status.message)),
        };
        let before = standing.count;
        standing.see(&object, is_met);
        version.clone_from(&object.metadata.resource_version);
        if standing.count != before {
            sender.send_replace(Progress { met: standing.count, at: Instant::now() });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    #[allow(clippy::needless_pass_by_value, reason = "a JSON literal reads best without a reference")]
    fn object(generation: i64, status: Value) -> Object {
        let metadata = json!({"name": "a", "namespace": "b", "generation": generation});
        serde_json::from_value(json!({"metadata": metadata, "spec": {}, "status": status})).unwrap()
    }

    #[test]
    fn a_status_of_an_older_declaration_does_not_count() {
        let goal = Goal::Reconciled { generation: 1 };
        assert!(goal.is_met(&object(1, json!({"observedGeneration": 1}))));
        assert!(!goal.is_met(&object(2, json!({"observedGeneration": 1}))));
        assert!(!goal.is_met(&object(1, json!({}))));
    }

    #[test]
    fn an_object_that_is_yet_to_be_changed_does_not_count() {
        let goal = Goal::Reconciled { generation: 2 };
        assert!(!goal.is_met(&object(1, json!({"observedGeneration": 1}))));
        assert!(goal.is_met(&object(2, json!({"observedGeneration": 2}))));
    }

    #[test]
    fn ready_is_what_the_condition_says() {
        let status = |ready: &str| {
            let conditions = json!([{"type": "Available", "status": "True"}, {"type": "Ready", "status": ready}]);
            json!({"observedGeneration": 1, "readyReplicas": 3, "conditions": conditions})
        };
        assert!(Goal::Ready.is_met(&object(1, status("True"))));
        assert!(!Goal::Ready.is_met(&object(1, status("False"))));
        assert!(Goal::RolledOut.is_met(&object(1, json!({"observedGeneration": 1, "readyReplicas": 3}))));
        assert!(!Goal::RolledOut.is_met(&object(1, json!({"observedGeneration": 1, "readyReplicas": 2}))));
    }

    #[test]
    fn each_object_counts_once_and_may_fall_back() {
        let (here, there) = (object(1, json!({"observedGeneration": 1})), object(2, json!({"observedGeneration": 1})));
        let goal = Goal::Reconciled { generation: 1 };
        let mut standing = Standing::of(goal, &[here.clone(), here.clone()]);
        assert_eq!(standing.count, 1);
        standing.see(&there, goal.is_met(&there));
        assert_eq!(standing.count, 0);
    }
}
