//! Takes the next step of a StatefulSet's rollout: its controller leaves the pods to us. One step a reconcile; what comes
//! next is decided from what is seen then.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use kube::Resource as _;
use kube::api::ResourceExt;
use memcached_api::Memcached;
use memcached_api::memcached::reason;
use memcached_core::memcached::rollout::{
    self, AgentStatus, Effect, LivePod, Pods, RefusalNote, Target, build_proof, proof_name, revision_label, verdict,
};
use memcached_core::memcached::status::Advance;
use memcached_core::memcached::{Observed, Validated};
use operator_kit::children::{ApplyError, Children, Eviction};
use operator_kit::controller::Context;
use operator_kit::event::Deed;
use operator_model::resource::{CONTROLLER_REVISION, POD};
use operator_model::rollout::{Change, Proof, Slot, Step, next};

use super::agent::Agents;

/// How soon a pod that is being changed is looked at again: of a restart inside of its container nobody tells.
const SOON: Duration = Duration::from_millis(500);

/// How soon a rollout that waits for somebody else is looked at again.
const LATER: Duration = Duration::from_secs(10);

/// How long a proof that failed is believed: what was missing may be there by then.
const BELIEVED: SignedDuration = SignedDuration::from_mins(5);

/// How far it got.
#[derive(Debug, Default)]
pub struct Advanced {
    pub advance: Advance,
    pub requeue: Option<Duration>,
    pub problem: Option<ApplyError>,
}

/// The rollouts of all caches.
#[derive(Default)]
pub struct Rollouts {
    agents: Agents,
    /// The revisions for which pods are going to be replaced, by uid of the pod: that is told before it is done.
    announced: Mutex<HashMap<String, String>>,
}

/// One cache on its way.
struct Turn<'a> {
    cache: &'a Memcached,
    valid: &'a Validated,
    children: &'a Children<'a>,
    context: &'a Context<Memcached>,
    rollouts: &'a Rollouts,
    templates: BTreeMap<String, PodTemplateSpec>,
    slots: Vec<Option<LivePod>>,
    desired: String,
    now: Timestamp,
}

impl Rollouts {
    /// Takes the next step, if there is one to take.
    pub async fn advance(
        &self,
        valid: &Validated,
        observed: &Observed,
        stateful_set: Option<&StatefulSet>,
        children: &Children<'_>,
        context: &Context<Memcached>,
    ) -> Advanced {
        let Some(stateful_set) = stateful_set.filter(|_| !valid.paused) else { return Advanced::default() };
        let Some(desired) = rollout::desired_revision(stateful_set) else { return Advanced::default() };
        let is_pending = observed.servers().any(|pod| rollout::is_pending(pod, desired));
        if !is_pending {
            let problem = delete_proofs(observed, children, &[]).await.err();
            return Advanced { problem, ..Advanced::default() };
        }
        let turn = Turn {
            cache: &observed.cache,
            valid,
            children,
            context,
            rollouts: self,
            templates: BTreeMap::new(),
            slots: Vec::new(),
            desired: desired.to_owned(),
            now: Timestamp::now(),
        };
        match Box::pin(turn.take(observed, stateful_set)).await {
            Ok(advanced) => advanced,
            Err(error) => Advanced { problem: Some(error), ..Advanced::default() },
        }
    }

    /// What an agent says, in words if it does not.
    pub async fn ask(&self, pod: &Pod) -> Result<AgentStatus, String> {
        self.agents.ask(pod).await
    }

    /// Whether it was told before that a pod is going to be replaced for a revision.
    fn is_announced(&self, pod: &Pod, revision: &str) -> bool {
        let mut announced = self.announced.lock().unwrap_or_else(PoisonError::into_inner);
        // Only against saying it twice.
        if announced.len() > 10_000 {
            announced.clear();
        }
        announced.insert(pod.uid().unwrap_or_default(), revision.to_owned()).as_deref() == Some(revision)
    }
}

/// Deletes pods that proved something; those of `kept` are still needed.
async fn delete_proofs(observed: &Observed, children: &Children<'_>, kept: &[String]) -> Result<(), ApplyError> {
    for proof in observed.proofs().filter(|proof| !kept.contains(&proof.name_any())) {
        if let Some(live) = read_pod(children, &proof.name_any()).await? {
            children.delete_pod(&live).await?;
        }
    }
    Ok(())
}

pub async fn read_pod(children: &Children<'_>, name: &str) -> Result<Option<Pod>, ApplyError> {
    Ok(children.read(POD, name).await?.and_then(|object| object.try_parse().ok()))
}

impl Advanced {
    fn stopped(why: &str) -> Self {
        let advance = Advance { doing: None, stopped: Some(format!("rollout stopped: {why}")) };
        Self { advance, requeue: Some(LATER), problem: None }
    }

    fn doing(what: String, requeue: Duration) -> Self {
        Self { advance: Advance { doing: Some(what), stopped: None }, requeue: Some(requeue), problem: None }
    }

    /// A pod has gone in the meantime.
    fn again() -> Self {
        Self { requeue: Some(SOON), ..Self::default() }
    }
}

