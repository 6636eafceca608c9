//! The objects of a kind as people declare them. One that cannot be read is kept apart and reported on itself; all
//! others stay managed.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::Resource;
use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use operator_model::resource::version;

use super::kind::{CustomResource, trigger};
pub use crate::watch::Key;
use crate::watched::{WatchState, WatchedNamespaces};

/// An object as far as it is known.
#[derive(Debug, Clone)]
pub enum Known<K> {
    /// It was read.
    Object(Arc<K>),
    /// This version of the operator cannot read it, for this reason.
    Unreadable(Arc<DynamicObject>, String),
}

/// All known objects of a kind.
#[derive(Debug)]
pub struct Primary<K> {
    objects: Mutex<HashMap<Key, Known<K>>>,
    watches: WatchedNamespaces,
}

/// What came of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Changes {
    /// To be reconciled.
    pub changed: Vec<Key>,
    /// Deleted, perhaps while nobody watched.
    pub departed: Vec<Key>,
}

impl<K: CustomResource> Primary<K> {
    /// Nothing is known yet of these namespaces; none means all.
    pub fn new(namespaces: &[String]) -> Self {
        Self { objects: Mutex::default(), watches: WatchedNamespaces::new(namespaces) }
    }

    /// How far its watches have come.
    pub fn watches(&self) -> &WatchedNamespaces {
        &self.watches
    }

    /// An object as it is known.
    pub fn get(&self, key: &Key) -> Option<Known<K>> {
        self.objects().get(key).cloned()
    }

    /// The keys of all known objects.
    pub fn keys(&self) -> Vec<Key> {
        self.objects().keys().cloned().collect()
    }

    /// Reads its own writes: the answer to a status write is known before the watch tells of it.
    ///
    /// Whether it is worth a reconcile: the answer may show a spec that the watch has not told of yet, and will tell
    /// of too late to be a change.
    #[must_use]
    pub fn remember(&self, object: K) -> bool {
        let key = key(&object);
        let mut objects = self.objects();
        let Some(Known::Object(known)) = objects.get(&key) else { return false };
        if known.meta().uid != object.meta().uid || version(known.as_ref()) >= version(&object) {
            return false;
        }
        let is_changed = trigger(known.meta()) != trigger(object.meta());
        objects.insert(key, Known::Object(Arc::new(object)));
        is_changed
    }

