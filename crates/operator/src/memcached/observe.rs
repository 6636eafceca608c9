//! Everything that a decision needs, from caches where possible.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::PoisonError;

use k8s_openapi::api::apps::v1::{ControllerRevision, Deployment};
use k8s_openapi::api::core::v1::{Pod, Secret};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject, ResourceExt};
use memcached_api::Memcached;
use memcached_core::memcached::Validated;
use memcached_core::memcached::build::{Kind, owner};
use memcached_core::memcached::secret::{self, Data};
use operator_kit::reference::Seen;

use super::PATIENCE;
use super::context::Context;

/// What was seen of a cache.
pub struct Observed {
    pub children: BTreeMap<Kind, DynamicObject>,
    pub deployment: Option<Deployment>,
    pub revisions: Vec<ControllerRevision>,
    pub revision_objects: Vec<DynamicObject>,
    pub pods: Vec<Pod>,
    pub secrets: BTreeMap<String, Option<Data>>,
    /// Secrets that exist, as far as one can tell, but could not be read: their names and why.
    pub unreadable: Vec<String>,
}

impl Observed {
    /// The revision in force, if nobody controls it: an orphan to adopt.
    pub fn orphaned_revision(&self, cache: &Validated) -> Option<ControllerRevision> {
        let latest = self.revisions.iter().max_by_key(|revision| revision.revision)?;
        if latest.owner_references().iter().any(|owner| owner.controller == Some(true)) {
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

    /// The Deployment, if it is the cache's: a stranger's says nothing about it.
    pub fn own_deployment(&self, cache: &Memcached) -> Option<&Deployment> {
        let uid = cache.metadata.uid.as_deref();
        let is_ours = |deployment: &&Deployment| {
            deployment.owner_references().iter().any(|owner| Some(owner.uid.as_str()) == uid)
        };
        self.deployment.as_ref().filter(is_ours)
    }

    /// The Deployment, if the status says that it reflects this very declaration.
    pub fn reflecting(&self, cache: &Memcached) -> Option<&Deployment> {
        let seen = cache.status.as_ref().and_then(|status| status.observed_generation);
        self.own_deployment(cache).filter(|_| seen == cache.metadata.generation)
    }
}

/// Looks at everything a cache has to do with.
pub async fn observe(cache: &Memcached, valid: Option<&Validated>, context: &Context) -> Observed {
    let (namespace, name) = (cache.namespace().unwrap_or_default(), cache.name_any());
    let children: BTreeMap<Kind, DynamicObject> = Kind::ALL
        .into_iter()
        .filter_map(|kind| Some((kind, context.child(kind, &namespace, &kind.child_name(&name))?)))
        .collect();
    // Another cache's of this name, long gone or somebody's invention, keep nothing of ours.
    let is_usable = |object: &DynamicObject| {
        let owners = object.owner_references();
        let controller = owners.iter().find(|owner| owner.controller == Some(true));
        controller.is_none_or(|owner| Some(&owner.uid) == cache.metadata.uid.as_ref())
    };
    let revision_objects: Vec<DynamicObject> =
        context.revisions(&namespace, &name).into_iter().filter(is_usable).collect();
    let (secrets, unreadable) = observe_secrets(&namespace, &name, valid, context).await;
    Observed {
        deployment: children.get(&Kind::Deployment).and_then(typed),
        revisions: revision_objects.iter().filter_map(typed).collect(),
        pods: context.pods(&namespace, &name).iter().filter_map(typed).collect(),
        secrets,
        unreadable,
        children,
        revision_objects,
    }
}

/// An object as its own type.
pub fn typed<K: kube::Resource + serde::de::DeserializeOwned>(object: &DynamicObject) -> Option<K> {
    object.clone().try_parse().ok()
}

async fn observe_secrets(
    namespace: &str,
    cache: &str,
    valid: Option<&Validated>,
    context: &Context,
) -> (BTreeMap<String, Option<Data>>, Vec<String>) {
    let (mut secrets, mut unreadable) = (BTreeMap::new(), Vec::new());
    let Some(valid) = valid else {
        return (secrets, unreadable);
    };
    let mounted = secret::mounted(valid);
    let names: BTreeSet<String> = mounted.keys().cloned().collect();
    context.secrets.refer(namespace, cache, &names);
    for name in names {
        match observe_secret(namespace, &name, context).await {
            Ok(data) => {
                secrets.insert(name, data);
            }
            Err(why) => unreadable.push(format!("Secret {name:?} cannot be read: {why}")),
        }
    }
    (secrets, unreadable)
}

/// The values of a Secret; read only when its version is not the one that was read before.
async fn observe_secret(namespace: &str, name: &str, context: &Context) -> Result<Option<Data>, String> {
    let key = (namespace.to_owned(), name.to_owned());
    let known = context.secret_data.lock().unwrap_or_else(PoisonError::into_inner).get(&key).cloned();
    match (context.secrets.seen(namespace, name), known) {
        (Seen::Absent, _) => return Ok(None),
        (Seen::Present(version), Some((read, data))) if version == read => return Ok(Some(data)),
        _ => {}
    }
    let api: Api<Secret> = Api::namespaced(context.applier.client().clone(), namespace);
    let read = tokio::time::timeout(PATIENCE, api.get_opt(name)).await.map_err(|_| "the API server does not answer")?;
    let secret = read.map_err(|error| match error {
        kube::Error::Api(status) if status.code == 403 => {
            format!("{}: give the operator its rights on Secrets back", status.message)
        }
        error => error.to_string(),
    })?;
    let Some(secret) = secret else {
        return Ok(None);
    };
    let version = secret.resource_version().unwrap_or_default();
    let data: Data = secret.data.unwrap_or_default().into_iter().map(|(key, value)| (key, value.0)).collect();
    let mut cache = context.secret_data.lock().unwrap_or_else(PoisonError::into_inner);
    cache.insert(key, (version, data.clone()));
    Ok(Some(data))
}
