//! Writes to single pods: changed in place, evicted, made for a moment. Their workload makes them; when one is changed or
//! goes is somebody else's to say.

use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, DeleteParams, DynamicObject, EvictParams, Patch, PatchParams, PostParams, Preconditions};
use operator_model::resource::POD;
use serde_json::Value;

use super::applier::call;
use super::error::ApplyError;
use super::{Children, Desired};
use crate::watch::api_resource;

/// What came of an eviction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Eviction {
    /// The pod goes, or would.
    Allowed,
    /// A PodDisruptionBudget forbids it now, in the API server's words.
    Forbidden(String),
}

impl Children<'_> {
    /// Changes a pod by a strategic merge patch; the pod as it is then.
    pub async fn patch_pod(&self, name: &str, patch: &Value) -> Result<Pod, ApplyError> {
        let params =
            PatchParams { field_manager: Some(self.shared.applier.manager().into()), ..PatchParams::default() };
        let patch = Patch::Strategic(patch);
        let changed: DynamicObject = self
            .on_pod(name, async |desired| {
                let api = Api::namespaced_with(self.client(), desired.namespace, &api_resource(POD));
                call("patch", &desired, api.patch(name, &params, &patch)).await
            })
            .await?;
        if let Some(store) = self.shared.stores.get(&POD) {
            store.remember(changed.clone());
        }
        self.note(POD, name, "updated");
        changed.try_parse().map_err(|error| ApplyError::Unreadable { kind: POD.kind, name: name.into(), error })
    }

    /// Asks a pod to go, as budgets allow; with `is_dry_run`, whether it might.
    pub async fn evict_pod(&self, pod: &Pod, is_dry_run: bool) -> Result<Eviction, ApplyError> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let preconditions = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
        let params = EvictParams {
            delete_options: Some(DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() }),
            post_options: PostParams { dry_run: is_dry_run, ..PostParams::default() },
        };
        let evicted = self
            .on_pod(name, async |desired| {
                let api: Api<Pod> = Api::namespaced(self.shared.once.clone(), desired.namespace);
                call("evict", &desired, api.evict(name, &params)).await
            })
            .await;
        match evicted {
            // Several budgets select the pod: the API server does not decide between them, and says so with a 201.
            Ok(status) if status.is_failure() => Ok(Eviction::Forbidden(status.message)),
            Ok(_) => {
                if !is_dry_run {
                    self.note(POD, name, "evicted");
                }
                Ok(Eviction::Allowed)
            }
            Err(error) if matches!(error.code(), Some(429 | 500)) => Ok(Eviction::Forbidden(error.to_string())),
            Err(error) if error.code() == Some(404) => Ok(Eviction::Allowed),
            Err(error) => Err(error),
        }
    }

    /// Makes a pod; one that is there already is left alone.
    pub async fn create_pod(&self, pod: &Pod) -> Result<(), ApplyError> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let params = PostParams { field_manager: Some(self.shared.applier.manager().into()), ..PostParams::default() };
        let created = self
            .on_pod(name, async |desired| {
                let api: Api<Pod> = Api::namespaced(self.client(), desired.namespace);
                call("create", &desired, api.create(&params, pod)).await
            })
            .await;
        match created {
            Ok(_) => {
                self.note(POD, name, "created");
                Ok(())
            }
            Err(error) if error.code() == Some(409) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Deletes a pod that this object controls; any other is left alone.
    pub async fn delete_pod(&self, pod: &Pod) -> Result<(), ApplyError> {
        let name = pod.metadata.name.as_deref().unwrap_or_default();
        let is_ours = pod.metadata.owner_references.iter().flatten().any(|owner| owner.uid == self.owner.uid);
        if !is_ours || pod.metadata.deletion_timestamp.is_some() {
            return Ok(());
        }
        let preconditions = Preconditions { uid: pod.metadata.uid.clone(), resource_version: None };
        let params = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        let deleted = self
            .on_pod(name, async |desired| {
                let api: Api<Pod> = Api::namespaced(self.client(), desired.namespace);
                call("delete", &desired, api.delete(name, &params)).await
            })
            .await;
        match deleted {
            Ok(_) => {
                self.note(POD, name, "deleted");
                Ok(())
            }
            Err(error) if matches!(error.code(), Some(404 | 409)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Only whoever leads writes.
    async fn on_pod<T>(
        &self,
        name: &str,
        act: impl AsyncFnOnce(Desired<'_>) -> Result<T, ApplyError>,
    ) -> Result<T, ApplyError> {
        self.shared.applier.check(&self.request.namespace)?;
        self.with(POD, name, &Value::Null, act).await
    }

    fn client(&self) -> kube::Client {
        self.shared.applier.client().clone()
    }
}
