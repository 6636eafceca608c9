//! The agent's own metrics, beside those of memcached.

use crate::exporter::family::{Families, Metric, counter, gauge};

use super::state::{ReloadStatus, Status};

static INFO: Metric = gauge("memcached_agent_info", "The agent, its version as a label.");
static RESTARTS: Metric =
    counter("memcached_agent_restarts_total", "Times memcached was started again in its container.");
static STARTS: Metric = counter("memcached_agent_starts_total", "Starts of memcached, with its items or without.");
static RECOVERED: Metric = gauge("memcached_agent_items_recovered", "Items that the last start of memcached took up.");
static RELOADS: Metric =
    counter("memcached_agent_reloads_total", "Changed certificates and passwords, by whether they were taken.");
static IN_FORCE: Metric =
    gauge("memcached_agent_in_force", "Whether certificates and passwords are those of the files.");
static NOT_AFTER: Metric =
    gauge("memcached_agent_certificate_not_after_seconds", "Until when the shown certificate is good, since 1970.");

/// The metrics of a moment.
#[allow(clippy::cast_precision_loss, reason = "a metric is a float")]
pub fn families(status: &Status) -> Families {
    let mut families = Families::default();
    let memcached = &status.memcached;
    families.add(&INFO, &[("version", status.agent)], 1.0);
    families.add(&RESTARTS, &[], memcached.restarts as f64);
    families.add(&STARTS, &[("start", "warm")], memcached.warm_starts as f64);
    families.add(&STARTS, &[("start", "cold")], memcached.cold_starts as f64);
    families.add(&RECOVERED, &[], memcached.items_recovered as f64);
    for (what, reloaded) in [("certificates", &status.certificates), ("credentials", &status.credentials)] {
        if let Some(ReloadStatus { in_force, reloads, failures, not_after, .. }) = reloaded {
            families.add(&RELOADS, &[("what", what), ("outcome", "taken")], *reloads as f64);
            families.add(&RELOADS, &[("what", what), ("outcome", "refused")], *failures as f64);
            if let Some(in_force) = in_force {
                families.add(&IN_FORCE, &[("what", what)], f64::from(u8::from(*in_force)));
            }
            if let Some(not_after) = not_after {
                families.add(&NOT_AFTER, &[], *not_after as f64);
            }
        }
    }
    families
}
