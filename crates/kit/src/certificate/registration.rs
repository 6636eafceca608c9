//! The entries of webhook configurations: what the API server asks us, where, and whom it trusts there.
//! Packages ship the configurations without entries. The leader applies ours, as their owner: fields that others add
//! to them (selectors, match conditions) stay, and an operator that never came up stands in nobody's way.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use jiff::Timestamp;
use k8s_openapi::ByteString;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client};
use rustls::pki_types::CertificateDer;
use serde_json::{Value, json};
use tokio::sync::mpsc::UnboundedSender;

use super::turn::{CertificateError, call};
use super::x509::Certificate;
use crate::backoff::Backoff;
use crate::lease::Leadership;
use crate::telemetry::Chain;
use crate::watch::Key;
use operator_model::diff::differs;
use operator_model::problem::Class;

const GROUP: &str = "admissionregistration.k8s.io";
const VERSION: &str = "v1";
/// An entry that stays as we applied it for so long is not fought over.
const PEACE: Duration = Duration::from_secs(600);

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

    fn kind(&self) -> &'static str {
        match self {
            Self::Validating(_) => "ValidatingWebhookConfiguration",
            Self::Mutating(_) => "MutatingWebhookConfiguration",
        }
    }

    fn api(&self, client: &Client) -> Api<DynamicObject> {
        let kind = GroupVersionKind::gvk(GROUP, VERSION, self.kind());
        Api::all_with(client.clone(), &ApiResource::from_gvk(&kind))
    }
}

impl fmt::Display for Configuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {:?}", self.kind(), self.name())
    }
}

/// The entries of ours in a webhook configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Registration {
    /// Which configuration; one that does not exist is waited for, never created.
    pub configuration: Configuration,
    /// The entries, complete but for `clientConfig.caBundle`. Fields that are left out are left to others.
    pub webhooks: Vec<Value>,
}

impl Registration {
    /// What is applied: our entries, trusting this bundle.
    fn desired(&self, bundle: &str) -> Value {
        let bundle = json!(ByteString(bundle.as_bytes().to_vec()));
        let webhooks = self.webhooks.iter().map(|webhook| {
            let mut webhook = webhook.clone();
            if let Some(client) = webhook.get_mut("clientConfig").and_then(Value::as_object_mut) {
                client.insert("caBundle".into(), bundle.clone());
            }
            webhook
        });
        json!({"webhooks": webhooks.collect::<Vec<_>>()})
    }

    /// Our entries as they are.
    fn entries<'a>(&'a self, live: &'a DynamicObject) -> impl Iterator<Item = &'a Value> {
        let all = live.data.get("webhooks").and_then(Value::as_array).into_iter().flatten();
        all.filter(|entry| self.webhooks.iter().any(|webhook| webhook.get("name") == entry.get("name")))
    }

    /// Whether everybody who is told to call us trusts this authority.
    fn trusts(&self, live: &DynamicObject, authority: &CertificateDer<'_>) -> bool {
        self.entries(live).all(|entry| {
            let trusted = bundle(entry).and_then(|bundle| Certificate::read_all(&bundle)).unwrap_or_default();
            trusted.iter().any(|one| one.der == *authority)
        })
    }
}

/// The bundle of an entry; none where there is none, or one that makes no sense.
fn bundle(entry: &Value) -> Option<String> {
    let ByteString(bytes) = serde_json::from_value(entry.pointer("/clientConfig/caBundle")?.clone()).ok()?;
    String::from_utf8(bytes).ok()
}

/// What is known of a configuration.
#[derive(Debug, Clone, Default)]
enum Live {
    /// Nothing yet.
    #[default]
    Unknown,
    /// It does not exist: nobody calls.
    Absent,
    /// It exists, like this.
    Present(Box<DynamicObject>),
}

/// When a configuration was last written, and when it may be again.
#[derive(Debug, Clone, Copy)]
struct Pace {
    written: Timestamp,
    next: Timestamp,
}

/// All registrations of a replica; clones are the same.
#[derive(Clone)]
pub(super) struct Registrations {
    client: Client,
    manager: String,
    all: Arc<BTreeMap<Configuration, Registration>>,
    live: Arc<Mutex<BTreeMap<Configuration, Live>>>,
    paces: Arc<Mutex<BTreeMap<Configuration, Pace>>>,
    backoff: Arc<Backoff>,
    /// When configurations were last deleted, and how long we might then live on.
    deleted: Arc<Mutex<BTreeMap<Configuration, Timestamp>>>,
    linger: Duration,
}

