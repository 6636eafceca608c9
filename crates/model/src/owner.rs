//! Whose an object is.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube_core::{DynamicObject, ResourceExt};

/// Whose an object is, seen from an owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ownership {
    /// The owner controls it.
    Ours,
    /// Nobody controls it, and it carries our labels: an orphan of a predecessor.
    Orphan,
    /// A deleted object of the owner's kind and name controls it: garbage collection has yet to come.
    Departed,
    /// Somebody else's; the words say whose.
    NotOwned(String),
}

/// Whose an object is, seen from `owner`. Without labels nothing counts as an orphan.
pub fn ownership(object: &DynamicObject, owner: &OwnerReference, labels: &[(&str, &str)]) -> Ownership {
    let controller = object.owner_references().iter().find(|reference| reference.controller == Some(true));
    match controller {
        Some(controller) if controller.uid == owner.uid => Ownership::Ours,
        Some(controller) if (&controller.kind, &controller.name) == (&owner.kind, &owner.name) => Ownership::Departed,
        Some(controller) => Ownership::NotOwned(format!("it belongs to {} {:?}", controller.kind, controller.name)),
        None => {
            let carries = |(key, value): &(&str, &str)| object.labels().get(*key).is_some_and(|v| v == value);
            if !labels.is_empty() && labels.iter().all(carries) {
                Ownership::Orphan
            } else {
                Ownership::NotOwned("it belongs to nobody".into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn owner(uid: &str) -> OwnerReference {
        OwnerReference { uid: uid.into(), kind: "Thing".into(), name: "a".into(), ..OwnerReference::default() }
    }

    fn object(controller: Option<&str>) -> DynamicObject {
        let owners: Vec<_> = controller
            .into_iter()
            .map(|uid| json!({"apiVersion": "v1", "kind": "Thing", "name": "b", "uid": uid, "controller": true}))
            .collect();
        let metadata = json!({"name": "a", "labels": {"who": "us"}, "ownerReferences": owners});
        serde_json::from_value(json!({"apiVersion": "v1", "kind": "Service", "metadata": metadata})).unwrap()
    }

    #[test]
    fn the_controller_decides() {
        assert_eq!(ownership(&object(Some("1")), &owner("1"), &[]), Ownership::Ours);
        let other = ownership(&object(Some("2")), &owner("1"), &[("who", "us")]);
        assert_eq!(other, Ownership::NotOwned("it belongs to Thing \"b\"".into()));
        let anew = OwnerReference { name: "b".into(), ..owner("1") };
        assert_eq!(ownership(&object(Some("2")), &anew, &[]), Ownership::Departed, "a new object of that name");
    }

    #[test]
    fn an_object_without_a_controller_is_ours_only_by_all_labels() {
        assert_eq!(ownership(&object(None), &owner("1"), &[("who", "us")]), Ownership::Orphan);
        let lacking = ownership(&object(None), &owner("1"), &[("who", "us"), ("what", "x")]);
        assert!(matches!(lacking, Ownership::NotOwned(_)));
        assert!(matches!(ownership(&object(None), &owner("1"), &[]), Ownership::NotOwned(_)));
    }
}
