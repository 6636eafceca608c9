//! The bundles in webhook configurations: whom the API server trusts when it calls us.
//! Only `caBundle` is ours: each configuration is watched by its name and changed by a patch of that field alone.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::StreamExt;
use json_patch::Patch as JsonPatch;
use k8s_openapi::ByteString;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::keeper::{CertificateError, call};
use super::x509::Certificate;
use crate::backoff::Backoff;
use crate::lease::Leadership;
use crate::telemetry::Chain;
use crate::watch::Key;

/// A webhook configuration, by kind and name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Configuration {
    /// A `ValidatingWebhookConfiguration`.
    Validating(String),
    /// A `MutatingWebhookConfiguration`.
    Mutating(String),
}

impl Configuration {
    fn name(&self) -> &str {
        let (Self::Validating(name) | Self::Mutating(name)) = self;
        name
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        let kind = match self {
            Self::Validating(_) => "ValidatingWebhookConfiguration",
            Self::Mutating(_) => "MutatingWebhookConfiguration",
        };
        let kind = GroupVersionKind::gvk("admissionregistration.k8s.io", "v1", kind);
        Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Validating(name) => write!(f, "ValidatingWebhookConfiguration {name:?}"),
            Self::Mutating(name) => write!(f, "MutatingWebhookConfiguration {name:?}"),
        }
    }
}

/// What is known of a configuration.
#[derive(Debug, Clone, Default)]
enum Seen {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It does not exist: nobody calls.
    Absent,
    /// It exists, like this.
    Present(Box<DynamicObject>),
}

/// The configurations whose bundles are ours.
#[derive(Clone)]
pub(super) struct Bundles {
    client: Client,
    manager: String,
    seen: Arc<Mutex<BTreeMap<Configuration, Seen>>>,
}

impl Bundles {
    pub(super) fn new(client: Client, manager: &str, configurations: Vec<Configuration>) -> Self {
        let seen = configurations.into_iter().map(|configuration| (configuration, Seen::Unknown)).collect();
        Self { client, manager: manager.to_owned(), seen: Arc::new(Mutex::new(seen)) }
    }

    /// Follows the configurations, for as long as it is polled.
    pub(super) async fn follow(self, wake: UnboundedSender<Key>) {
        let configurations: Vec<_> = self.seen().keys().cloned().collect();
        let follow = |configuration| self.clone().follow_one(configuration, wake.clone());
        futures::future::join_all(configurations.into_iter().map(follow)).await;
    }

    async fn follow_one(self, configuration: Configuration, wake: UnboundedSender<Key>) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", configuration.name()));
        let mut events = std::pin::pin!(watcher(configuration.api(&self.client), config));
        let (mut listed, backoff) = (Seen::Absent, Backoff::default());
        while let Some(event) = events.next().await {
            let now = match event {
                Ok(watcher::Event::Init) => {
                    listed = Seen::Absent;
                    continue;
                }
                Ok(watcher::Event::InitApply(object)) => {
                    listed = Seen::Present(Box::new(object));
                    continue;
                }
                Ok(watcher::Event::InitDone) => std::mem::replace(&mut listed, Seen::Absent),
                Ok(watcher::Event::Apply(object)) => Seen::Present(Box::new(object)),
                Ok(watcher::Event::Delete(_)) => Seen::Absent,
                Err(error) => {
                    // Without the right to watch this would go on for ever.
                    let pause = backoff.next(configuration.name(), operator_model::problem::Class::Retry);
                    tracing::warn!(%configuration, error = %Chain(&error), ?pause, "failed to watch");
                    tokio::time::sleep(pause).await;
                    continue;
                }
            };
            backoff.reset(configuration.name());
            self.seen().insert(configuration.clone(), now);
            wake.send((String::new(), configuration.name().to_owned())).ok();
        }
    }

    /// Whether it is known of every configuration whether it exists, and how it is.
    pub(super) fn is_known(&self) -> bool {
        !self.seen().values().any(|seen| matches!(seen, Seen::Unknown))
    }

    /// Whether everybody who calls us trusts this authority; nobody does while that is not known.
    pub(super) fn trust(&self, authority: &CertificateDer<'_>) -> bool {
        self.seen().values().all(|seen| match seen {
            Seen::Unknown => false,
            Seen::Absent => true,
            Seen::Present(object) => bundles(object).all(|bundle| {
                let trusted = bundle.and_then(|bundle| Certificate::read_all(&bundle)).unwrap_or_default();
                trusted.iter().any(|one| one.der == *authority)
            }),
        })
    }

    /// Writes this bundle wherever another one is; all are tried, and the first error is told.
    pub(super) async fn publish(&self, bundle: &str, leadership: &Leadership) -> Result<(), CertificateError> {
        let all = self.seen().clone();
        let mut told = Ok(());
        for (configuration, seen) in all {
            let Seen::Present(object) = seen else { continue };
            let Some(patch) = repair(&object, bundle) else { continue };
            leadership.check()?;
            match self.write(&configuration, patch).await {
                Ok(written) => {
                    tracing::info!(%configuration, "wrote the bundle of authorities");
                    // The watch may be slower than our next look.
                    self.seen().insert(configuration, Seen::Present(Box::new(written)));
                }
                // It is not as we knew it: the watch will tell.
                Err(error) if error.is_overtaken() => {}
                Err(error) => told = told.and(Err(error)),
            }
        }
        told
    }

    async fn write(&self, configuration: &Configuration, patch: JsonPatch) -> Result<DynamicObject, CertificateError> {
        let params = PatchParams { field_manager: Some(self.manager.clone()), ..PatchParams::default() };
        let api = configuration.api(&self.client);
        let patch: Patch<()> = Patch::Json(patch);
        call("patch", configuration, api.patch(configuration.name(), &params, &patch)).await
    }

    fn seen(&self) -> MutexGuard<'_, BTreeMap<Configuration, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn webhooks(object: &DynamicObject) -> impl Iterator<Item = &Value> {
    object.data.get("webhooks").and_then(Value::as_array).into_iter().flatten()
}