impl Registrations {
    pub(super) fn new(client: Client, manager: &str, all: Vec<Registration>, linger: Duration) -> Self {
        let all: BTreeMap<_, _> = all.into_iter().map(|one| (one.configuration.clone(), one)).collect();
        let live = all.keys().map(|configuration| (configuration.clone(), Live::Unknown)).collect();
        Self {
            client,
            manager: manager.to_owned(),
            all: Arc::new(all),
            live: Arc::new(Mutex::new(live)),
            paces: Arc::default(),
            backoff: Arc::default(),
            deleted: Arc::default(),
            linger,
        }
    }

    /// Whether there is nothing to register.
    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Watches the configurations, for as long as it is polled.
    pub(super) async fn follow(self, wake: UnboundedSender<Key>) {
        let follow = |configuration: &Configuration| self.clone().follow_one(configuration.clone(), wake.clone());
        futures::future::join_all(self.all.keys().map(follow)).await;
        // Without any there is nothing to watch, which is no reason to end.
        std::future::pending::<()>().await;
    }

    async fn follow_one(self, configuration: Configuration, wake: UnboundedSender<Key>) {
        let config = watcher::Config::default().fields(&format!("metadata.name={}", configuration.name()));
        let mut events = std::pin::pin!(watcher(configuration.api(&self.client), config));
        let (mut listed, backoff) = (Live::Absent, Backoff::default());
        while let Some(event) = events.next().await {
            let now = match event {
                Ok(watcher::Event::Init) => {
                    listed = Live::Absent;
                    continue;
                }
                Ok(watcher::Event::InitApply(object)) => {
                    listed = Live::Present(Box::new(object));
                    continue;
                }
                Ok(watcher::Event::InitDone) => std::mem::replace(&mut listed, Live::Absent),
                Ok(watcher::Event::Apply(object)) => Live::Present(Box::new(object)),
                Ok(watcher::Event::Delete(_)) => Live::Absent,
                Err(error) => {
                    // Without the right to watch this would go on for ever.
                    let pause = backoff.next(configuration.name(), Class::Retry);
                    tracing::warn!(%configuration, error = %Chain(&error), ?pause, "failed to watch");
                    tokio::time::sleep(pause).await;
                    continue;
                }
            };
            backoff.reset(configuration.name());
            self.note(&configuration, now);
            wake.send(("".into(), configuration.name().into())).ok();
        }
    }

    /// Takes down how a configuration is now, and whether it is still the one that it was.
    fn note(&self, configuration: &Configuration, now: Live) {
        let uid = |live: &Live| match live {
            Live::Present(object) => object.metadata.uid.clone(),
            Live::Unknown | Live::Absent => None,
        };
        let new = uid(&now);
        let old = self.live().insert(configuration.clone(), now).and_then(|old| uid(&old));
        if old.is_some() && old != new {
            self.deleted().insert(configuration.clone(), Timestamp::now());
        }
    }

    /// When a configuration may get its first entries. One that was deleted and comes back may be the next install's,
    /// while this replica is only waiting for its own end: the entries would be of a replica that is gone.
    fn vacant_until(&self, configuration: &Configuration) -> Timestamp {
        let deleted = self.deleted().get(configuration).copied();
        deleted.map_or(Timestamp::MIN, |at| at.checked_add(self.linger).unwrap_or(Timestamp::MAX))
    }

    /// Whether it is known of every configuration whether it exists, and how it is.
    pub(super) fn is_known(&self) -> bool {
        !self.live().values().any(|live| matches!(live, Live::Unknown))
    }

    /// Whether everybody who calls us trusts this authority; nobody does while that is not known.
    pub(super) fn trust(&self, authority: &CertificateDer<'_>) -> bool {
        let live = self.live();
        self.all.values().all(|registration| match live.get(&registration.configuration) {
            None | Some(Live::Unknown) => false,
            Some(Live::Absent) => true,
            Some(Live::Present(object)) => registration.trusts(object, authority),
        })
    }

    /// Whether a configuration exists without an entry of ours.
    pub(super) fn has_vacancy(&self) -> bool {
        let live = self.live();
        self.all.values().any(|registration| match live.get(&registration.configuration) {
            Some(Live::Present(object)) => registration.entries(object).next().is_none(),
            _ => false,
        })
    }

