//! The children of an object: what is there, and how it becomes what it is to be. One that fails does not keep the
//! others from being tried; the order is that of the list.

mod applier;
mod contention;
mod error;
mod pod;
mod store;

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::DynamicObject;
use operator_model::managed;
use operator_model::problem::{Class, Problem};
use operator_model::reason;
use operator_model::resource::{Applied, ChildRef, Prepared, ResourceType, Resources};
use serde_json::Value;

pub use applier::{Applier, Desired, Operation};
pub use error::{ApplyError, status_code};
pub use pod::Eviction;
pub use store::{IsKept, Route, Store, Stores, Wake, Watch};

use crate::controller::{Request, Shared};

/// The labels by which an orphan of a kind is recognised as ours.
pub type Identity<'a> = &'a (dyn Fn(ResourceType) -> BTreeMap<String, String> + Send + Sync);

/// The children of one object.
pub struct Children<'a> {
    pub(crate) shared: &'a Shared,
    pub(crate) request: Request,
    pub(crate) owner: OwnerReference,
    pub(crate) identity: Identity<'a>,
}

impl Children<'_> {
    /// The object of that name as it is known, whoever owns it.
    pub fn get(&self, resource: ResourceType, name: &str) -> Option<DynamicObject> {
        self.shared.stores.get(&resource)?.get(&self.request.namespace, name)
    }

    /// Everything of a kind that concerns the object: what it controls, or what is routed to it.
    pub fn list(&self, resource: ResourceType) -> Vec<DynamicObject> {
        self.shared.stores.get(&resource).map(|store| store.of(&self.request)).unwrap_or_default()
    }

    /// The object of that name as the API server has it now, for what must not be decided by an old version.
    pub async fn read(&self, resource: ResourceType, name: &str) -> Result<Option<DynamicObject>, ApplyError> {
        self.with(resource, name, &Value::Null, async |desired| self.shared.applier.read(&desired).await).await
    }

    /// Whether a field of an object is ours: because we applied it, or, unless that does not count, created it.
    pub fn owns_field(&self, object: &DynamicObject, path: &[&str], only_applied: bool) -> bool {
        let manager = self.shared.applier.manager();
        managed::owns_field(object, manager, path) || (!only_applied && managed::created_field(object, manager, path))
    }

    /// Makes the children as they are prepared, and deletes what is no longer desired.
    pub async fn apply(&self, prepared: Resources<Prepared>) -> Resources<Applied> {
        let Resources { unwanted, required, children, outdated, problems } = prepared;
        let mut applied = Resources { problems, ..Resources::default() };
        for problem in &applied.problems {
            self.shared.metrics.error(self.request.kind, problem.reason);
        }
        self.delete(unwanted, &mut applied).await;
        for child in required {
            applied.required.push(self.apply_child(child).await);
        }
        if applied.is_begun() {
            for child in children {
                applied.children.push(self.apply_child(child).await);
            }
            self.delete(outdated, &mut applied).await;
        }
        applied
    }

    async fn apply_child(&self, prepared: Prepared) -> Applied {
        let Prepared { child, object } = prepared;
        let resource = child.resource;
        let is_missing = |store: &&Store| store.watches().is_missing_in(&self.request.namespace);
        let Some(store) = self.shared.stores.get(&resource).filter(|store| !is_missing(store)) else {
            let message = format!(
                "{} is asked for, but {} is not installed in this cluster, or the operator may not list it: install it, give \
                 the operator its rights, or turn that off",
                resource.kind, resource.group
            );
            let problem = Problem::new(reason::KIND_MISSING, message, Class::Wait);
            return Applied { child, result: Err(self.count(problem)) };
        };
        let known = store.get(&self.request.namespace, &child.name);
        let written =
            self.with(resource, &child.name, &object, async |desired| self.shared.applier.apply(&desired, known).await);
        let result = match written.await {
            Ok((object, operation)) => {
                if operation != Operation::Unchanged {
                    self.note(resource, &child.name, operation.name());
                    store.remember(object.clone());
                }
                Ok(object)
            }
            Err(error) => Err(self.count(Problem::from(&error))),
        };
        Applied { child, result }
    }

    async fn delete(&self, children: Vec<ChildRef>, applied: &mut Resources<Applied>) {
        for ChildRef { resource, name } in children {
            let Some(live) = self.get(resource, &name) else { continue };
            let deleted = self
                .with(resource, &name, &Value::Null, async |desired| self.shared.applier.delete(&desired, &live).await);
            match deleted.await {
                Ok(true) => self.note(resource, &name, "deleted"),
                Ok(false) => {}
                Err(error) => applied.problems.push(self.count(Problem::from(&error))),
            }
        }
    }

    fn note(&self, resource: ResourceType, name: &str, operation: &'static str) {
        self.shared.metrics.resource(resource.kind, operation);
        tracing::info!(object = %self.request, kind = resource.kind, name, operation);
    }

    /// What stands in the way because of an error, counted.
    pub fn problem(&self, error: &ApplyError) -> Problem {
        self.count(Problem::from(error))
    }

    /// Counts a problem. One that passes by itself is told once the object has failed several times in a row.
    fn count(&self, mut problem: Problem) -> Problem {
        self.shared.metrics.error(self.request.kind, problem.reason);
        problem.is_transient &= !self.shared.is_repeating(&self.request);
        problem
    }

    async fn with<T>(
        &self,
        resource: ResourceType,
        name: &str,
        object: &Value,
        act: impl AsyncFnOnce(Desired<'_>) -> T,
    ) -> T {
        let labels = (self.identity)(resource);
        let labels: Vec<(&str, &str)> = labels.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
        let namespace = &*self.request.namespace;
        act(Desired { resource, namespace, name, object, owner: &self.owner, labels: &labels }).await
    }
}
