//! Creates what is missing, and applies what differs after comparing: only what is ours is touched.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, OwnerReference};
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions, Request};
use kube::{Api, Client, Resource};
use operator_model::diff::{differs, differs_from_created};
use operator_model::digest::Digest;
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
    digest: &'static str,
    leadership: Leadership,
    no_op_applies: Arc<Mutex<HashMap<String, u64>>>,
    /// Objects that somebody else owns where one of ours is to be.
    in_the_way: Arc<Mutex<HashSet<ObjectKey>>>,
    contention: Arc<Contention>,
}

type ObjectKey = (ResourceType, String, String);

fn key(desired: &Desired<'_>) -> ObjectKey {
    (desired.resource, desired.namespace.to_owned(), desired.name.to_owned())
}

/// How many objects of others are remembered.
const MOST_IN_THE_WAY: usize = 10_000;

/// How many no-op applies are remembered.
const MOST_NO_OP_APPLIES: usize = 100_000;

/// How often the managed fields of an object that others write to at the same time are tried to be taken over.
const TAKE_OVER_ATTEMPTS: u32 = 5;

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

/// What came of creating an object.
enum Creation {
    Created(DynamicObject),
    Exists(DynamicObject),
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
    /// Writes as `manager`. What `predecessors` wrote by update is taken over. Objects that are created carry a digest
    /// of what was sent, in the label `digest`.
    pub fn new(
        client: Client,
        manager: &str,
        predecessors: &[&str],
        digest: &'static str,
        leadership: Leadership,
    ) -> Self {
        Self {
            client,
            manager: manager.to_owned(),
            // What we created is an update, too: before a field of it can be removed, it is taken over.
            predecessors: predecessors.iter().copied().chain([manager]).map(ToOwned::to_owned).collect(),
            digest,
            leadership,
            no_op_applies: Arc::default(),
            in_the_way: Arc::default(),
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

    /// Whether a store has to keep an entry of an object's managed fields: ours, and those that are to become ours.
    pub fn is_kept(&self, entry: &ManagedFieldsEntry) -> bool {
        managed::is_entry(entry, &self.manager, "Apply")
            || self.predecessors.iter().any(|name| managed::is_entry(entry, name, "Update"))
    }

    /// Makes an object as desired; `known` is what a store has of it.
    pub async fn apply(
        &self,
        desired: &Desired<'_>,
        known: Option<DynamicObject>,
    ) -> Result<(DynamicObject, Operation), ApplyError> {
        let digest = Digest::of(desired.object);
        let live = match known {
            Some(known) => known,
            None => match self.create(desired, digest).await? {
                Creation::Created(created) => return Ok((created, Operation::Created)),
                Creation::Exists(live) => live,
            },
        };
        match ownership(&live, desired.owner, desired.labels) {
            Ownership::Ours | Ownership::Orphan => {}
            Ownership::Departed => return Err(ApplyError::departed(desired)),
            Ownership::NotOwned(owner) => {
                self.in_the_way().insert(key(desired));
                return Err(ApplyError::not_owned(desired, owner));
            }
        }
        let sent = Digest::in_label(&live, self.digest);
        let (object, live) = match sent {
            Some(_) => (digest.label(desired.object, self.digest), live),
            // Without our hash it is a predecessor's, or an older version's: what was written by update becomes ours.
            None => (desired.object.clone(), self.take_over(desired, live).await?),
        };
        if !self.is_different(&object, &live, sent) || self.is_no_op(desired, &live) {
            return Ok((live, Operation::Unchanged));
        }
        let live = match sent {
            // A field that we created and do not desire any more would survive.
            Some(sent) if !sent.has_fields_of(digest) => self.take_over(desired, live).await?,
            _ => live,
        };
        let live = self.release_replicas(desired, live).await?;
        self.update(desired, object, live).await
    }

    fn is_different(&self, object: &Value, live: &DynamicObject, sent: Option<Digest>) -> bool {
        if sent.is_some() && managed::applied(live, &self.manager).is_none() {
            differs_from_created(object, live, &self.manager)
        } else {
            differs(object, live, &self.manager)
        }
    }

    /// Applies an object that differs from what is desired.
    async fn update(
        &self,
        desired: &Desired<'_>,
        mut object: Value,
        mut live: DynamicObject,
    ) -> Result<(DynamicObject, Operation), ApplyError> {
        if self.contention.is_suspected(desired, &live) {
            // A store does not keep who else writes.
            live = self.read(desired).await?.unwrap_or(live);
        }
        self.contention.check(desired, &live, &self.manager)?;
        if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
            // Another object of that name is then a conflict, and is not overwritten.
            metadata.insert("uid".into(), json!(live.metadata.uid));
        }
        let written = self.patch(desired, object).await?;
        let is_same = written.metadata.resource_version == live.metadata.resource_version;
        if is_same {
            self.remember_no_op(desired, &live);
            return Ok((written, Operation::Unchanged));
        }
        self.contention.updated(desired, &live);
        Ok((written, Operation::Updated))
    }

    /// Creates an object that the store lacks. The store has what carries our labels, so it may exist all the same.
    async fn create(&self, desired: &Desired<'_>, digest: Digest) -> Result<Creation, ApplyError> {
        // Where somebody else's object was, it is read: creating would be a write in vain at every reconcile.
        let was_in_the_way = self.in_the_way().remove(&key(desired));
        if was_in_the_way && let Some(live) = self.read(desired).await? {
            return Ok(Creation::Exists(live));
        }
        self.check(desired.namespace)?;
        let params = PostParams { field_manager: Some(self.manager.clone()), ..PostParams::default() };
        let path = DynamicObject::url_path(&api_resource(desired.resource), Some(desired.namespace));
        let body = digest.label(desired.object, self.digest).to_string().into_bytes();
        let request = Request::new(path).create(&params, body).map_err(kube::Error::BuildRequest);
        let created = call("create", desired, async { self.client.request(request?).await }).await;
        match created {
            Ok(created) => Ok(Creation::Created(created)),
            // Admission comes before the name: a quota that is used up, or a policy, can hide that it exists.
            Err(error) if matches!(error.code(), Some(403 | 409 | 422)) => match self.read(desired).await? {
                Some(live) => Ok(Creation::Exists(live)),
                None => Err(error),
            },
            Err(error) => Err(error),
        }
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

    fn in_the_way(&self) -> MutexGuard<'_, HashSet<ObjectKey>> {
        let mut objects = self.in_the_way.lock().unwrap_or_else(PoisonError::into_inner);
        // Only a shortcut: what is forgotten costs a request.
        if objects.len() > MOST_IN_THE_WAY {
            objects.clear();
        }
        objects
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

    async fn patch(&self, desired: &Desired<'_>, object: Value) -> Result<DynamicObject, ApplyError> {
        self.check(desired.namespace)?;
        let params = PatchParams::apply(&self.manager).force();
        let api = self.api(desired.resource, desired.namespace);
        call("apply", desired, api.patch(desired.name, &params, &Patch::Apply(object))).await
    }

    /// Fields that a predecessor wrote by update, or that we created, would survive our removals: they become ours.
    async fn take_over(&self, desired: &Desired<'_>, known: DynamicObject) -> Result<DynamicObject, ApplyError> {
        if !managed::has_predecessor(&known, &self.predecessors) {
            return Ok(known);
        }
        let mut attempts = TAKE_OVER_ATTEMPTS;
        loop {
            // A store does not keep the entries of others, which have to stay as they are.
            let Some(live) = self.read(desired).await?.filter(|live| live.metadata.uid == known.metadata.uid) else {
                return Ok(known);
            };
            let Some(patch) = managed::take_over(&live, &self.manager, &self.predecessors) else {
                return Ok(live);
            };
            self.check(desired.namespace)?;
            let api = self.api(desired.resource, desired.namespace);
            let patch: Patch<()> = Patch::Json(patch);
            attempts -= 1;
            match call("take over", desired, api.patch(desired.name, &PatchParams::default(), &patch)).await {
                // A controller has written its status in between.
                Err(error) if error.is_conflict() && attempts > 0 => {}
                taken_over => return taken_over,
            }
        }
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
pub(super) async fn call<T>(
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
