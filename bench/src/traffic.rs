//! What an operator asked the API server for, sorted by why: work on objects, or the price of being there.
//! Leases, Events, first lists, watches and discovery are told apart, so that work can be divided by objects.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Requests by verb and resource, as the audit log counts them.
pub type Counts = BTreeMap<(String, String), usize>;

/// Why a request was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Lease,
    Event,
    Watch,
    Discovery,
    Read,
    StatusWrite,
    Write,
}

/// The requests of a subject.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Traffic {
    /// All of them by `verb resource`.
    pub requests: BTreeMap<String, usize>,
    /// Single objects read.
    pub reads: usize,
    /// Changes of objects, statuses among them; neither Leases nor Events.
    pub writes: usize,
    /// Changes of the status of a `Memcached`.
    pub status_writes: usize,
    /// Everything about Leases.
    pub leases: usize,
    /// Everything about Events.
    pub events: usize,
    /// Lists and watches, as they open every store.
    pub lists_and_watches: usize,
    /// What asks for kinds and rights.
    pub discovery: usize,
    /// The most requests in one second.
    #[serde(default)]
    pub busiest_second: usize,
}

impl Traffic {
    /// Sorts what was counted.
    pub fn of(counts: Counts) -> Self {
        let mut traffic = Self::default();
        traffic.add(counts);
        traffic
    }

    /// Adds what another user of the same subject did.
    pub fn add(&mut self, counts: Counts) {
        for ((verb, resource), count) in counts {
            match purpose(&verb, &resource) {
                Purpose::Lease => self.leases += count,
                Purpose::Event => self.events += count,
                Purpose::Watch => self.lists_and_watches += count,
                Purpose::Discovery => self.discovery += count,
                Purpose::Read => self.reads += count,
                Purpose::Write => self.writes += count,
                Purpose::StatusWrite => {
                    self.writes += count;
                    self.status_writes += count;
                }
            }
            *self.requests.entry(format!("{verb} {resource}")).or_default() += count;
        }
    }

    /// Requests for the sake of objects: reads and writes.
    pub fn work(&self) -> usize {
        self.reads + self.writes
    }

    /// Requests for the sake of being there.
    pub fn upkeep(&self) -> usize {
        self.leases + self.events + self.lists_and_watches + self.discovery
    }
}

fn purpose(verb: &str, resource: &str) -> Purpose {
    match (verb, resource) {
        (_, "leases") => Purpose::Lease,
        (_, "events") => Purpose::Event,
        // Reviews are questions, though they are posted.
        (_, other) if other.starts_with('/') || other.ends_with("reviews") => Purpose::Discovery,
        ("list" | "watch", _) => Purpose::Watch,
        ("get", _) => Purpose::Read,
        (_, "memcacheds/status") => Purpose::StatusWrite,
        _ => Purpose::Write,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(all: &[(&str, &str, usize)]) -> Counts {
        all.iter().map(|(verb, resource, count)| ((verb.to_string(), resource.to_string()), *count)).collect()
    }

    #[test]
    fn work_is_told_from_upkeep() {
        let traffic = Traffic::of(counts(&[
            ("get", "deployments", 4),
            ("create", "deployments", 1),
            ("patch", "services", 2),
            ("patch", "memcacheds/status", 3),
            ("update", "leases", 10),
            ("create", "events", 20),
            ("list", "pods", 1),
            ("watch", "pods", 2),
            ("get", "/apis", 1),
            ("create", "selfsubjectaccessreviews", 1),
        ]));
        assert_eq!((traffic.reads, traffic.writes, traffic.status_writes), (4, 6, 3));
        assert_eq!((traffic.work(), traffic.upkeep()), (10, 35));
        assert_eq!(traffic.requests["patch memcacheds/status"], 3);
    }

    #[test]
    fn two_replicas_are_added_up() {
        let mut traffic = Traffic::of(counts(&[("create", "services", 1)]));
        traffic.add(counts(&[("create", "services", 2), ("update", "leases", 1)]));
        assert_eq!((traffic.writes, traffic.leases, traffic.requests["create services"]), (3, 1, 3));
    }
}
