//! How far the watches of a kind have come, namespace by namespace: one that is refused in one namespace does not keep
//! the objects of all others from being managed.

use std::sync::atomic::{AtomicU8, Ordering};

use crate::watch::WatchFailure;

/// How far a watch has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum WatchState {
    /// Its first list is on its way.
    Starting,
    /// Everything there is has been seen once.
    Synced,
    /// The cluster lacks the kind, which is allowed.
    Missing,
    /// Its first list was refused.
    Refused,
}

/// The watches of one kind: one of all namespaces, or one a namespace.
#[derive(Debug)]
pub struct WatchedNamespaces {
    watches: Vec<(Option<String>, AtomicU8)>,
}

impl WatchedNamespaces {
    /// One watch for each of these namespaces; none of them means one for all.
    pub fn new(namespaces: &[String]) -> Self {
        let named = namespaces.iter().cloned().map(Some);
        let all = namespaces.is_empty().then_some(None);
        let starting = |namespace| (namespace, AtomicU8::new(WatchState::Starting as u8));
        Self { watches: named.chain(all).map(starting).collect() }
    }

    /// The namespace of each watch; none stands for all.
    pub fn namespaces(&self) -> Vec<Option<String>> {
        self.watches.iter().map(|(namespace, _)| namespace.clone()).collect()
    }

    /// The watch of a namespace, or of all, has come so far. What was seen once stays seen.
    pub fn set(&self, namespace: Option<&String>, state: WatchState) {
        for (_, known) in self.watches.iter().filter(|(watched, _)| watched.as_ref() == namespace) {
            let is_seen = known.load(Ordering::Relaxed) == WatchState::Synced as u8;
            if !(is_seen && state == WatchState::Refused) {
                known.store(state as u8, Ordering::Relaxed);
            }
        }
    }

    /// The watch of a namespace, or of all, failed. Whether that is expected: who trims the operator's rights to a kind
    /// that not every cluster has means to do without it.
    pub fn failed(&self, namespace: Option<&String>, failure: WatchFailure, is_optional: bool) -> bool {
        let is_refused = failure != WatchFailure::Other;
        if is_refused {
            self.set(namespace, if is_optional { WatchState::Missing } else { WatchState::Refused });
        }
        is_refused && is_optional
    }

    /// Whether no watch is on its way any more.
    pub fn is_settled(&self) -> bool {
        self.watches.iter().all(|(_, state)| state.load(Ordering::Relaxed) != WatchState::Starting as u8)
    }

    /// Whether all that there is in a namespace has been seen, or cannot exist.
    pub fn is_synced_in(&self, namespace: &str) -> bool {
        self.covering(namespace).all(|state| state == WatchState::Synced as u8 || state == WatchState::Missing as u8)
    }

    /// Whether the kind cannot be had in a namespace: the cluster lacks it, or it may not be listed there.
    pub fn is_missing_in(&self, namespace: &str) -> bool {
        self.covering(namespace).any(|state| state == WatchState::Missing as u8)
    }

    fn covering(&self, namespace: &str) -> impl Iterator<Item = u8> {
        let is_covering = move |watched: &Option<String>| watched.as_deref().is_none_or(|name| name == namespace);
        let covering = self.watches.iter().filter(move |(watched, _)| is_covering(watched));
        covering.map(|(_, state)| state.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_that_is_refused_holds_up_itself_alone() {
        let names = ["a".to_owned(), "b".to_owned()];
        let [a, b] = &names;
        let watches = WatchedNamespaces::new(&names);
        watches.set(Some(a), WatchState::Synced);
        assert!(!watches.is_settled(), "b may come at any moment");
        watches.set(Some(b), WatchState::Refused);
        assert!(watches.is_settled() && watches.is_synced_in("a") && !watches.is_synced_in("b"));
        watches.set(Some(b), WatchState::Synced);
        watches.set(Some(b), WatchState::Refused);
        assert!(watches.is_synced_in("b"), "what was seen is known");
        watches.set(Some(a), WatchState::Missing);
        assert!(watches.is_missing_in("a") && !watches.is_missing_in("b"), "a kind that may be listed in b alone");
    }

    #[test]
    fn a_watch_of_all_namespaces_covers_each_of_them() {
        let watches = WatchedNamespaces::new(&[]);
        assert!(!watches.is_synced_in("a"));
        watches.set(None, WatchState::Missing);
        assert!(watches.is_synced_in("a") && watches.is_missing_in("a"));
        watches.set(None, WatchState::Synced);
        assert!(watches.is_synced_in("b") && !watches.is_missing_in("b"));
    }
}
