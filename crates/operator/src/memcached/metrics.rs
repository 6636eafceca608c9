//! The metrics of a `Memcached`: series of each object, removed with it.

use memcached_core::memcached::Validated;
use memcached_core::memcached::status::{RolloutStatus, StatusInput};
use operator_kit::metrics::{GaugeFamily, Metrics};

/// One family each.
pub struct Gauges {
    info: GaugeFamily,
    desired: GaugeFamily,
    ready: GaugeFamily,
    updated: GaugeFamily,
}

impl Gauges {
    pub fn new(metrics: &Metrics) -> Self {
        let gauge = |name, help| metrics.gauge_family(name, help);
        Self {
            info: gauge("instance_info", "A cache, with its image and version"),
            desired: gauge("instance_replicas_desired", "How many servers a cache is to have"),
            ready: gauge("instance_replicas_ready", "How many servers of a cache are ready"),
            updated: gauge("instance_replicas_updated", "How many servers of a cache are as declared"),
        }
    }

    pub fn all(&self) -> Vec<GaugeFamily> {
        // One that is not named here would not go with its object.
        let Self { info, desired, ready, updated } = self;
        [info, desired, ready, updated].map(GaugeFamily::clone).into()
    }

    pub fn show(&self, input: &StatusInput, rollout: &RolloutStatus, valid: Option<&Validated>) {
        let (namespace, name) = (&input.namespace, &input.name);
        if let Some(valid) = valid {
            let version = valid.version.clone().unwrap_or_default();
            self.info.set_only(namespace, name, &[("image", valid.image.as_str()), ("version", &version)], 1.0);
        }
        self.desired.set(namespace, name, &[], f64::from(rollout.desired));
        self.updated.set(namespace, name, &[], f64::from(rollout.updated));
        self.ready.set(namespace, name, &[], f64::from(rollout.ready));
    }
}
