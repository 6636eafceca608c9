//! Makes the children as they are to be; one that fails does not keep the others from being tried.

use kube::api::DynamicObject;
use memcached_api::label;
use memcached_api::memcached::reason;
use memcached_core::memcached::build::{self, Kind, Prepared, labels, owner, prepare_revision};
use memcached_core::memcached::revision::{InForce, outdated};
use memcached_core::memcached::rule::Violation;
use memcached_core::memcached::status::Problem;
use memcached_core::memcached::validate::Scale;
use memcached_core::memcached::{Validated, secret};
use operator_kit::apply::{ApplyError, Operation, Wish, owns_field};
use operator_kit::backoff::Class;
use serde_json::{Value, json};

use super::KIND;
use super::context::{Context, resource};
use super::observe::Observed;

/// What came of it.
#[derive(Default)]
pub struct Applied {
    /// The Deployment as it is now.
    pub deployment: Option<DynamicObject>,
    /// What stands in the way.
    pub problems: Vec<Problem>,
    /// How to go on; none if there is nothing to do until something changes.
    pub class: Option<Class>,
    /// In what this version would build the pods differently.
    pub newer_defaults: Vec<String>,
    /// Not even the template could be written down.
    pub is_unbegun: bool,
}

impl Applied {
    /// A declaration that cannot work: the children stay as they are.
    pub fn refused(violations: &[Violation]) -> Self {
        let message = violations.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ");
        let problems = vec![Problem { reason: reason::INVALID, message }];
        Self { problems, class: None, ..Self::default() }
    }

    fn problem(&mut self, reason: &'static str, message: String, class: Class) {
        self.problems.push(Problem { reason, message });
        // The most hopeful decides when to look again.
        let rank = |class: Class| match class {
            Class::Retry => 0,
            Class::Wait => 1,
            Class::Bug => 2,
            Class::Invalid => 3,
        };
        self.class = Some(self.class.map_or(class, |old| if rank(class) < rank(old) { class } else { old }));
    }
}

/// Applies everything that a declaration asks for and removes what it no longer asks for.
pub async fn apply(cache: &Validated, in_force: &InForce, observed: &Observed, context: &Context) -> Applied {
    let mut applied = Applied { newer_defaults: in_force.newer_defaults.clone(), ..Applied::default() };
    for message in secret::missing(cache, &observed.secrets) {
        // Its watch wakes us.
        applied.problems.push(Problem { reason: reason::SECRET_NOT_FOUND, message });
    }
    for message in &observed.unreadable {
        context.metrics.error(KIND, reason::SECRET_UNREADABLE);
        applied.problem(reason::SECRET_UNREADABLE, message.clone(), Class::Retry);
    }
    if cache.paused {
        return applied;
    }
    let round = Round { cache, context };
    for kind in build::build(cache, &in_force.template, None).unwanted {
        if let Some(live) = observed.children.get(&kind) {
            round.delete(kind, live, &mut applied).await;
        }
    }
    let revision = in_force.new_revision.clone().or_else(|| observed.orphaned_revision(cache));
    if let Some(revision) = revision.as_ref().and_then(prepare_revision)
        && !round.apply(&revision, None, &mut applied).await
    {
        // Without its revision a template must not be used: nobody would know what it was built from.
        applied.is_unbegun = true;
        return applied;
    }
    let deployment = round.settle_count(observed, &mut applied).await;
    let replicas = deployment.as_ref().and_then(|live| replicas(cache, live.as_ref()));
    for child in &build::build(cache, &in_force.template, replicas).wanted {
        let known = match (child.kind, &deployment) {
            (Kind::Deployment, Some(live)) => live.clone(),
            (Kind::Deployment, None) => continue,
            _ => observed.children.get(&child.kind).cloned(),
        };
        round.apply(child, known, &mut applied).await;
    }
    round.prune(observed, &mut applied).await;
    applied
}

fn running(live: &DynamicObject) -> Option<i32> {
    live.data.pointer("/spec/replicas").and_then(Value::as_i64).and_then(|count| i32::try_from(count).ok())
}

/// The count to send: the declared one; none while an autoscaler decides; else whatever runs.
fn replicas(cache: &Validated, live: Option<&DynamicObject>) -> Option<i32> {
    match &cache.scale {
        Scale::Auto(_) => None,
        Scale::Fixed(_) if cache.spec.replicas.is_none() => live.and_then(running).or(cache.fixed_replicas()),
        Scale::Fixed(count) => Some(*count),
    }
}

struct Round<'a> {
    cache: &'a Validated,
    context: &'a Context,
}

