//! The kind `Memcached`: observe → validate → build → apply → status → publish.

mod admit;
mod apply;
mod context;
mod control;
mod observe;
mod publish;

use std::sync::Arc;
use std::time::{Duration, Instant};

use kube::api::ResourceExt;
use kube::runtime::controller::Action;
use memcached_api::Memcached;
use memcached_core::memcached::{Observed, revision, secret, validate_observed, validate_with};
use operator_kit::backoff::Class;

use context::Context;

pub use admit::webhooks;
pub use control::run;

/// How long a single request may take: less than it takes for another to lead.
const PATIENCE: Duration = Duration::from_secs(5);

/// The kind in metrics.
const KIND: &str = "Memcached";

/// What kept a whole round from being finished.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The status could not be written.
    #[error("failed to write the status: {0}")]
    Status(Box<kube::Error>),
    /// The API server did not answer in time.
    #[error("the API server did not answer within {} s", PATIENCE.as_secs())]
    NoAnswer,
    /// Another process leads.
    #[error(transparent)]
    NotLeader(#[from] operator_kit::lease::NotLeader),
}

impl Error {
    fn reason(&self) -> &'static str {
        match self {
            Self::Status(_) => "Status",
            Self::NoAnswer => "NoAnswer",
            Self::NotLeader(_) => "NotLeader",
        }
    }
}

fn is_going(cache: &Memcached) -> bool {
    cache.metadata.deletion_timestamp.is_some()
}

async fn reconcile(cache: Arc<Memcached>, context: Arc<Context>) -> Result<Action, Error> {
    let (namespace, name) = (cache.namespace().unwrap_or_default(), cache.name_any());
    context.dequeued(&(namespace.clone(), name.clone()));
    if is_going(&cache) {
        // Garbage collection takes the children; touching them now would bring them back.
        context.forget(&namespace, &name);
        return Ok(Action::await_change());
    }
    let began = Instant::now();
    let outcome = Box::pin(drive(&cache, &context)).await;
    let result = if outcome.is_ok() { "success" } else { "error" };
    context.metrics.reconciled(KIND, result, began.elapsed());
    outcome
}

/// One round of the pipeline.
async fn drive(cache: &Memcached, context: &Context) -> Result<Action, Error> {
    let validated = validate_with(cache, &context.settings);
    let observed = observe::observe(cache, validated.as_ref().ok(), context).await;
    // Where nothing is declared, what was found running decides.
    let found = Observed {
        deployment: observed.own_deployment(cache).cloned(),
        revisions: observed.revisions.clone(),
        ..Observed::default()
    };
    let validated = validate_observed(cache, &context.settings, &found);
    let applied = match &validated {
        Ok(validated) => {
            let hash = secret::hash(validated, &observed.secrets);
            let in_force =
                revision::decide(validated, hash.as_deref(), &observed.revisions, observed.reflecting(cache));
            apply::apply(validated, &in_force, &observed, context).await
        }
        Err(violations) => apply::Applied::refused(violations),
    };
    let later = publish::publish(cache, validated.as_ref().ok(), &observed, &applied, context).await?;
    let key = format!("{}/{}", cache.namespace().unwrap_or_default(), cache.name_any());
    Ok(match applied.class {
        None => {
            context.backoff.reset(&key);
            later.map_or_else(Action::await_change, Action::requeue)
        }
        Some(class) => Action::requeue(context.backoff.next(&key, class)),
    })
}

#[allow(clippy::needless_pass_by_value, reason = "the signature is the controller's")]
fn on_error(cache: Arc<Memcached>, error: &Error, context: Arc<Context>) -> Action {
    let key = format!("{}/{}", cache.namespace().unwrap_or_default(), cache.name_any());
    context.metrics.error(KIND, error.reason());
    tracing::warn!(cache = key, %error, "trying again");
    Action::requeue(context.backoff.next(&key, Class::Retry))
}
