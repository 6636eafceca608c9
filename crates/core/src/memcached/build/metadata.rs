//! Names, labels and ownership of children.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta, OwnerReference};
use memcached_api::label;

use crate::memcached::validate::Validated;
use operator_model::name::is_label_value;

/// The three labels that are on every child and in every selector.
pub fn labels(cache: &str) -> BTreeMap<String, String> {
    let labels =
        [(label::NAME, label::NAME_VALUE), (label::INSTANCE, cache), (label::MANAGED_BY, label::MANAGED_BY_VALUE)];
    labels.map(|(key, value)| (key.to_owned(), value.to_owned())).into()
}

/// The labels of the workload and its pods, which also tell the version.
pub fn workload_labels(cache: &Validated) -> BTreeMap<String, String> {
    let mut labels = labels(&cache.name);
    if let Some(version) = cache.version.as_deref().filter(|version| is_label_value(version)) {
        labels.insert(label::VERSION.into(), version.into());
    }
    labels
}

/// Selects the pods of a cache.
pub fn selector(cache: &str) -> LabelSelector {
    LabelSelector { match_labels: Some(labels(cache)), ..LabelSelector::default() }
}

/// The cache as the one who owns and controls a child.
pub fn owner(cache: &Validated) -> OwnerReference {
    OwnerReference {
        api_version: "memcached.c5c3.io/v1beta1".into(),
        kind: "Memcached".into(),
        name: cache.name.clone(),
        uid: cache.uid.clone(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// The metadata of a child.
pub fn metadata(cache: &Validated, name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        namespace: Some(cache.namespace.clone()),
        labels: Some(labels(&cache.name)),
        owner_references: Some(vec![owner(cache)]),
        ..ObjectMeta::default()
    }
}
