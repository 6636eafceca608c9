//! Everything that a decision needs, as it was observed.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::Pod;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use memcached_api::Memcached;
use operator_model::problem::Problem;

use crate::memcached::build::owner;
use crate::memcached::secret::Data;
use crate::memcached::validate::Validated;

/// What was observed of a cache.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// The object itself.
    pub cache: Arc<Memcached>,
    /// The Deployment of its name, whoever owns it.
    pub deployment: Option<Deployment>,
    /// Whether that is certain; else the Deployment is left alone.
    pub is_deployment_known: bool,
    /// The revisions that keep its pod templates.
    pub revisions: Vec<ControllerRevision>,
    /// Its pods.
    pub pods: Vec<Pod>,
    /// The Secrets it refers to, by name; none if one does not exist.
    pub secrets: BTreeMap<String, Option<Data>>,
    /// What could not be observed.
    pub problems: Vec<Problem>,
}

impl Observed {
    /// Whether a revision may be used: another object's of this name, deleted long ago or forged, keeps nothing of
    /// ours.
    pub fn is_usable(cache: &Memcached, revision: &ControllerRevision) -> bool {
        controller(&revision.metadata).is_none_or(|owner| Some(&owner.uid) == cache.metadata.uid.as_ref())
    }

    /// The revision in force, if nobody controls it: an orphan to adopt.
    pub fn orphaned_revision(&self, cache: &Validated) -> Option<ControllerRevision> {
        let latest = self.revisions.iter().max_by_key(|revision| revision.revision)?;
        if controller(&latest.metadata).is_some() {
            return None;
        }
        let metadata = ObjectMeta {
            name: latest.metadata.name.clone(),
            namespace: latest.metadata.namespace.clone(),
            labels: latest.metadata.labels.clone(),
            owner_references: Some(vec![owner(cache)]),
            ..ObjectMeta::default()
        };
        Some(ControllerRevision { metadata, ..latest.clone() })
    }

    /// The Deployment, if the cache owns it: any other says nothing about it.
    pub fn own_deployment(&self) -> Option<&Deployment> {
        let uid = self.cache.metadata.uid.as_deref();
        let is_ours = |deployment: &&Deployment| {
            let owners = deployment.metadata.owner_references.as_deref().unwrap_or_default();
            owners.iter().any(|owner| Some(owner.uid.as_str()) == uid)
        };
        self.deployment.as_ref().filter(is_ours)
    }

    /// The Deployment, if the status says that it reflects this very generation.
    pub fn reflecting(&self) -> Option<&Deployment> {
        let seen = self.cache.status.as_ref().and_then(|status| status.observed_generation);
        self.own_deployment().filter(|_| seen == self.cache.metadata.generation)
    }
}

fn controller(metadata: &ObjectMeta) -> Option<&OwnerReference> {
    metadata.owner_references.iter().flatten().find(|owner| owner.controller == Some(true))
}
