//! Server-side apply that compares first: only what differs is written, only what is ours is touched.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, Preconditions};
use kube::{Api, Client};
use operator_model::diff::differs;
use operator_model::managed::{self, owns_field};
use operator_model::owner::{Ownership, ownership};
use operator_model::resource::ResourceType;
use serde_json::{Value, json};

use super::contention::Contention;
use super::error::ApplyError;
use crate::REQUEST_TIMEOUT;
use crate::lease::{Leadership, NotLeader};
use crate::watch::api_resource;

/// Writes objects as one field manager, and only while leading.
#[derive(Clone)]
pub struct Applier {
    client: Client,
    manager: String,
    predecessors: Vec<String>,
    leadership: Leadership,
    no_op_applies: Arc<Mutex<HashMap<String, u64>>>,
    contention: Arc<Contention>,
}

/// How many no-op applies are remembered.
const MOST_NO_OP_APPLIES: usize = 100_000;

/// An object as it is to be.
#[derive(Debug, Clone)]
pub struct Desired<'a> {
    /// The kind.
    pub resource: ResourceType,
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
    /// It was as desired.
    Unchanged,
    /// It did not exist.
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

impl Applier {
    /// Applies as `manager`. What `predecessors` wrote by update is taken over.
    pub fn new(client: Client, manager: &str, predecessors: &[&str], leadership: Leadership) -> Self {
        Self {
            client,
            manager: manager.to_owned(),
            predecessors: predecessors.iter().map(ToString::to_string).collect(),
            leadership,
            no_op_applies: Arc::default(),
            contention: Arc::default(),
        }
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

    /// Makes an object as desired; `known` is what a store has of it.
    pub async fn apply(
        &self,
        desired: &Desired<'_>,
        known: Option<DynamicObject>,
    ) -> Result<(DynamicObject, Operation), ApplyError> {
        // A store has what carries our labels: what it lacks may still exist.
        let live = match known {
            Some(known) => Some(known),
            None => self.read(desired).await?,
        };
        let Some(live) = live else {
            let created = self.patch(desired, desired.object.clone(), false).await?;
            return Ok((created, Operation::Created));
        };
        match ownership(&live, desired.owner, desired.labels) {
            Ownership::Ours | Ownership::Orphan => {}
            Ownership::Departed => return Err(ApplyError::departed(desired)),
            Ownership::NotOwned(owner) => return Err(ApplyError::not_owned(desired, owner)),
        }
        let live = self.take_over(desired, live).await?;
        if !differs(desired.object, &live, &self.manager) || self.is_no_op(desired, &live) {
            return Ok((live, Operation::Unchanged));
        }
        let live = self.release_replicas(desired, live).await?;
        self.contention.check(desired, &live, &self.manager)?;
        let mut object = desired.object.clone();
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // Another object of that name is then a conflict, and is not overwritten.
            metadata.insert("uid".into(), json!(live.metadata.uid));
        }
        let written = self.patch(desired, object, true).await?;
        let is_same = written.metadata.resource_version == live.metadata.resource_version;
        if is_same {
            self.remember_no_op(desired, &live);
            return Ok((written, Operation::Unchanged));
        }
        self.contention.updated(desired, &live);
        Ok((written, Operation::Updated))
    }

    /// Dropping `replicas` from an apply by its only owner resets it to one: before an autoscaler decides it, its
    /// ownership moves to the scale subresource, where the count stays as it is.
    async fn release_replicas(&self, desired: &Desired<'_>, live: DynamicObject) -> Result<DynamicObject, ApplyError> {
        let running = live.data.pointer("/spec/replicas");
        let is_dropped = desired.object.pointer("/spec/replicas").is_none_or(Value::is_null);
        if running.is_none() || !is_dropped || !owns_field(&live, &self.manager, &["spec", "replicas"]) {
            return Ok(live);
        }
        let scale = json!({
            "apiVersion": "autoscaling/v1",
            "kind": "Scale",
            "metadata": {"name": desired.name, "namespace": desired.namespace},
            "spec": {"replicas": running},
        });
        self.apply_scale(desired, &scale).await?;
        Ok(self.read(desired).await?.unwrap_or(live))
    }

