//! Objects at rest: compact JSON of what is read of them, with those managed fields that somebody asks for.
//!
//! A tree of values takes ten times the memory; reading one again costs microseconds, and a reconcile reads a handful.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ManagedFieldsEntry;
use kube::Resource;
use kube::api::{DynamicObject, ObjectMeta};
use operator_model::resource::version;
use serde::de::DeserializeOwned;

/// Stands for the uid of the controller in managed fields, where it is the only part that differs between objects.
const CONTROLLER: &str = "\u{1}";

/// An object at rest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packed {
    /// Its resourceVersion, which is no part of its content.
    version: u64,
    json: Box<[u8]>,
    managed: Option<Arc<str>>,
}

impl Packed {
    /// Its version as a number.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Whether a reconcile would read the same of both.
    pub fn has_content_of(&self, other: &Self) -> bool {
        self.json == other.json && self.managed == other.managed
    }

    /// The object again, as its type; an error if it is not of that type.
    pub fn unpack<K: Resource + DeserializeOwned>(&self) -> serde_json::Result<K> {
        let mut object: K = serde_json::from_slice(&self.json)?;
        let metadata = object.meta_mut();
        metadata.resource_version = Some(self.version.to_string());
        if let Some(managed) = &self.managed {
            let controller = controller(metadata).unwrap_or_default();
            metadata.managed_fields = Some(serde_json::from_str(&managed.replace(CONTROLLER, controller))?);
        }
        Ok(object)
    }
}

/// Packs objects. Managed fields that are the same for many objects are kept once.
#[derive(Debug, Default)]
pub struct Packer {
    managed: HashSet<Arc<str>>,
    /// How many may be known before those that nobody uses any more are forgotten.
    limit: usize,
}

/// So many texts that no object uses any more are kept at least.
const FEW: usize = 64;

/// A longer text is nobody's but somebody's who wants memory to be filled: it goes with its object.
const MOST_SHARED: usize = 16 << 10;

impl Packer {
    /// Packs an object with those entries of its managed fields.
    pub fn pack(&mut self, mut object: DynamicObject, is_kept: impl Fn(&ManagedFieldsEntry) -> bool) -> Packed {
        let version = version(&object);
        object.metadata.resource_version = None;
        let entries = object.metadata.managed_fields.take().unwrap_or_default();
        let kept: Vec<ManagedFieldsEntry> = entries
            .into_iter()
            .filter(|entry| is_kept(entry))
            // When it was written differs from object to object, and nobody asks.
            .map(|entry| ManagedFieldsEntry { time: None, ..entry })
            .collect();
        let managed = (!kept.is_empty()).then(|| self.managed(&kept, controller(&object.metadata)));
        Packed { version, json: serde_json::to_vec(&object).unwrap_or_default().into(), managed }
    }

    fn managed(&mut self, entries: &[ManagedFieldsEntry], controller: Option<&str>) -> Arc<str> {
        let text = serde_json::to_string(entries).unwrap_or_default();
        let text = match controller {
            Some(uid) if !uid.is_empty() => text.replace(uid, CONTROLLER),
            _ => text,
        };
        if text.len() > MOST_SHARED {
            return text.into();
        }
        if let Some(known) = self.managed.get(text.as_str()) {
            return Arc::clone(known);
        }
        if self.managed.len() >= self.limit.max(FEW) {
            self.managed.retain(|text| Arc::strong_count(text) > 1);
            self.limit = self.managed.len().saturating_mul(2);
        }
        let text: Arc<str> = text.into();
        self.managed.insert(Arc::clone(&text));
        text
    }
}

fn controller(metadata: &ObjectMeta) -> Option<&str> {
    let owners = metadata.owner_references.as_deref().unwrap_or_default();
    owners.iter().find(|owner| owner.controller == Some(true)).map(|owner| owner.uid.as_str())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn object(uid: &str, version: u64) -> DynamicObject {
        let key = format!("k:{{\"uid\":\"{uid}\"}}");
        serde_json::from_value(json!({
            "metadata": {
                "name": "a", "namespace": "shop", "resourceVersion": version.to_string(),
                "ownerReferences": [{"apiVersion": "v1", "kind": "Thing", "name": "a", "uid": uid, "controller": true}],
                "managedFields": [
                    {"manager": "us", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1",
                     "fieldsV1": {"f:metadata": {"f:ownerReferences": {key: {}}}}, "time": "2026-01-01T00:00:00Z"},
                    {"manager": "others", "operation": "Update"},
                ],
            },
            "spec": {"replicas": 3},
        }))
        .unwrap()
    }

    fn is_ours(entry: &ManagedFieldsEntry) -> bool {
        entry.manager.as_deref() == Some("us")
    }

    #[test]
    fn what_was_packed_is_there_again_but_for_the_entries_of_others() {
        let mut packer = Packer::default();
        let at_rest = packer.pack(object("7", 12), is_ours);
        let mut expected = object("7", 12);
        let entries = expected.metadata.managed_fields.as_mut().unwrap();
        entries.truncate(1);
        entries[0].time = None;
        assert_eq!(at_rest.unpack::<DynamicObject>().unwrap(), expected);
        assert_eq!(at_rest.version(), 12);
    }

    #[test]
    fn the_version_is_no_part_of_the_content() {
        let mut packer = Packer::default();
        let (one, two) = (packer.pack(object("7", 12), is_ours), packer.pack(object("7", 13), is_ours));
        assert!(one.has_content_of(&two) && one != two);
        assert!(!one.has_content_of(&packer.pack(object("8", 13), is_ours)), "another owner");
        assert!(!one.has_content_of(&packer.pack(object("7", 13), |_| false)), "other managed fields");
    }

    #[test]
    fn managed_fields_are_kept_once_for_all_owners_and_not_for_ever() {
        let mut packer = Packer::default();
        let all: Vec<_> = (0..200).map(|owner| packer.pack(object(&format!("uid-{owner}"), 1), is_ours)).collect();
        assert_eq!(packer.managed.len(), 1);
        for (owner, object) in all.iter().enumerate() {
            let text = serde_json::to_string(&object.unpack::<DynamicObject>().unwrap()).unwrap();
            assert!(text.contains(&format!("uid-{owner}")) && !text.contains(CONTROLLER), "{text}");
        }
        for number in 0..1000 {
            let mut other = object("7", 1);
            other.metadata.managed_fields.as_mut().unwrap()[0].api_version = Some(format!("v{number}"));
            packer.pack(other, is_ours);
        }
        assert!(packer.managed.len() <= 2 * FEW, "{} are kept for nobody", packer.managed.len());
        let (mut large, before) = (object("7", 1), packer.managed.len());
        large.metadata.managed_fields.as_mut().unwrap()[0].api_version = Some("v".repeat(MOST_SHARED));
        assert!(packer.pack(large.clone(), is_ours).unpack::<DynamicObject>().is_ok());
        assert_eq!(packer.managed.len(), before, "what is large is not kept for others");
    }
}
