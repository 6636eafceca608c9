//! Server-side apply that looks first: only what differs is written, only what is ours is touched.

mod diff;
mod managed;
mod owner;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::core::ApiResource;
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};

use crate::lease::{Leadership, NotLeader};

pub use diff::differs;
pub use managed::owns_field;
pub use owner::{Ownership, ownership};

/// A write must be over before another could lead: the lease's duration less its renew deadline.
const PATIENCE: Duration = Duration::from_secs(5);

/// Writes objects as one field manager, and only while leading.
#[derive(Clone)]
pub struct Applier {
    client: Client,
    manager: String,
    predecessors: Vec<String>,
    leadership: Leadership,
    futile: Arc<Mutex<HashMap<String, u64>>>,
}

/// How many applies without effect are remembered.
const MOST_FUTILE: usize = 100_000;

fn fingerprint(wish: &Wish<'_>, live: &DynamicObject) -> u64 {
    let mut hasher = DefaultHasher::new();
    (wish.object.to_string(), &live.metadata.resource_version).hash(&mut hasher);
    hasher.finish()
}

/// An object as it is to be.
#[derive(Debug, Clone)]
pub struct Wish<'a> {
    /// The kind.
    pub resource: &'a ApiResource,
    /// The namespace.
    pub namespace: &'a str,
    /// The name.
    pub name: &'a str,
    /// The fields that are ours to decide.
    pub object: &'a Value,
    /// Whose child it is.
    pub owner: &'a OwnerReference,
    /// Labels by which an orphan is recognised as ours.
    pub labels: &'a [(&'a str, &'a str)],
}

/// What was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// It was as wished.
    Unchanged,
    /// It was not there.
    Created,
    /// It was different.
    Updated,
}

impl Operation {
    /// For metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unchanged => "unchanged",
            Self::Created => "created",
            Self::Updated => "updated",
        }
    }
}

/// Why an object is not as wished.
#[derive(Debug, thiserror::Error)]
pub enum ApplyError {
    /// It belongs to somebody else.
    #[error(
        "{kind} {name:?} exists and is not this object's: {whose}; delete or rename it, or choose another name here"
    )]
    Foreign {
        /// The kind.
        kind: String,
        /// The name.
        name: String,
        /// Whose it is, in words.
        whose: String,
    },
    /// The API server did not accept it.
    #[error("failed to {action} {kind} {name:?}: {source}")]
    Api {
        /// What was tried.
        action: &'static str,
        /// The kind.
        kind: String,
        /// The name.
        name: String,
        /// What the API server said.
        source: Box<kube::Error>,
    },
    /// The API server did not answer in time.
    #[error("failed to {action} {kind} {name:?}: no answer within {} s", PATIENCE.as_secs())]
    Timeout {
        /// What was tried.
        action: &'static str,
        /// The kind.
        kind: String,
        /// The name.
        name: String,
    },
    /// Another process leads.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
}

impl Applier {
    /// Applies as `manager`. What `predecessors` wrote by update is taken over.
    pub fn new(client: Client, manager: &str, predecessors: &[&str], leadership: Leadership) -> Self {
        let predecessors = predecessors.iter().map(ToString::to_string).collect();
        Self { client, manager: manager.to_owned(), predecessors, leadership, futile: Arc::default() }
    }

    /// The field manager.
    pub fn manager(&self) -> &str {
        &self.manager
    }

    /// An error unless this process leads in a namespace; for writes that go other ways.
    pub fn check(&self, namespace: &str) -> Result<(), NotLeader> {
        self.leadership.check_in(namespace)
    }

