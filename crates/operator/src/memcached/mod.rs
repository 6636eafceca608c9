//! The kind `Memcached`: observe → validate → build → apply → status → publish.

mod admit;
mod agent;
mod metrics;
mod observe;
mod publish;
mod rollout;
mod secrets;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::ResourceExt;
use memcached_api::memcached::{condition, reason};
use memcached_api::{Memcached, label};
use memcached_core::memcached::build::{Built, RESOURCES, build};
use memcached_core::memcached::rule::Violation;
use memcached_core::memcached::status::{RolloutStatus, StatusInput, status};
use memcached_core::memcached::{Observed, PodDefaults, Validated, secret, validate_observed};
use operator_kit::children::Children;
use operator_kit::controller::{Context, Error, Kind, Outcome, RelatedRoute, Unreadable};
use operator_kit::metrics::{GaugeFamily, Metrics};
use operator_model::problem::{Class, Problem, class_of};
use operator_model::resource::{CONTROLLER_REVISION, POD, ResourceType, Resources};

use metrics::Gauges;
use rollout::{Advanced, Rollouts};
use secrets::Taken;

pub use admit::webhooks;

/// The kind, with the defaults to build by.
pub struct MemcachedKind {
    settings: PodDefaults,
    gauges: Gauges,
    rollouts: Rollouts,
}

impl MemcachedKind {
    pub fn new(settings: PodDefaults, metrics: &Metrics) -> Self {
        Self { settings, gauges: Gauges::new(metrics), rollouts: Rollouts::default() }
    }
}

impl Kind for MemcachedKind {
    type Object = Memcached;
    const NAME: &'static str = "Memcached";
    const CHILDREN: &'static [ResourceType] = RESOURCES;
    const SECRET_KEYS: &'static [&'static str] = &secret::KEYS;
    const POD_ANNOTATIONS: &'static [&'static str] = &[label::CHANGE, label::SECRET_HASH, label::SECRET_HASH_IN_FORCE];
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
        let mut input = StatusInput::of(&observed, validated, &applied, newer_defaults);
        let (advanced, problems) = Box::pin(self.advance(validated, &observed, &mut input, &children, context)).await;
        input.problems.extend(problems.iter().filter(|problem| !problem.is_transient).cloned());
        let now = Timestamp::now();
        let rollout = RolloutStatus::of(&input, now);
        let status = status(cache.status.as_ref(), &input, now);
        self.gauges.show(&input, &rollout, validated);
        let later = publish::publish(&cache, validated, &status, rollout.failure.as_ref(), context).await?;
        // A failure that only time tells is assessed again when it is due.
        let due = rollout.recheck_at().and_then(|at| Duration::try_from(at.duration_since(now)).ok());
        let requeue = later.into_iter().chain(due).chain(advanced).min();
        Ok(Outcome { class: class_of(applied.problems().chain(&problems)), requeue })
    }
}

impl MemcachedKind {
    /// Takes the pods of a StatefulSet one step further, and its Secrets with them; when to come back.
    async fn advance(
        &self,
        validated: Option<&Validated>,
        observed: &Observed,
        input: &mut StatusInput,
        children: &Children<'_>,
        context: &Context<Memcached>,
    ) -> (Option<Duration>, Vec<Problem>) {
        let Some(validated) = validated.filter(|validated| validated.has_agent()) else { return (None, Vec::new()) };
        let stateful_set = input.stateful_set.clone();
        let stateful_set = stateful_set.as_ref();
        let Advanced { advance, requeue, problem } =
            self.rollouts.advance(validated, observed, stateful_set, children, context).await;
        input.advance = advance;
        let taken = match stateful_set {
            Some(stateful_set) => {
                secrets::announce(&self.rollouts, validated, observed, stateful_set, children, context).await
            }
            None => Taken::default(),
        };
        let problems = problem.into_iter().chain(taken.problem).map(|error| children.problem(&error));
        (requeue.into_iter().chain(taken.requeue).min(), problems.chain(taken.refused).collect())
    }
}

/// A spec that cannot work: the children stay as they are, until it changes.
fn invalid(violations: &[Violation]) -> Problem {
    let message = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
    Problem::new(reason::INVALID, message, None::<Class>)
}