/// The bundle of each webhook; none where there is none, or one that makes no sense.
fn bundles(object: &DynamicObject) -> impl Iterator<Item = Option<String>> {
    webhooks(object).map(|webhook| {
        let bundle = webhook.pointer("/clientConfig/caBundle")?.clone();
        let ByteString(bytes) = serde_json::from_value(bundle).ok()?;
        String::from_utf8(bytes).ok()
    })
}

/// The patch that gives every webhook this bundle, and changes nothing else; none if all have it.
fn repair(object: &DynamicObject, bundle: &str) -> Option<JsonPatch> {
    let wrong: Vec<_> = bundles(object).map(|has| has.as_deref() != Some(bundle)).collect();
    if !wrong.contains(&true) {
        return None;
    }
    let encoded = serde_json::to_value(ByteString(bundle.as_bytes().to_vec())).ok()?;
    // The positions are those of this very version, and for any other the API server says 409.
    let mut patch =
        vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": object.resource_version()?})];
    for (index, _) in wrong.into_iter().enumerate().filter(|(_, wrong)| *wrong) {
        let place = format!("/webhooks/{index}/clientConfig/caBundle");
        patch.push(json!({"op": "add", "path": place, "value": encoded}));
    }
    serde_json::from_value(Value::Array(patch)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn configuration(bundles: &[Option<&str>]) -> DynamicObject {
        let webhooks: Vec<_> = bundles
            .iter()
            .map(|bundle| match bundle {
                Some(text) => json!({"clientConfig": {"caBundle": ByteString(text.as_bytes().to_vec())}}),
                None => json!({"clientConfig": {"service": {"name": "widgets"}}}),
            })
            .collect();
        serde_json::from_value(json!({"metadata": {"name": "one", "resourceVersion": "7"}, "webhooks": webhooks}))
            .unwrap()
    }

    #[test]
    fn only_a_bundle_that_differs_is_written() {
        assert_eq!(repair(&configuration(&[Some("a"), Some("a")]), "a"), None);
        assert_eq!(repair(&configuration(&[]), "a"), None);
        let patch = repair(&configuration(&[Some("a"), None, Some("b")]), "a").unwrap();
        let paths: Vec<_> = patch.0.iter().map(|operation| operation.path().to_string()).collect();
        assert_eq!(
            paths,
            ["/metadata/resourceVersion", "/webhooks/1/clientConfig/caBundle", "/webhooks/2/clientConfig/caBundle"]
        );
    }

    #[test]
    fn a_patched_configuration_needs_no_patch_and_nothing_else_changed() {
        let before = configuration(&[None]);
        let mut value = serde_json::to_value(&before).unwrap();
        json_patch::patch(&mut value, &repair(&before, "a").unwrap()).unwrap();
        let after: DynamicObject = serde_json::from_value(value).unwrap();
        assert_eq!(repair(&after, "a"), None);
        assert_eq!(after.data["webhooks"][0]["clientConfig"]["service"]["name"], "widgets");
    }
}
