//! One step of a rollout: what is seen of the pods now, and what is done to one of them.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::apps::v1::{ControllerRevision, StatefulSet};
use k8s_openapi::api::core::v1::{Pod, PodTemplateSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::Resource as _;
use kube::api::ResourceExt;
use memcached_api::Memcached;
use memcached_api::memcached::reason;
use memcached_core::memcached::rollout::{
    self, Effect, LivePod, Pods, RefusalNote, Target, build_proof, proof_name, revision_label, verdict,
};
use memcached_core::memcached::status::Advance;
use memcached_core::memcached::{Observed, Validated};
use operator_kit::children::{ApplyError, Children, Eviction};
use operator_kit::controller::Context;
use operator_kit::event::Deed;
use operator_model::resource::CONTROLLER_REVISION;
use operator_model::rollout::{Change, Proof, Slot, Step, next};

use super::{Advanced, LATER, Rollouts, SOON, delete_proofs, is_controlled_by, read_pod};

/// How long a proof that failed is believed: what was missing may be there by then.
const BELIEVED: SignedDuration = SignedDuration::from_mins(5);

/// One cache on its way.
pub struct Turn<'a> {
    pub cache: &'a Memcached,
    pub valid: &'a Validated,
    pub children: &'a Children<'a>,
    pub context: &'a Context<Memcached>,
    pub rollouts: &'a Rollouts,
    pub templates: BTreeMap<String, PodTemplateSpec>,
    pub slots: Vec<Option<LivePod>>,
    pub desired: String,
    /// The uid of the StatefulSet.
    pub stateful_set: String,
    pub now: Timestamp,
}

fn may_not_go(pod: &str, words: &str) -> String {
    format!("pod {pod:?} may not go now: {words}; see kubectl get poddisruptionbudgets")
}

impl Turn<'_> {
    pub async fn take(mut self, observed: &Observed, stateful_set: &StatefulSet) -> Result<Advanced, ApplyError> {
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

    /// Reads the pods that are not as desired, what they were made of, and asks their agents.
    async fn look(&mut self, observed: &Observed, stateful_set: &StatefulSet) -> Result<(), ApplyError> {
        let count = stateful_set.spec.as_ref().and_then(|spec| spec.replicas).unwrap_or(1);
        let count = usize::try_from(count).unwrap_or(0);
        self.add_template(&self.desired.clone()).await?;
        let known: BTreeMap<String, &Pod> = observed.servers().map(|pod| (pod.name_any(), pod)).collect();
        // When a pod became ready is not in a store.
        let is_paced = !rollout::pace(self.valid).pause.is_zero();
        for slot in 0..count {
            let name = self.pod_name(slot);
            let live = match known.get(&name) {
                None => None,
                Some(pod) if !is_paced && !rollout::is_pending(pod, &self.desired) => {
                    let pod = (*pod).clone();
                    Some(LivePod { pod, agent: None, proof: Proof::Missing, image: None })
                }
                Some(_) => match read_pod(self.children, &name).await? {
                    // One of that name that somebody else made is left alone.
                    Some(pod) if is_controlled_by(&pod, stateful_set) => Some(Box::pin(self.live(pod)).await?),
                    _ => None,
                },
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
        let (proof, image) = self.proof_of(&pod).await?;
        Ok(LivePod { pod, agent, proof, image })
    }

    /// Whether what is desired starts on the node of a pod, and memcached's image as it was tried there.
    async fn proof_of(&self, pod: &Pod) -> Result<(Proof, Option<String>), ApplyError> {
        let node = pod.spec.as_ref().and_then(|spec| spec.node_name.as_deref());
        let is_as_desired = rollout::revision_of(pod).as_deref() == Some(self.desired.as_str());
        let Some(node) = node.filter(|_| !is_as_desired) else { return Ok((Proof::Missing, None)) };
        let name = proof_name(&self.cache.name_any(), &self.desired, node);
        let proof = read_pod(self.children, &name).await?;
        let owner = self.cache.uid();
        let is_ours = |pod: &Pod| pod.owner_references().iter().any(|of| Some(&of.uid) == owner.as_ref());
        if proof.as_ref().is_some_and(|other| !is_ours(other)) {
            return Ok((Proof::Bad(format!("pod {name:?} is not ours: delete it")), None));
        }
        let image = proof.as_ref().and_then(rollout::server_image);
        Ok((self.verdict(proof).await?, image))
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
        // What somebody else has written keeps nothing of ours.
        let known = known.filter(|known| self.is_of_stateful_set(known.owner_references()));
        let revision: Option<ControllerRevision> = known.and_then(|known| known.try_parse().ok());
        let template = revision.and_then(|revision| revision.data?.0.pointer("/spec/template").cloned());
        if let Some(template) = template.and_then(|template| serde_json::from_value(template).ok()) {
            self.templates.insert(name.to_owned(), template);
        }
        Ok(())
    }

    fn is_of_stateful_set(&self, owners: &[OwnerReference]) -> bool {
        owners.iter().any(|owner| owner.controller == Some(true) && owner.uid == self.stateful_set)
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
        let is_proven = |slot: &&Slot| slot.change == Change::InPlace(Proof::UnderWay);
        let proving = slots.iter().flatten().any(|slot| is_proven(&slot));
        let trying = || "trying on the node whether memcached starts as declared".to_owned();
        let doing = doing.or_else(|| proving.then(trying));
        let is_changed = slots.iter().flatten().any(|slot| slot.progress.is_some());
        let requeue = if is_changed { SOON } else { wait.unwrap_or(LATER) };
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
            return Ok(Advanced::doing(may_not_go(&name, &words), LATER));
        }
        let note = rollout::change_note(pod);
        let is_back = why.is_some();
        let revision = if is_back { revision_label(pod).unwrap_or_default() } else { &self.desired };
        let image = match &note {
            Some(note) if is_back => note.previous.as_deref(),
            _ => self.slots.get(slot).and_then(|live| live.as_ref()?.image.as_deref()),
        };
        let from = rollout::revision_of(pod).and_then(|revision| self.templates.get(&revision));
        let (Some(from), Some(to)) = (from, self.templates.get(revision)) else {
            return Ok(Advanced::stopped(&format!(
                "what pod {name:?} was made of is not known any more: delete the pod"
            )));
        };
        let refused = note.as_ref().map_or_else(|| self.desired.clone(), |note| note.to.clone());
        let refusal = why.map(|reason| RefusalNote { revision: refused, reason });
        let target = Target { from, revision, to, image };
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
            let revision = rollout::revision_of(pod).unwrap_or_else(|| self.desired.clone());
            self.children.patch_pod(&name, &rollout::confirm(pod, &revision, self.now)).await?;
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
            Eviction::Forbidden(words) => Ok(Advanced::doing(may_not_go(&name, &words), LATER)),
        }
    }
}