impl Round<'_> {
    async fn apply(&self, child: &Prepared, known: Option<DynamicObject>, applied: &mut Applied) -> bool {
        if child.kind.is_optional() && self.context.is_absent(child.kind) {
            let (group, _, kind, _) = child.kind.resource();
            let message = format!(
                "{kind} is asked for, but {group} is not installed in this cluster: install it, or turn that off"
            );
            applied.problem(reason::KIND_MISSING, message, Class::Wait);
            return false;
        }
        let written = self.wish(child.kind, &child.name, &child.object, async |wish| {
            self.context.applier.apply(&wish, known.clone()).await
        });
        match written.await {
            Ok((object, operation)) => {
                if operation != Operation::Unchanged {
                    self.context.metrics.resource(child.kind.name(), operation.name());
                    tracing::info!(
                        cache = self.cache.name,
                        namespace = self.cache.namespace,
                        kind = child.kind.name(),
                        name = child.name,
                        operation = operation.name()
                    );
                    self.context.remember(child.kind, object.clone());
                }
                if child.kind == Kind::Deployment {
                    applied.deployment = Some(object);
                }
                true
            }
            Err(error) => {
                self.fail(&error, applied);
                false
            }
        }
    }

    async fn delete(&self, kind: Kind, live: &DynamicObject, applied: &mut Applied) {
        let name = kind.child_name(&self.cache.name);
        let deleted = self.wish(kind, &name, &Value::Null, async |wish| self.context.applier.delete(&wish, live).await);
        match deleted.await {
            Ok(true) => self.context.metrics.resource(kind.name(), "deleted"),
            Ok(false) => {}
            Err(error) => self.fail(&error, applied),
        }
    }

    /// The Deployment, if any, once its count is safe to work with; none at all if it is not.
    async fn settle_count(&self, observed: &Observed, applied: &mut Applied) -> Option<Option<DynamicObject>> {
        let cached = observed.children.get(&Kind::Deployment).cloned();
        let manager = self.context.applier.manager();
        let owns_count = |live: &DynamicObject| owns_field(live, manager, &["spec", "replicas"]);
        let settled = self.wish(Kind::Deployment, &self.cache.name, &Value::Null, async |wish| {
            let writer = &self.context.applier;
            // Somebody else's count is only as good as it is fresh.
            let is_fresh = self.cache.spec.replicas.is_some() || cached.as_ref().is_some_and(owns_count);
            let live = if is_fresh { cached.clone() } else { writer.read(&wish).await? };
            let Some(live) = live else { return Ok(None) };
            if !writer.is_ours(&wish, &live) {
                return Ok(Some(live));
            }
            let live = writer.take_over(&wish, live).await?;
            if matches!(self.cache.scale, Scale::Auto(_)) && owns_count(&live) {
                // Dropping the count from our apply would reset it to one: it moves to the scale subresource first.
                let scale = json!({
                    "apiVersion": "autoscaling/v1",
                    "kind": "Scale",
                    "metadata": {"name": self.cache.name, "namespace": self.cache.namespace},
                    "spec": {"replicas": running(&live)},
                });
                writer.apply_subresource(&wish, "scale", &scale).await?;
                return writer.read(&wish).await;
            }
            Ok(Some(live))
        });
        match settled.await {
            Ok(live) => Some(live),
            Err(error) => {
                self.fail(&error, applied);
                None
            }
        }
    }

    /// Removes revisions that nobody looks back at any more.
    async fn prune(&self, observed: &Observed, applied: &mut Applied) {
        for old in outdated(&observed.revisions) {
            let Some(name) = old.metadata.name.as_deref() else { continue };
            let live = observed.revision_objects.iter().find(|object| object.metadata.name.as_deref() == Some(name));
            let Some(live) = live else { continue };
            let deleted = self
                .wish(Kind::Revision, name, &Value::Null, async |wish| self.context.applier.delete(&wish, live).await);
            if let Err(error) = deleted.await {
                self.fail(&error, applied);
            }
        }
    }

    async fn wish<T>(&self, kind: Kind, name: &str, object: &Value, act: impl AsyncFnOnce(Wish<'_>) -> T) -> T {
        let resource = resource(kind);
        let owner = owner(self.cache);
        let all = labels(&self.cache.name);
        let labels: Vec<(&str, &str)> = match kind {
            Kind::Revision => vec![(label::TEMPLATE_OF, self.cache.name.as_str())],
            _ => all.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect(),
        };
        let namespace = self.cache.namespace.as_str();
        act(Wish { resource: &resource, namespace, name, object, owner: &owner, labels: &labels }).await
    }

    fn fail(&self, error: &ApplyError, applied: &mut Applied) {
        let (reason, class) = match error {
            ApplyError::Foreign { .. } => (reason::NAME_TAKEN, Class::Wait),
            ApplyError::Api { .. } => (reason::REFUSED, Class::Retry),
            ApplyError::Timeout { .. } | ApplyError::NotLeader(_) => (reason::DEGRADED, Class::Retry),
        };
        self.context.metrics.error(KIND, reason);
        applied.problem(reason, error.to_string(), class);
    }
}