    /// Keeps an object; whether it has changed in a way that is worth a reconcile.
    fn put(&self, object: DynamicObject) -> bool {
        let key = key(&object);
        let known = match object.clone().try_parse::<K>() {
            Ok(parsed) => Known::Object(Arc::new(parsed)),
            Err(error) => Known::Unreadable(Arc::new(object), error.to_string()),
        };
        let mut objects = self.objects();
        let is_changed = match (objects.get(&key), &known) {
            (Some(Known::Object(old)), Known::Object(new)) => {
                if version(old.as_ref()) > version(new.as_ref()) && old.meta().uid == new.meta().uid {
                    return false;
                }
                trigger(old.meta()) != trigger(new.meta())
            }
            (Some(Known::Unreadable(old, _)), Known::Unreadable(new, _)) => {
                trigger(&old.metadata) != trigger(&new.metadata)
            }
            _ => true,
        };
        objects.insert(key, known);
        is_changed
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<Key, Known<K>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The watch of one scope, and what it does to the known objects.
#[derive(Debug)]
pub struct Follower<K> {
    primary: Arc<Primary<K>>,
    namespace: Option<String>,
    /// The objects of a list that is still coming in.
    listing: Option<HashSet<Key>>,
}

impl<K: CustomResource> Follower<K> {
    /// Nothing seen yet.
    pub fn new(primary: Arc<Primary<K>>, namespace: Option<String>) -> Self {
        Self { primary, namespace, listing: None }
    }

    /// Takes an event in.
    pub fn handle(&mut self, event: Event<DynamicObject>) -> Changes {
        let mut changes = Changes::default();
        match event {
            Event::Init => self.listing = Some(HashSet::new()),
            Event::InitApply(object) => {
                if let Some(listing) = &mut self.listing {
                    listing.insert(key(&object));
                }
                self.put(object, &mut changes);
            }
            Event::InitDone => {
                changes.departed = self.remove_departed();
                self.primary.watches.set(self.namespace.as_ref(), WatchState::Synced);
            }
            Event::Apply(object) => self.put(object, &mut changes),
            Event::Delete(object) => {
                self.primary.objects().remove(&key(&object));
                changes.departed.push(key(&object));
            }
        }
        changes
    }

    fn put(&self, object: DynamicObject, changes: &mut Changes) {
        let key = key(&object);
        if self.primary.put(object) {
            changes.changed.push(key);
        }
    }

    /// A list does not tell of objects that were deleted while nobody watched.
    fn remove_departed(&mut self) -> Vec<Key> {
        let Some(listed) = self.listing.take() else { return Vec::new() };
        let is_in_scope = |key: &Key| self.namespace.as_ref().is_none_or(|namespace| *namespace == key.0);
        let mut objects = self.primary.objects();
        let departed: Vec<Key> =
            objects.keys().filter(|key| is_in_scope(key) && !listed.contains(*key)).cloned().collect();
        for key in &departed {
            objects.remove(key);
        }
        departed
    }
}

fn key(object: &impl Resource) -> Key {
    (object.meta().namespace.clone().unwrap_or_default(), object.meta().name.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ConfigMap;
    use serde_json::{Value, json};

    use super::*;

    fn object(name: &str, generation: i64, data: &Value) -> DynamicObject {
        serde_json::from_value(json!({
            "apiVersion": "v1", "kind": "ConfigMap", "data": data,
            "metadata": {"namespace": "shop", "name": name, "uid": name, "generation": generation},
        }))
        .unwrap()
    }

    fn names(keys: Vec<Key>) -> Vec<String> {
        keys.into_iter().map(|(_, name)| name).collect()
    }

    fn follower() -> Follower<ConfigMap> {
        Follower::new(Arc::new(Primary::new(&[])), None)
    }

    #[test]
    fn objects_that_were_deleted_while_nobody_watched_are_missed_at_the_next_list() {
        let mut follower = follower();
        let good = json!({"a": "b"});
        for event in [Event::Init, Event::InitApply(object("a", 1, &good)), Event::InitApply(object("b", 1, &good))] {
            assert!(follower.handle(event).departed.is_empty());
        }
        assert!(!follower.primary.watches().is_settled());
        follower.handle(Event::InitDone);
        assert!(follower.primary.watches().is_settled());
        assert_eq!(names(follower.handle(Event::Delete(object("a", 1, &good))).departed), ["a"]);
        follower.handle(Event::Apply(object("c", 1, &good)));
        for event in [Event::Init, Event::InitApply(object("c", 1, &good))] {
            assert!(follower.handle(event).departed.is_empty());
        }
        assert_eq!(names(follower.handle(Event::InitDone).departed), ["b"]);
        assert_eq!(names(follower.primary.keys()), ["c"]);
    }

    #[test]
    fn only_a_new_generation_is_worth_a_reconcile() {
        let mut follower = follower();
        let good = json!({"a": "b"});
        assert_eq!(names(follower.handle(Event::Apply(object("a", 1, &good))).changed), ["a"]);
        assert_eq!(follower.handle(Event::Apply(object("a", 1, &good))), Changes::default(), "a status write");
        assert_eq!(names(follower.handle(Event::Apply(object("a", 2, &good))).changed), ["a"]);
    }

    #[test]
    fn a_spec_that_the_answer_to_a_write_shows_first_is_worth_a_reconcile() {
        let mut follower = follower();
        let with = |generation, version: &str| {
            let mut object = object("a", generation, &json!({"a": "b"}));
            object.metadata.resource_version = Some(version.into());
            object
        };
        follower.handle(Event::Apply(with(1, "10")));
        assert!(!follower.primary.remember(with(1, "11").try_parse().unwrap()), "our own status");
        // Somebody changed the spec (12), and our status write came after it (13).
        assert!(follower.primary.remember(with(2, "13").try_parse().unwrap()));
        assert_eq!(follower.handle(Event::Apply(with(2, "12"))), Changes::default(), "known already");
    }

    #[test]
    fn one_object_that_cannot_be_read_does_not_hide_the_others() {
        let mut follower = follower();
        let bad = json!({"a": 7});
        assert_eq!(names(follower.handle(Event::Apply(object("bad", 1, &bad))).changed), ["bad"]);
        follower.handle(Event::Apply(object("good", 1, &json!({"a": "b"}))));
        let known = |name: &str| follower.primary.get(&("shop".into(), name.into()));
        assert!(matches!(known("good"), Some(Known::Object(_))));
        assert!(matches!(known("bad"), Some(Known::Unreadable(_, why)) if why.contains("string")));
    }
}
