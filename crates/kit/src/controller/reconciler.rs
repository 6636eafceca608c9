//! One reconcile of one object, and when the next one is due.

use std::sync::Arc;
use std::time::{Duration, Instant};

use futures::FutureExt;
use futures::future::BoxFuture;
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::api::{Api, DynamicObject, Patch, PatchParams, ResourceExt};
use kube::core::ApiResource;
use operator_model::condition::Assessment;
use operator_model::problem::Class;
use operator_model::reason;
use serde_json::{Value, json};

use super::context::{Context, is_terminating};
use super::kind::{Error, Kind, Outcome};
use super::primary::{Key, Known};
use super::queue::Request;
use crate::REQUEST_TIMEOUT;
use crate::telemetry::Chain;
use crate::watched::WatchedNamespaces;

/// The controller of one kind, whatever it is.
pub trait Reconciler: Send + Sync {
    /// Reconciles an object; when it is due again without being asked for.
    fn reconcile(self: Arc<Self>, request: Request) -> BoxFuture<'static, Option<Duration>>;
    /// The objects that are known.
    fn requests(&self) -> Vec<Request>;
    /// How far its watches have come.
    fn watches(&self) -> &WatchedNamespaces;
}

/// The controller of one kind.
pub struct KindReconciler<K: Kind> {
    pub kind: K,
    pub context: Context<K::Object>,
}

impl<K: Kind> Reconciler for KindReconciler<K> {
    fn reconcile(self: Arc<Self>, request: Request) -> BoxFuture<'static, Option<Duration>> {
        async move { self.run(&request).await }.boxed()
    }

    fn requests(&self) -> Vec<Request> {
        let request = |(namespace, name)| Request { kind: K::NAME, namespace, name };
        self.context.primary.keys().into_iter().map(request).collect()
    }

    fn watches(&self) -> &WatchedNamespaces {
        self.context.primary.watches()
    }
}

impl<K: Kind> KindReconciler<K> {
    async fn run(&self, request: &Request) -> Option<Duration> {
        let key: Key = (request.namespace.clone(), request.name.clone());
        let object = match self.context.primary.get(&key) {
            // Children tell of objects that were deleted: nothing to do, nothing to report.
            None => return self.forgotten(request),
            Some(Known::Unreadable(object, why)) => return self.report(request, &object, &why).await,
            // Garbage collection takes the children; applying them now would bring them back.
            Some(Known::Object(object)) if is_terminating(object.as_ref()) => return self.forgotten(request),
            Some(Known::Object(object)) => object,
        };
        let shared = &self.context.shared;
        let began = Instant::now();
        let outcome = Box::pin(self.kind.reconcile(object, &self.context)).await;
        let result = if outcome.is_ok() { "success" } else { "error" };
        shared.metrics.reconciled(K::NAME, result, began.elapsed());
        let Outcome { class, requeue } = outcome.unwrap_or_else(|error| {
            shared.metrics.error(K::NAME, error.reason());
            if matches!(error, Error::Conflict) {
                // Somebody else was faster: the next reconcile starts from what they wrote.
                tracing::debug!(object = %request, error = %Chain(&error), "failed to reconcile");
            } else {
                tracing::warn!(object = %request, error = %Chain(&error), "failed to reconcile");
            }
            Outcome { class: error.class(), requeue: None }
        });
        let retry = match class {
            None => {
                shared.backoff.reset(&request.to_string());
                None
            }
            Some(class) => Some(shared.backoff.next(&request.to_string(), class)),
        };
        // What was left for later does not wait for the backoff of an unrelated problem.
        retry.into_iter().chain(requeue).min()
    }

    /// Nothing is left to do for an object. What the queue knows of it stays: it may have been made anew since.
    fn forgotten(&self, request: &Request) -> Option<Duration> {
        let shared = &self.context.shared;
        for gauge in self.kind.gauges() {
            gauge.remove_object(&request.namespace, &request.name);
        }
        shared.secrets.forget(request);
        shared.backoff.reset(&request.to_string());
        None
    }

    /// Forgets all about an object that was deleted; the watch tells of it before it tells of a new one of that name.
    pub fn departed(&self, request: &Request) {
        self.forgotten(request);
        self.context.shared.queue.forget(request);
    }

    /// Tells on the object itself that it cannot be read; its children stay as they are.
    async fn report(&self, request: &Request, object: &DynamicObject, why: &str) -> Option<Duration> {
        let shared = &self.context.shared;
        shared.metrics.error(K::NAME, reason::INVALID);
        let message = format!(
            "this version of the operator cannot read the object: {why}; its children are left as they are. Correct \
             the field, or upgrade the operator if the object is meant for a newer one"
        );
        tracing::warn!(object = %request, message);
        let status = unreadable_status::<K>(object, &message, Timestamp::now());
        if status.as_ref() == object.data.get("status") {
            return None;
        }
        let resource = ApiResource::erase::<K::Object>(&());
        let written = self.write_status(object, &resource, &status.unwrap_or_default()).await;
        if let Err(why) = written {
            tracing::warn!(object = %request, why, "failed to report an object that cannot be read");
            return Some(shared.backoff.next(&request.to_string(), Class::Retry));
        }
        shared.events.warning(&kube::Resource::object_ref(object, &resource), reason::INVALID, &message).await;
        None
    }

    async fn write_status(&self, object: &DynamicObject, resource: &ApiResource, status: &Value) -> Result<(), String> {
        let applier = &self.context.shared.applier;
        let namespace = object.namespace().unwrap_or_default();
        applier.check(&namespace).map_err(|error| error.to_string())?;
        let api: Api<DynamicObject> = Api::namespaced_with(applier.client().clone(), &namespace, resource);
        let document = json!({
            "apiVersion": resource.api_version, "kind": resource.kind,
            "metadata": {"name": object.name_any(), "uid": object.uid()}, "status": status,
        });
        let params = PatchParams::apply(applier.manager()).force();
        let patch = Patch::Apply(document);
        let name = object.name_any();
        match tokio::time::timeout(REQUEST_TIMEOUT, api.patch_status(&name, &params, &patch)).await {
            Ok(Ok(_)) => Ok(()),
            Ok(Err(error)) => Err(Chain(&error).to_string()),
            Err(_) => Err("no answer".into()),
        }
    }
}

/// The status of an object that cannot be read: all that was known of it, and conditions that say so.
fn unreadable_status<K: Kind>(object: &DynamicObject, message: &str, now: Timestamp) -> Option<Value> {
    let mut status = object.data.get("status").cloned().unwrap_or_else(|| json!({}));
    let old: Vec<Condition> =
        status.get("conditions").cloned().and_then(|all| serde_json::from_value(all).ok()).unwrap_or_default();
    let generation = object.metadata.generation.unwrap_or_default();
    let mut conditions = old.clone();
    for (type_, status, reason) in K::UNREADABLE.iter().copied() {
        let assessment = Assessment { type_, status, reason, message: message.to_owned() };
        let condition = assessment.into_condition(&old, generation, now);
        match conditions.iter_mut().find(|condition| condition.type_ == type_) {
            Some(known) => *known = condition,
            None => conditions.push(condition),
        }
    }
    status.as_object_mut()?.insert("conditions".into(), json!(conditions));
    Some(status)
}