    /// Whether this very apply has changed nothing about this very version before: what looks like a difference to
    /// us is none to the API server.
    fn is_no_op(&self, desired: &Desired<'_>, live: &DynamicObject) -> bool {
        let known = self.no_op_applies.lock().unwrap_or_else(PoisonError::into_inner);
        live.metadata.uid.as_ref().and_then(|uid| known.get(uid)) == Some(&fingerprint(desired, live))
    }

    fn remember_no_op(&self, desired: &Desired<'_>, live: &DynamicObject) {
        let Some(uid) = live.metadata.uid.clone() else { return };
        let mut known = self.no_op_applies.lock().unwrap_or_else(PoisonError::into_inner);
        // Only a shortcut: what is forgotten costs a request.
        if known.len() > MOST_NO_OP_APPLIES {
            known.clear();
        }
        known.insert(uid, fingerprint(desired, live));
    }

    /// An object as it is now.
    pub async fn read(&self, desired: &Desired<'_>) -> Result<Option<DynamicObject>, ApplyError> {
        let api = self.api(desired.resource, desired.namespace);
        call("read", desired, api.get_opt(desired.name)).await
    }

    /// Deletes an object if it is ours. Whether it was.
    pub async fn delete(&self, desired: &Desired<'_>, live: &DynamicObject) -> Result<bool, ApplyError> {
        let is_ours = matches!(ownership(live, desired.owner, desired.labels), Ownership::Ours | Ownership::Orphan);
        if !is_ours || live.metadata.deletion_timestamp.is_some() {
            return Ok(false);
        }
        self.check(desired.namespace)?;
        let preconditions = Preconditions { uid: live.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::background() };
        let api = self.api(desired.resource, desired.namespace);
        match call("delete", desired, api.delete(desired.name, &params)).await {
            Ok(_) => Ok(true),
            Err(error) if error.code() == Some(404) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Applies the count without force: who owns it already keeps it.
    async fn apply_scale(&self, desired: &Desired<'_>, scale: &Value) -> Result<(), ApplyError> {
        self.check(desired.namespace)?;
        let params = PatchParams::apply(&self.manager);
        let api = self.api(desired.resource, desired.namespace);
        let patch = Patch::Apply(scale);
        match call("scale", desired, api.patch_subresource("scale", desired.name, &params, &patch)).await {
            Err(error) if error.code() != Some(409) => Err(error),
            _ => Ok(()),
        }
    }

    async fn patch(&self, desired: &Desired<'_>, object: Value, force: bool) -> Result<DynamicObject, ApplyError> {
        self.check(desired.namespace)?;
        let mut params = PatchParams::apply(&self.manager);
        params.force = force;
        let api = self.api(desired.resource, desired.namespace);
        call("apply", desired, api.patch(desired.name, &params, &Patch::Apply(object))).await
    }

    /// Fields that a predecessor wrote by update would survive our removals: they become ours.
    async fn take_over(&self, desired: &Desired<'_>, live: DynamicObject) -> Result<DynamicObject, ApplyError> {
        let Some(patch) = managed::take_over(&live, &self.manager, &self.predecessors) else {
            return Ok(live);
        };
        self.check(desired.namespace)?;
        let api = self.api(desired.resource, desired.namespace);
        let patch: Patch<()> = Patch::Json(patch);
        call("take over", desired, api.patch(desired.name, &PatchParams::default(), &patch)).await
    }

    fn api(&self, resource: ResourceType, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, &api_resource(resource))
    }
}

fn fingerprint(desired: &Desired<'_>, live: &DynamicObject) -> u64 {
    let mut hasher = DefaultHasher::new();
    (desired.object.to_string(), &live.metadata.resource_version).hash(&mut hasher);
    hasher.finish()
}

/// A request with a deadline, and its failure in words.
async fn call<T>(
    action: &'static str,
    desired: &Desired<'_>,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, ApplyError> {
    let (kind, name) = (desired.resource.kind, desired.name.to_owned());
    match tokio::time::timeout(REQUEST_TIMEOUT, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(ApplyError::Api { action, kind, name, source: Box::new(source) }),
        Err(_) => Err(ApplyError::Timeout { action, kind, name }),
    }
}
