//! What works, but will hurt: told on admission, refused by nobody.

use std::fmt;

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use memcached_api::memcached::reason;
use memcached_api::memcached::spec::{MemcachedSpec, PodDisruptionBudget};

use crate::memcached::build::keeps_apart;
use crate::memcached::pod_defaults::DEFAULT_IMAGE;
use crate::memcached::rule::{fewest, percentage};
use crate::memcached::validate::{Scale, Validated};
use operator_model::{image, quantity};

mod exposure;

/// Something to know before it hurts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warning {
    /// The field, as a path: `spec.resources.limits.memory`.
    pub field: &'static str,
    /// What will happen and what to do.
    pub message: String,
    /// The reason of the Event that tells of it.
    pub reason: &'static str,
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Everything worth a warning in a declaration that can work; one that cannot is refused, and gets none.
pub fn warnings(cache: &Validated) -> Vec<Warning> {
    let all = [memory(cache), tag(cache), exporter(cache), rollout(cache), budget(&cache.spec)];
    all.into_iter().flatten().chain(exposure::warnings(cache)).collect()
}

/// What the process takes in the end, in mebibytes, part by part.
///
/// Measured with memcached 1.6.45: full of small items, `-m 1024` took 1106 and `-m 2048` took 2181. The difference
/// is the hash table, 8 bytes for each 128 of items; while it doubles, the half that it replaces is still there. A
/// thread has its buffers; a connection next to nothing while it is idle, but TLS takes up to 64 KiB of it under load.
struct Need {
    items: i64,
    table: i64,
    threads: i64,
    connections: i64,
}

/// The program itself with its slab of each class.
const PROGRAM: i64 = 16;

impl Need {
    fn of(cache: &Validated) -> Self {
        let items = i64::from(cache.server.max_memory_mb);
        let kibibytes = if cache.tls.is_some() { 64 } else { 2 };
        Self {
            items,
            table: (items * 3 + 31) / 32,
            threads: i64::from(cache.server.threads),
            connections: (i64::from(cache.server.max_connections) * kibibytes + 1023) / 1024,
        }
    }

    fn total(&self) -> i64 {
        self.items + self.table + self.threads + self.connections + PROGRAM
    }
}

fn memory(cache: &Validated) -> Option<Warning> {
    let limit = cache.spec.resources.as_ref()?.limits.as_ref()?.get("memory")?;
    let need = Need::of(cache);
    let limited = i64::try_from(quantity::bytes(limit)? >> 20).ok()?;
    (limited < need.total()).then(|| Warning {
        reason: reason::MEMORY_TIGHT,
        field: "spec.resources.limits.memory",
        message: format!(
            "{} may get the server killed once it is full and busy: it needs about {}Mi for {}Mi of items, {}Mi of hash \
             table, {}Mi for {} connections, {}Mi for threads and {PROGRAM}Mi for itself",
            limit.0,
            need.total(),
            need.items,
            need.table,
            need.connections,
            cache.server.max_connections,
            need.threads
        ),
    })
}

fn tag(cache: &Validated) -> Option<Warning> {
    let is_fixed = cache.image.contains('@') || image::tag(&cache.image).is_some_and(|tag| tag != "latest");
    (!is_fixed).then(|| Warning {
        reason: reason::VERSION_NOT_FIXED,
        field: "spec.image",
        message: format!("{:?} is another version one day: name one, for example {}", cache.image, DEFAULT_IMAGE),
    })
}

fn exporter(cache: &Validated) -> Option<Warning> {
    let image = cache.exporter_image().filter(|_| !cache.is_exported_by_agent())?;
    cache.sasl.as_ref().map(|_| Warning {
        reason: reason::EXPORTER_MAY_BE_BLIND,
        field: "spec.monitoring.exporterImage",
        message: format!("{image:?} has to know how to log in to a cache with passwords, or memcached_up will be 0"),
    })
}

fn rollout(cache: &Validated) -> Option<Warning> {
    (cache.scale == Scale::Fixed(1) && keeps_apart(cache) && !cache.has_agent()).then(|| Warning {
        reason: reason::ROLLOUT_INTERRUPTS,
        field: "spec.replicas",
        message:
            "servers that must keep apart are replaced old one first: with one server, every rollout is an outage \
                  and empties the cache; use 2 or more, or antiAffinityPreset soft"
                .into(),
    })
}

fn budget(spec: &MemcachedSpec) -> Option<Warning> {
    let budget = spec.high_availability.as_ref()?.pod_disruption_budget.as_ref().filter(|budget| budget.enabled)?;
    let warning = |message: &str| {
        let field = "spec.highAvailability.podDisruptionBudget";
        Some(Warning { field, message: message.into(), reason: reason::BUDGET_USELESS })
    };
    let fewest = fewest(spec);
    if blocks_all(budget, fewest) {
        return warning("no server may ever be disrupted: nodes that run one cannot be drained; allow at least one");
    }
    if fewest == 1 {
        return warning("protects nothing while there is one server, which it lets go: use 2 or more");
    }
    None
}

/// Kubernetes rounds percentages up.
fn blocks_all(budget: &PodDisruptionBudget, servers: i32) -> bool {
    let count = |number: &IntOrString| match number {
        IntOrString::Int(count) => *count,
        IntOrString::String(text) => (percentage(text).unwrap_or(0) * servers + 99) / 100,
    };
    let keeps_all = budget.min_available.as_ref().is_some_and(|min| count(min) >= servers);
    servers > 0 && (keeps_all || budget.max_unavailable.as_ref().is_some_and(|max| count(max) == 0))
}

#[cfg(test)]
#[path = "warning_tests.rs"]
mod tests;