    /// The client.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Makes an object as wished; `known` is what a cache says, if it has it.
    pub async fn apply(
        &self,
        wish: &Wish<'_>,
        known: Option<DynamicObject>,
    ) -> Result<(DynamicObject, Operation), ApplyError> {
        // A cache shows what carries our labels: what it lacks may still exist.
        let live = match known {
            Some(known) => Some(known),
            None => self.read(wish).await?,
        };
        let Some(live) = live else {
            let created = self.patch(wish, wish.object.clone(), false).await?;
            return Ok((created, Operation::Created));
        };
        if let Ownership::Foreign(whose) = ownership(&live, wish.owner, wish.labels) {
            let (kind, name) = (wish.resource.kind.clone(), wish.name.to_owned());
            return Err(ApplyError::Foreign { kind, name, whose });
        }
        let live = self.take_over(wish, live).await?;
        if !differs(wish.object, &live, &self.manager) || self.is_known_futile(wish, &live) {
            return Ok((live, Operation::Unchanged));
        }
        let mut object = wish.object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // Another object of that name is then a conflict, not a victim.
            metadata.insert("uid".into(), json!(live.metadata.uid));
        }
        let written = self.patch(wish, object, true).await?;
        let is_same = written.metadata.resource_version == live.metadata.resource_version;
        if is_same {
            self.note_futile(wish, &live);
        }
        Ok((written, if is_same { Operation::Unchanged } else { Operation::Updated }))
    }

    /// Whether this very wish has changed nothing about this very version before: what looks like a difference to
    /// us is none to the API server.
    fn is_known_futile(&self, wish: &Wish<'_>, live: &DynamicObject) -> bool {
        let futile = self.futile.lock().unwrap_or_else(PoisonError::into_inner);
        live.metadata.uid.as_ref().and_then(|uid| futile.get(uid)) == Some(&fingerprint(wish, live))
    }

    fn note_futile(&self, wish: &Wish<'_>, live: &DynamicObject) {
        let Some(uid) = live.metadata.uid.clone() else { return };
        let mut futile = self.futile.lock().unwrap_or_else(PoisonError::into_inner);
        // Only a shortcut: what is forgotten costs a request.
        if futile.len() > MOST_FUTILE {
            futile.clear();
        }
        futile.insert(uid, fingerprint(wish, live));
    }

    /// An object as it is now.
    pub async fn read(&self, wish: &Wish<'_>) -> Result<Option<DynamicObject>, ApplyError> {
        let api = self.api(wish);
        self.call("read", wish, api.get_opt(wish.name)).await
    }

    /// Whether an object may be worked with.
    pub fn is_ours(&self, wish: &Wish<'_>, live: &DynamicObject) -> bool {
        !matches!(ownership(live, wish.owner, wish.labels), Ownership::Foreign(_))
    }

    /// Deletes an object if it is ours. Whether it was.
    pub async fn delete(&self, wish: &Wish<'_>, live: &DynamicObject) -> Result<bool, ApplyError> {
        let is_foreign = matches!(ownership(live, wish.owner, wish.labels), Ownership::Foreign(_));
        if is_foreign || live.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        self.check(wish.namespace)?;
        let preconditions = Preconditions { uid: live.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let api = self.api(wish);
        match self.call("delete", wish, api.delete(wish.name, &params)).await {
            Ok(_) => Ok(true),
            Err(ApplyError::Api { source, .. }) if is_gone(&source) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Applies to a subresource without force: who owns the fields keeps them. Whether it was accepted.
    pub async fn apply_subresource(
        &self,
        wish: &Wish<'_>,
        subresource: &str,
        object: &Value,
    ) -> Result<bool, ApplyError> {
        self.check(wish.namespace)?;
        let params = PatchParams::apply(&self.manager);
        let api = self.api(wish);
        let patch = Patch::Apply(object);
        let written = self.call("scale", wish, api.patch_subresource(subresource, wish.name, &params, &patch)).await;
        match written {
            Ok(_) => Ok(true),
            Err(ApplyError::Api { source, .. }) if is_conflict(&source) => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn patch(&self, wish: &Wish<'_>, object: Value, force: bool) -> Result<DynamicObject, ApplyError> {
        self.check(wish.namespace)?;
        let mut params = PatchParams::apply(&self.manager);
        params.force = force;
        let api = self.api(wish);
        self.call("apply", wish, api.patch(wish.name, &params, &Patch::Apply(object))).await
    }

    /// Fields that a predecessor wrote by update would survive our removals: they become ours.
    pub async fn take_over(&self, wish: &Wish<'_>, live: DynamicObject) -> Result<DynamicObject, ApplyError> {
        let Some(patch) = managed::take_over(&live, &self.manager, &self.predecessors) else {
            return Ok(live);
        };
        self.check(wish.namespace)?;
        let api = self.api(wish);
        let patch: Patch<()> = Patch::Json(patch);
        self.call("take over", wish, api.patch(wish.name, &PatchParams::default(), &patch)).await
    }

    fn api(&self, wish: &Wish<'_>) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), wish.namespace, wish.resource)
    }

    async fn call<T>(
        &self,
        action: &'static str,
        wish: &Wish<'_>,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, ApplyError> {
        let (kind, name) = (wish.resource.kind.clone(), wish.name.to_owned());
        match tokio::time::timeout(PATIENCE, request).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(source)) => Err(ApplyError::Api { action, kind, name, source: Box::new(source) }),
            Err(_) => Err(ApplyError::Timeout { action, kind, name }),
        }
    }
}

fn is_gone(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 404)
}

fn is_conflict(error: &kube::Error) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409)
}

/// The newer of two views of one object: an answer to a write overtakes the cache.
pub fn newer(cached: Option<DynamicObject>, answered: Option<DynamicObject>) -> Option<DynamicObject> {
    let version = |object: &DynamicObject| object.resource_version().and_then(|v| v.parse::<u64>().ok()).unwrap_or(0);
    match (cached, answered) {
        (Some(cached), Some(answered)) if version(&answered) > version(&cached) => Some(answered),
        (cached, _) => cached,
    }
}
