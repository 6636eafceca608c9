//! The objects of a kind as people declare them. One that cannot be read is kept apart and reported on itself; all
//! others stay managed.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::api::DynamicObject;
use kube::runtime::watcher::Event;
use operator_model::trim::trim_metadata;

use super::kind::{CustomResource, trigger};
use crate::packed::{Packed, Packer};
pub use crate::watch::Key;
use crate::watch::key;
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
    content: Mutex<Content>,
    watches: WatchedNamespaces,
    kind: PhantomData<fn() -> K>,
}

#[derive(Debug, Default)]
struct Content {
    objects: HashMap<Key, Entry>,
    packer: Packer,
}

#[derive(Debug)]
struct Entry {
    object: Packed,
    uid: u64,
    /// What makes it worth a reconcile.
    trigger: u64,
}

impl Content {
    /// Packs an object with what its spec was written by; nobody asks who wrote its status.
    fn pack(&mut self, mut object: DynamicObject) -> Entry {
        let (uid, trigger) = (digest(&object.metadata.uid), digest(&trigger(&object.metadata)));
        trim_metadata(&mut object);
        let object = self.packer.pack(object, |entry| entry.subresource.as_deref() != Some("status"));
        Entry { object, uid, trigger }
    }
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
        Self { content: Mutex::default(), watches: WatchedNamespaces::new(namespaces), kind: PhantomData }
    }

    /// How far its watches have come.
    pub fn watches(&self) -> &WatchedNamespaces {
        &self.watches
    }

    /// An object as it is known.
    pub fn get(&self, key: &Key) -> Option<Known<K>> {
        let packed = self.content().objects.get(key).map(|entry| entry.object.clone())?;
        match packed.unpack() {
            Ok(object) => Some(Known::Object(Arc::new(object))),
            Err(why) => Some(Known::Unreadable(Arc::new(packed.unpack().ok()?), why.to_string())),
        }
    }

    /// The keys of all known objects.
    pub fn keys(&self) -> Vec<Key> {
        self.content().objects.keys().cloned().collect()
    }

    /// Reads its own writes: the answer to a status write is known before the watch tells of it.
    ///
    /// Whether it is worth a reconcile: the answer may show a spec that the watch has not told of yet, and will tell
    /// of too late to be a change.
    #[must_use]
    pub fn remember(&self, object: &K) -> bool {
        let written = serde_json::to_value(object).ok().and_then(|object| serde_json::from_value(object).ok());
        let Some(written) = written else { return false };
        let mut content = self.content();
        let new = content.pack(written);
        let Some(known) = content.objects.get_mut(&key(object)) else { return false };
        if known.uid != new.uid || known.object.version() >= new.object.version() {
            return false;
        }
        let is_changed = known.trigger != new.trigger;
        *known = new;
        is_changed
    }

    /// Keeps an object; whether it has changed in a way that is worth a reconcile.
    fn put(&self, object: DynamicObject) -> bool {
        let key = key(&object);
        let mut content = self.content();
        let new = content.pack(object);
        let known = content.objects.get(&key);
        if known.is_some_and(|known| known.uid == new.uid && known.object.version() > new.object.version()) {
            return false;
        }
        let is_changed = known.is_none_or(|known| known.trigger != new.trigger);
        content.objects.insert(key, new);
        is_changed
    }

    fn content(&self) -> MutexGuard<'_, Content> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn digest(value: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    value.hash(&mut hasher);
    hasher.finish()
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
                self.primary.content().objects.remove(&key(&object));
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
        let is_in_scope = |key: &Key| self.namespace.as_deref().is_none_or(|namespace| *namespace == *key.0);
        let mut content = self.primary.content();
        let departed: Vec<Key> =
            content.objects.keys().filter(|key| is_in_scope(key) && !listed.contains(*key)).cloned().collect();
        for key in &departed {
            content.objects.remove(key);
        }
        departed
    }
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
        keys.into_iter().map(|(_, name)| name.to_string()).collect()
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
        assert!(!follower.primary.remember(&with(1, "11").try_parse().unwrap()), "our own status");
        // Somebody changed the spec (12), and our status write came after it (13).
        assert!(follower.primary.remember(&with(2, "13").try_parse().unwrap()));
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
