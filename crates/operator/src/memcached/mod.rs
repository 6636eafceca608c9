//! The kind `Memcached`: observe → validate → build → apply → status → publish.

mod admit;
mod metrics;
mod observe;
mod publish;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::ResourceExt;
use memcached_api::Memcached;
use memcached_api::memcached::{condition, reason};
use memcached_core::memcached::build::{Built, RESOURCES, build};
use memcached_core::memcached::rule::Violation;
use memcached_core::memcached::status::{RolloutStatus, StatusInput, status};
use memcached_core::memcached::{PodDefaults, secret, validate_observed};
use operator_kit::controller::{Context, Error, Kind, Outcome, RelatedRoute, Unreadable};
use operator_kit::metrics::{GaugeFamily, Metrics};
use operator_model::problem::{Class, Problem, class_of};
use operator_model::resource::{CONTROLLER_REVISION, POD, ResourceType, Resources};

use metrics::Gauges;

pub use admit::webhooks;

/// The kind, with the defaults to build by.
pub struct MemcachedKind {
    settings: PodDefaults,
    gauges: Gauges,
}

impl MemcachedKind {
    pub fn new(settings: PodDefaults, metrics: &Metrics) -> Self {
        Self { settings, gauges: Gauges::new(metrics) }
    }
}

impl Kind for MemcachedKind {
    type Object = Memcached;
    const NAME: &'static str = "Memcached";
    const CHILDREN: &'static [ResourceType] = RESOURCES;
    const SECRET_KEYS: &'static [&'static str] = &secret::KEYS;
    const UNREADABLE: &'static [Unreadable] =
        &[(condition::DEGRADED, true, reason::INVALID), (condition::READY, false, reason::NOT_READY)];

    fn related(&self) -> Vec<(ResourceType, RelatedRoute)> {
        vec![(POD, observe::instance_of), (CONTROLLER_REVISION, observe::template_of)]
    }

    fn gauges(&self) -> Vec<GaugeFamily> {
        self.gauges.all()
    }

    /// The pipeline; steps that need a client are the ones that wait.
    async fn reconcile(&self, cache: Arc<Memcached>, context: &Context<Memcached>) -> Result<Outcome, Error> {
        let identity = observe::identity(&cache.name_any());
        let children = context.children(&cache, &identity);
        let observed = observe::observe(Arc::clone(&cache), &children, context).await;
        let validated = validate_observed(&cache, &self.settings, &observed);
        let Built { resources, newer_defaults } = match &validated {
            Ok(validated) => build(validated, &observed),
            Err(violations) => Built { resources: Resources::refused(invalid(violations)), ..Built::default() },
        };
        let applied = children.apply(resources).await;
        let validated = validated.as_ref().ok();
        let input = StatusInput::of(&observed, validated, &applied, newer_defaults);
        let now = Timestamp::now();
        let rollout = RolloutStatus::of(&input, now);
        let status = status(cache.status.as_ref(), &input, now);
        self.gauges.show(&input, &rollout, validated);
        let later = publish::publish(&cache, validated, &status, rollout.failure.as_ref(), context).await?;
        // A failure that only time tells is assessed again when it is due.
        let due = rollout.recheck_at().and_then(|at| Duration::try_from(at.duration_since(now)).ok());
        Ok(Outcome { class: class_of(applied.problems()), requeue: later.into_iter().chain(due).min() })
    }
}

/// A spec that cannot work: the children stay as they are, until it changes.
fn invalid(violations: &[Violation]) -> Problem {
    let message = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Problem::new(reason::INVALID, message, None::<Class>)
}
