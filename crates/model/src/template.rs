//! The pod template in force: pods change only when the spec does, never because an operator has other defaults.
//!
//! The template is kept in a ControllerRevision together with the inputs it was built from. While these are the same,
//! the kept template stays the desired one, whatever today's builder would make of them. What the inputs are is a
//! kind's own affair: see [`TemplateInputs`].

use std::collections::BTreeMap;

use k8s_openapi::api::apps::v1::ControllerRevision;
use k8s_openapi::api::core::v1::PodTemplateSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::apimachinery::pkg::runtime::RawExtension;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::difference::differences;

/// How many revisions are kept: the one in force and some to look back at.
pub const REVISION_HISTORY_LIMIT: usize = 3;

/// What a template is built from.
pub trait TemplateInputs: Clone + Serialize + DeserializeOwned {
    /// Whether pods of the kept template are still what the inputs of `now` ask for.
    fn is_in_force(kept: &KeptTemplate<Self>, now: &Self) -> bool;

    /// Takes over what changes a template in force without building it anew, as the hash of a Secret. Returns whether
    /// anything did.
    fn refresh(kept: &mut KeptTemplate<Self>, now: &Self) -> bool;

    /// The kept template with nothing changed but what the changed inputs ask for, where that can be told apart; none
    /// where it has to be built anew. What a newer operator would build differently then waits for another occasion.
    fn edit(_kept: &KeptTemplate<Self>, _now: &Self, _built: &PodTemplateSpec) -> Option<PodTemplateSpec> {
        None
    }
}

/// A template with what it was built from, as a ControllerRevision holds it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptTemplate<I> {
    /// What it was built from.
    pub inputs: I,
    /// The template.
    pub template: PodTemplateSpec,
    /// It was found on a running workload, with the API server's defaults in it, and not built.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub found: bool,
}

/// The template to use, and what to do about its revision.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateInForce<I> {
    /// The template to use.
    pub template: PodTemplateSpec,
    /// To be written as a revision before the template is used; none if it is kept already.
    pub new_revision: Option<KeptTemplate<I>>,
    /// In what today's builder would make another template of the same inputs.
    pub newer_defaults: Vec<String>,
}

/// Decides which template is in force.
///
/// `built` is what today's builder makes of `now`. `found` is the template of a workload that nobody has kept a
/// revision of, another operator's for example: it is taken as it stands.
pub fn decide<I: TemplateInputs>(
    kept: Option<KeptTemplate<I>>,
    found: Option<PodTemplateSpec>,
    now: I,
    built: &PodTemplateSpec,
) -> TemplateInForce<I> {
    let write = |kept: KeptTemplate<I>| TemplateInForce {
        template: kept.template.clone(),
        newer_defaults: kept.differences_to(built),
        new_revision: Some(kept),
    };
    let Some(mut kept) = kept else {
        let (template, found) = found.map_or_else(|| (built.clone(), false), |template| (template, true));
        return write(KeptTemplate { inputs: now, template, found });
    };
    if !I::is_in_force(&kept, &now) {
        let edited = I::edit(&kept, &now, built);
        let found = kept.found && edited.is_some();
        let template = edited.unwrap_or_else(|| built.clone());
        return write(KeptTemplate { inputs: now, template, found });
    }
    if I::refresh(&mut kept, &now) {
        return write(kept);
    }
    let newer_defaults = kept.differences_to(built);
    TemplateInForce { template: kept.template, new_revision: None, newer_defaults }
}

impl<I> KeptTemplate<I> {
    fn differences_to(&self, built: &PodTemplateSpec) -> Vec<String> {
        match (serde_json::to_value(&self.template), serde_json::to_value(built)) {
            (Ok(there), Ok(built)) => differences(&there, &built, self.found),
            _ => Vec::new(),
        }
    }
}

impl<I: TemplateInputs> KeptTemplate<I> {
    /// What the newest revision keeps; none if there is no revision, or it is not ours to read.
    pub fn latest(revisions: &[ControllerRevision]) -> Option<Self> {
        let latest = revisions.iter().max_by_key(|revision| revision.revision)?;
        serde_json::from_value(latest.data.as_ref()?.0.clone()).ok()
    }

    /// The revision that keeps it, the next one of these. A revision's data cannot be changed, so every content has a
    /// name of its own: the given one with a hash.
    pub fn to_revision(&self, metadata: ObjectMeta, revisions: &[ControllerRevision]) -> ControllerRevision {
        let latest = revisions.iter().map(|revision| revision.revision).max().unwrap_or(0);
        // Revisions can be written by others: no number of theirs overflows ours.
        let revision = latest.saturating_add(1);
        let data = serde_json::to_value(self).unwrap_or(Value::Null);
        let hash = Sha256::new().chain_update(data.to_string()).chain_update(revision.to_le_bytes()).finalize();
        let suffix: String = hash.iter().take(5).map(|byte| format!("{byte:02x}")).collect();
        let name = metadata.name.as_deref().map(|name| format!("{name}-{suffix}"));
        ControllerRevision { metadata: ObjectMeta { name, ..metadata }, data: Some(RawExtension(data)), revision }
    }
}

/// The revisions that are not needed any more, oldest first.
pub fn outdated(revisions: &[ControllerRevision]) -> Vec<&ControllerRevision> {
    let mut sorted: Vec<&ControllerRevision> = revisions.iter().collect();
    sorted.sort_by_key(|revision| revision.revision);
    sorted.truncate(sorted.len().saturating_sub(REVISION_HISTORY_LIMIT));
    sorted
}

/// The fields of a spec that decide about pods: what was declared, and the defaults of that time for the rest.
///
/// They are kept apart because another version of an operator may have other defaults, and a webhook may write them
/// into the spec. Neither is a change.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PodFields {
    #[serde(rename = "said")]
    declared: BTreeMap<String, Value>,
    #[serde(rename = "meant")]
    defaults: BTreeMap<String, Value>,
}

impl PodFields {
    /// Fields by path. What is empty counts as not declared. A default that is null was known and not in force; one
    /// that is missing belongs to a field that there was not yet.
    pub fn new<'a>(
        declared: impl IntoIterator<Item = (&'a str, Value)>,
        defaults: impl IntoIterator<Item = (&'a str, Value)>,
    ) -> Self {
        let owned = |(path, value): (&str, Value)| (path.to_owned(), value);
        let declared = declared.into_iter().filter(|(_, value)| !is_empty(value));
        Self { declared: declared.map(owned).collect(), defaults: defaults.into_iter().map(owned).collect() }
    }

    /// Whether `now` declares what this one did.
    pub fn is_same(&self, now: &Self) -> bool {
        self.changes(now).next().is_none()
    }

    /// The paths of the fields that `now` declares otherwise.
    pub fn changes<'a>(&'a self, now: &'a Self) -> impl Iterator<Item = &'a str> {
        let is_same = |path: &&String| {
            match (self.declared.get(*path), now.declared.get(*path)) {
                // A default was written into the spec: one of that time, or one of a field that there was not then.
                (None, Some(value)) => self.defaults.get(*path).or_else(|| now.defaults.get(*path)) == Some(value),
                // What was declared is today's default, or that of a field which only a newer operator knows.
                (Some(then), None) => now.defaults.get(*path).or_else(|| self.defaults.get(*path)) == Some(then),
                (then, now) => then == now,
            }
        };
        let paths = self.declared.keys().chain(now.declared.keys());
        paths.filter(move |path| !is_same(path)).map(String::as_str)
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
#[path = "template_tests.rs"]
mod tests;