    /// Applies our entries with this bundle wherever they differ; says when to come again. A configuration without
    /// entries gets its first ones only if we can be called. All are tried, and the first error is told.
    pub(super) async fn publish(
        &self,
        bundle: &str,
        is_callable: bool,
        leadership: &Leadership,
    ) -> Result<Timestamp, CertificateError> {
        let (mut told, mut again) = (Ok(()), Timestamp::MAX);
        for (configuration, registration) in self.all.iter() {
            let Some(Live::Present(live)) = self.live().get(configuration).cloned() else { continue };
            let is_vacant = registration.entries(&live).next().is_none();
            let desired = registration.desired(bundle);
            if (is_vacant && !is_callable) || !differs(&desired, &live, &self.manager) {
                continue;
            }
            let now = Timestamp::now();
            let paced = self.paces().get(configuration).map_or(Timestamp::MIN, |pace| pace.next);
            let next = if is_vacant { paced.max(self.vacant_until(configuration)) } else { paced };
            if now < next {
                again = again.min(next);
                continue;
            }
            leadership.check()?;
            match self.apply(configuration, desired, &live).await {
                Ok(written) => {
                    tracing::info!(%configuration, is_new = is_vacant, "applied the webhooks");
                    self.note_write(configuration, now);
                    // The watch may be slower than our next turn.
                    self.live().insert(configuration.clone(), Live::Present(Box::new(written)));
                }
                // It is not as we knew it: the watch will tell.
                Err(error) if error.is_conflict() => {}
                Err(error) => told = told.and(Err(error)),
            }
        }
        told.map(|()| again)
    }

    /// Another manager that undoes what we apply gets ever longer pauses, and not a storm of writes.
    fn note_write(&self, configuration: &Configuration, now: Timestamp) {
        let mut paces = self.paces();
        let is_at_peace = paces
            .get(configuration)
            .is_none_or(|pace| Duration::try_from(now.duration_since(pace.written)).is_ok_and(|quiet| quiet > PEACE));
        if is_at_peace {
            self.backoff.reset(&configuration.to_string());
        }
        let pause = self.backoff.next(&configuration.to_string(), Class::Retry);
        let next = now.checked_add(pause).unwrap_or(now);
        paces.insert(configuration.clone(), Pace { written: now, next });
    }

    async fn apply(
        &self,
        configuration: &Configuration,
        mut desired: Value,
        live: &DynamicObject,
    ) -> Result<DynamicObject, CertificateError> {
        if let Some(fields) = desired.as_object_mut() {
            fields.insert("apiVersion".into(), json!(format!("{GROUP}/{VERSION}")));
            fields.insert("kind".into(), json!(configuration.kind()));
            // With the uid, one that was deleted meanwhile is not made again.
            fields.insert("metadata".into(), json!({"name": configuration.name(), "uid": live.metadata.uid}));
        }
        let params = PatchParams::apply(&self.manager).force();
        let api = configuration.api(&self.client);
        call("apply", configuration, api.patch(configuration.name(), &params, &Patch::Apply(desired))).await
    }

    fn live(&self) -> MutexGuard<'_, BTreeMap<Configuration, Live>> {
        self.live.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn deleted(&self) -> MutexGuard<'_, BTreeMap<Configuration, Timestamp>> {
        self.deleted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn paces(&self) -> MutexGuard<'_, BTreeMap<Configuration, Pace>> {
        self.paces.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn registration() -> Registration {
        let webhook = json!({"name": "a.example.com", "clientConfig": {"service": {"name": "widgets"}}});
        Registration { configuration: Configuration::Validating("widgets".into()), webhooks: vec![webhook] }
    }

    fn live(webhooks: &Value, fields: &Value) -> DynamicObject {
        let ours = json!({"manager": "us", "operation": "Apply", "fieldsV1": fields});
        serde_json::from_value(json!({
            "metadata": {"name": "widgets", "managedFields": [ours]}, "webhooks": webhooks,
        }))
        .unwrap()
    }

    #[test]
    fn what_others_add_to_our_entry_is_no_difference_and_what_they_change_is() {
        let desired = registration().desired("a");
        let mut webhooks = desired["webhooks"].clone();
        webhooks[0]["namespaceSelector"] = json!({"matchLabels": {"a": "b"}});
        webhooks[0]["timeoutSeconds"] = json!(10);
        let client = json!({"f:caBundle": {}, "f:service": {"f:name": {}}});
        let fields = json!({"f:webhooks": {r#"k:{"name":"a.example.com"}"#: {
            ".": {}, "f:name": {}, "f:clientConfig": client,
        }}});
        assert!(!differs(&desired, &live(&webhooks, &fields), "us"));
        assert!(differs(&registration().desired("b"), &live(&webhooks, &fields), "us"), "another bundle");
        webhooks[0]["clientConfig"]["service"]["name"] = json!("others");
        assert!(differs(&desired, &live(&webhooks, &fields), "us"));
        assert!(differs(&desired, &live(&json!([]), &json!({})), "us"), "the entry is missing");
    }

    #[test]
    fn entries_of_others_are_not_looked_at() {
        let live = live(&json!([{"name": "b.example.com", "clientConfig": {}}]), &json!({}));
        assert_eq!(registration().entries(&live).count(), 0);
        assert!(registration().trusts(&live, &CertificateDer::from(vec![1])), "nobody is told to call us");
    }
}
