//! Whom a change of another object concerns: its controller, if that is one of our kinds, or whom its labels name.

use std::collections::BTreeSet;
use std::sync::Arc;

use kube::ResourceExt;
use kube::api::DynamicObject;
use operator_model::resource::ResourceType;

use super::kind::Kind;
use super::queue::Request;
use super::{RelatedRoute, Resources, is_owner};
use crate::children::Route;

type IsOwner = fn(&str, &str) -> bool;

/// The kinds of an operator, and what concerns them.
#[derive(Default)]
pub struct Routing {
    owners: Vec<(&'static str, IsOwner)>,
    resources: Resources,
    secret_keys: BTreeSet<&'static str>,
    pod_annotations: Vec<&'static str>,
}

impl Routing {
    /// Adds a kind.
    pub fn add<K: Kind>(&mut self, kind: &K) {
        self.owners.push((K::NAME, is_owner::<K>));
        self.secret_keys.extend(K::SECRET_KEYS);
        self.pod_annotations.extend(K::POD_ANNOTATIONS);
        for resource in K::CHILDREN {
            self.resources.entry(*resource).or_default();
        }
        for (resource, route) in kind.related() {
            self.resources.entry(resource).or_default().push((K::NAME, route));
        }
    }

    /// The keys of Secrets that any of the kinds asks for.
    pub fn secret_keys(&self) -> BTreeSet<&'static str> {
        self.secret_keys.clone()
    }

    /// The annotations of pods that any of the kinds reads.
    pub fn pod_annotations(&self) -> Vec<&'static str> {
        self.pod_annotations.clone()
    }

    /// Every kind of object that concerns one of ours, and how to find which.
    pub fn resources(&self) -> impl Iterator<Item = (ResourceType, Route)> {
        self.resources.iter().map(|(resource, related)| {
            let (owners, related) = (self.owners.clone(), related.clone());
            let route: Route = Arc::new(move |object| route(object, &owners, &related));
            (*resource, route)
        })
    }
}

fn route(
    object: &DynamicObject,
    owners: &[(&'static str, IsOwner)],
    related: &[(&'static str, RelatedRoute)],
) -> Option<Request> {
    let namespace: Arc<str> = object.metadata.namespace.as_deref()?.into();
    if let Some(controller) = object.owner_references().iter().find(|owner| owner.controller == Some(true)) {
        let owner = owners.iter().find(|(_, is_owner)| is_owner(&controller.api_version, &controller.kind));
        if let Some((kind, _)) = owner {
            return Some(Request { kind, namespace, name: controller.name.as_str().into() });
        }
    }
    let (kind, name) = related.iter().find_map(|(kind, route)| Some((*kind, route(object)?)))?;
    Some(Request { kind, namespace, name: name.into() })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(owner: Option<(&str, &str)>) -> DynamicObject {
        let owners: Vec<_> = owner
            .into_iter()
            .map(|(group, kind)| {
                json!({"apiVersion": format!("{group}/v1"), "kind": kind, "name": "a", "uid": "1", "controller": true})
            })
            .collect();
        let metadata = json!({"namespace": "shop", "name": "x", "labels": {"of": "b"}, "ownerReferences": owners});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "Pod", "metadata": metadata})).unwrap()
    }

    #[test]
    fn a_child_concerns_the_object_of_the_kind_that_controls_it() {
        let owners: Vec<(&'static str, IsOwner)> = vec![
            ("Widget", |version, kind| version.starts_with("example.org/") && kind == "Widget"),
            ("Gadget", |version, kind| version.starts_with("example.org/") && kind == "Gadget"),
        ];
        let related: Vec<(&'static str, RelatedRoute)> = vec![("Widget", |object| object.labels().get("of").cloned())];
        let routed = |owner| route(&object(owner), &owners, &related).map(|r| (r.kind, r.name.to_string()));
        assert_eq!(routed(Some(("example.org", "Gadget"))), Some(("Gadget", "a".into())));
        assert_eq!(routed(Some(("apps", "ReplicaSet"))), Some(("Widget", "b".into())), "by its labels");
        assert_eq!(routed(Some(("elsewhere.org", "Widget"))), Some(("Widget", "b".into())), "another group's kind");
        assert_eq!(route(&object(None), &owners, &[]), None);
    }
}