impl Turn<'_> {
    async fn take(mut self, observed: &Observed, stateful_set: &StatefulSet) -> Result<Advanced, ApplyError> {
        Box::pin(self.look(observed, stateful_set)).await?;
        let pods = Pods { slots: &self.slots, templates: &self.templates, desired: &self.desired, now: self.now };
        let slots = pods.slots();
        let step = next(&slots, rollout::pace(self.valid));
        tracing::debug!(cache = %self.cache.name_any(), ?step, "rollout");
        match step {
            Step::Done => Ok(Advanced::default()),
            Step::Wait(wait) => Ok(self.wait(&slots, wait)),
            Step::Stop(why) => Ok(Advanced::stopped(&why)),
            Step::Prove(slot) => self.prove(slot, observed).await,
            Step::Change(slot) => Box::pin(self.change(slot, &slots, None)).await,
            Step::Confirm(slot) => self.confirm(slot).await,
            Step::Recreate(slot) => self.recreate(slot).await,
            Step::Revert(slot, why) => self.change(slot, &slots, Some(why)).await,
        }
    }

    /// Reads the pods that are to be changed, what they were made of, and asks their agents.
    async fn look(&mut self, observed: &Observed, stateful_set: &StatefulSet) -> Result<(), ApplyError> {
        let count = stateful_set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let count = usize::try_from(count).unwrap_or(0);
        self.add_template(&self.desired.clone()).await?;
        let known: BTreeMap<usize, &Pod> =
            observed.servers().filter_map(|pod| Some((rollout::ordinal(pod)?, pod))).collect();
        for slot in 0..count {
            let live = match known.get(&slot) {
                Some(pod) => read_pod(self.children, &pod.name_any()).await?,
                None => None,
            };
            let live = match live {
                Some(pod) => Some(Box::pin(self.live(pod)).await?),
                None => None,
            };
            self.slots.push(live);
        }
        Ok(())
    }

    async fn live(&mut self, pod: Pod) -> Result<LivePod, ApplyError> {
        let revisions = [rollout::revision_of(&pod), revision_label(&pod).map(ToOwned::to_owned)];
        for revision in revisions.into_iter().flatten() {
            self.add_template(&revision).await?;
        }
        let is_changing = rollout::change_note(&pod).is_some();
        let agent = if is_changing { Some(self.rollouts.ask(&pod).await) } else { None };
        let proof = match pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref()) {
            Some(node) => {
                let name = proof_name(&self.cache.name_any(), &self.desired, node);
                self.verdict(read_pod(self.children, &name).await?).await?
            }
            None => Proof::Missing,
        };
        Ok(LivePod { pod, agent, proof })
    }

    /// What a proof says. One that failed is not believed for ever.
    async fn verdict(&self, proof: Option<Pod>) -> Result<Proof, ApplyError> {
        let verdict = verdict(proof.as_ref());
        let made = proof.as_ref().and_then(|proof| proof.metadata.creation_timestamp.as_ref());
        let is_old = made.is_some_and(|made| self.now.duration_since(made.0) > BELIEVED);
        match (&verdict, proof) {
            (Proof::Bad(_), Some(proof)) if is_old => self.children.delete_pod(&proof).await?,
            _ => {}
        }
        Ok(verdict)
    }

    /// The template that a revision of the StatefulSet's controller keeps.
    async fn add_template(&mut self, name: &str) -> Result<(), ApplyError> {
        if self.templates.contains_key(name) {
            return Ok(());
        }
        let known = match self.children.get(CONTROLLER_REVISION, name) {
            Some(known) => Some(known),
            None => self.children.read(CONTROLLER_REVISION, name).await?,
        };
        let revision: Option<ControllerRevision> = known.and_then(|known| known.try_parse().ok());
        let template = revision.and_then(|revision| revision.data?.0.pointer("/spec/template").cloned());
        if let Some(template) = template.and_then(|template| serde_json::from_value(template).ok()) {
            self.templates.insert(name.to_owned(), template);
        }
        Ok(())
    }

    fn wait(&self, slots: &[Option<Slot>], wait: Option<Duration>) -> Advanced {
        let is_changing = |slot: &&Option<Slot>| slot.as_ref().is_some_and(|slot| slot.progress.is_some());
        let doing = slots.iter().position(|slot| is_changing(&slot)).map(|slot| {
            let silent = self.slots.get(slot).and_then(|live| match live.as_ref()?.agent.as_ref()? {
                Ok(_) => None,
                Err(error) => Some(format!("; its agent cannot be asked: {error}")),
            });
            format!("waiting for pod {:?} to be ready as changed{}", self.pod_name(slot), silent.unwrap_or_default())
        });
        let requeue = if doing.is_some() { SOON } else { wait.unwrap_or(LATER) };
        Advanced { advance: Advance { doing, stopped: None }, requeue: Some(requeue), problem: None }
    }

    /// An Event about what is done to a pod; a warning unless it keeps what it holds.
    async fn tell(&self, pod: &Pod, action: &str, reason: &str, note: &str) {
        let deed = Deed { action, related: Some(pod.object_ref(&())) };
        let is_warning = !matches!(action, "ChangeLive" | "RestartWarm");
        self.context.shared().events.done(&self.cache.object_ref(&()), deed, is_warning, reason, note).await;
    }

    fn pod_name(&self, slot: usize) -> String {
        format!("{}-{slot}", self.cache.name_any())
    }

    fn pod(&self, slot: usize) -> Option<&Pod> {
        self.slots.get(slot)?.as_ref().map(|live| &live.pod)
    }

    /// The names of the proofs that the pods need, one a node.
    fn proofs(&self) -> Vec<String> {
        let nodes = self.slots.iter().flatten().filter_map(|live| live.pod.spec.as_ref()?.node_name.as_deref());
        nodes.map(|node| proof_name(&self.cache.name_any(), &self.desired, node)).collect()
    }

    /// Tries on the pod's node whether what is desired starts.
    async fn prove(&self, slot: usize, observed: &Observed) -> Result<Advanced, ApplyError> {
        let node = self.pod(slot).and_then(|pod| pod.spec.as_ref()?.node_name.clone());
        let (Some(node), Some(template)) = (node, self.templates.get(&self.desired)) else {
            return Ok(Advanced::doing(format!("waiting for a node for pod {:?}", self.pod_name(slot)), LATER));
        };
        let proof = build_proof(self.valid, &self.desired, template, &node);
        // Of an earlier change, which nobody wants any more.
        delete_proofs(observed, self.children, &self.proofs()).await?;
        self.children.create_pod(&proof).await?;
        Ok(Advanced::doing(format!("trying on node {node:?} whether memcached starts as declared"), LATER))
    }

    /// Changes a pod to what is desired, or, for a reason, back to what it was.
    async fn change(&self, slot: usize, slots: &[Option<Slot>], why: Option<String>) -> Result<Advanced, ApplyError> {
        let Some(pod) = self.pod(slot) else { return Ok(Advanced::again()) };
        let name = self.pod_name(slot);
        let is_serving = slots
            .get(slot)
            .and_then(Option::as_ref)
            .is_some_and(|slot| slot.is_ready && !matches!(slot.change, Change::Live));
        if is_serving
            && why.is_none()
            && let Eviction::Forbidden(words) = self.children.evict_pod(pod, true).await?
        {
            return Ok(Advanced::doing(format!("pod {name:?} may not go now: {words}"), LATER));
        }
        let revision = if why.is_some() { revision_label(pod).unwrap_or_default() } else { &self.desired };
        let from = rollout::revision_of(pod).and_then(|revision| self.templates.get(&revision));
        let (Some(from), Some(to)) = (from, self.templates.get(revision)) else {
            return Ok(Advanced::stopped(&format!(
                "what pod {name:?} was made of is not known any more: delete the pod"
            )));
        };
        let refusal = why.map(|reason| RefusalNote { revision: self.desired.clone(), reason });
        let target = Target { from, revision, to };
        self.children.patch_pod(&name, &rollout::change(pod, &target, refusal.as_ref(), self.now)).await?;
        let effect = rollout::compare(from, to).effect;
        match &refusal {
            None => {
                let note = format!("pod {name:?}: {effect}");
                self.tell(pod, effect.action(), reason::POD_CHANGED, &note).await;
            }
            Some(RefusalNote { reason: why, .. }) => {
                let note = format!("pod {name:?} did not come back and was changed back: {why}");
                self.tell(pod, "Undo", reason::CHANGE_UNDONE, &note).await;
            }
        }
        Ok(Advanced::doing(format!("pod {name:?} is changed: {effect}"), SOON))
    }

    async fn confirm(&self, slot: usize) -> Result<Advanced, ApplyError> {
        let name = self.pod_name(slot);
        if let Some(pod) = self.pod(slot) {
            self.children.patch_pod(&name, &rollout::confirm(pod, &self.desired, self.now)).await?;
        }
        Ok(Advanced::doing(format!("pod {name:?} is as declared"), SOON))
    }

    /// Replaces a pod: told first, done with the next turn.
    async fn recreate(&self, slot: usize) -> Result<Advanced, ApplyError> {
        let Some(pod) = self.pod(slot) else { return Ok(Advanced::again()) };
        let name = self.pod_name(slot);
        let pods = Pods { slots: &self.slots, templates: &self.templates, desired: &self.desired, now: self.now };
        let effect = pods.difference(pod).map(|difference| difference.effect);
        let effect = effect.unwrap_or_else(|| Effect::Recreate(vec!["a template that is not known any more".into()]));
        if !self.rollouts.is_announced(pod, &self.desired) {
            let note = format!("pod {name:?} will be replaced, and what it holds is lost: {effect}");
            self.tell(pod, effect.action(), reason::POD_WILL_BE_REPLACED, &note).await;
            return Ok(Advanced::doing(note, Duration::from_secs(2)));
        }
        match self.children.evict_pod(pod, false).await? {
            Eviction::Allowed => Ok(Advanced::doing(format!("pod {name:?} is being replaced: {effect}"), LATER)),
            Eviction::Forbidden(words) => Ok(Advanced::doing(format!("pod {name:?} may not go now: {words}"), LATER)),
        }
    }
}
