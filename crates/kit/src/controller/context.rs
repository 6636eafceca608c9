//! What a reconcile works with: stores, writers, Secrets, Events.

use std::sync::Arc;

use kube::api::ObjectMeta;
use kube::{Client, ResourceExt};
use serde::Serialize;

use super::kind::{CustomResource, Error};
use super::primary::Primary;
use super::queue::{Queue, Request};
use crate::backoff::Backoff;
use crate::children::{Applier, Children, Identity, Stores};
use crate::event::Events;
use crate::metrics::Metrics;
use crate::reference::Secrets;
use crate::status::{Pacing, Published, publish};

/// So many failures in a row are no coincidence any more.
const REPEATING: u32 = 3;

/// Shared by the controllers of all kinds.
pub struct Shared {
    /// Writes children.
    pub applier: Applier,
    /// For requests that must not be repeated: an eviction that is refused is no failure.
    pub once: Client,
    /// What is there of every kind that some kind owns.
    pub stores: Stores,
    /// The Secrets that objects refer to.
    pub secrets: Secrets,
    /// Publishes Events.
    pub events: Events,
    /// Counts.
    pub metrics: Metrics,
    pub(super) backoff: Backoff,
    pub(super) queue: Arc<Queue>,
    pub(super) pacing: Pacing,
}

impl Shared {
    /// Whether an object has failed several times in a row.
    pub(crate) fn is_repeating(&self, request: &Request) -> bool {
        self.backoff.failures(&request.to_string()) >= REPEATING
    }
}

/// What a reconcile of one kind works with.
pub struct Context<K> {
    pub(super) shared: Arc<Shared>,
    pub(super) primary: Arc<Primary<K>>,
    pub(super) kind: &'static str,
}

impl<K: CustomResource> Context<K> {
    /// What all kinds share.
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// The request for an object.
    pub fn request(&self, object: &K) -> Request {
        let ObjectMeta { namespace, name, .. } = object.meta();
        let text = |text: &Option<String>| text.as_deref().unwrap_or_default().into();
        Request { kind: self.kind, namespace: text(namespace), name: text(name) }
    }

    /// The children of an object; `identity` says which labels an orphan of ours carries.
    pub fn children<'a>(&'a self, object: &K, identity: Identity<'a>) -> Children<'a> {
        let owner = object.controller_owner_ref(&()).unwrap_or_default();
        Children { shared: &self.shared, request: self.request(object), owner, identity }
    }

    /// Writes a status if it has changed. `is_news` if people wait for it; numbers on the way there are not.
    pub async fn publish_status<S: Serialize + PartialEq>(
        &self,
        object: &K,
        old: Option<&S>,
        new: &S,
        is_news: bool,
    ) -> Result<Published<K>, Error> {
        let Shared { applier, pacing, .. } = &*self.shared;
        let published = publish(applier, pacing, object, old, new, is_news).await?;
        if let Published::Written(Some(written)) = &published
            && self.primary.remember(written)
        {
            self.shared.queue.add(self.request(object));
        }
        Ok(published)
    }

    /// An Event that something needs somebody's attention.
    pub async fn warn(&self, object: &K, reason: &str, note: &str) {
        self.shared.events.warning(&object.object_ref(&()), reason, note).await;
    }

    /// An Event that something went as it should.
    pub async fn tell(&self, object: &K, reason: &str, note: &str) {
        self.shared.events.normal(&object.object_ref(&()), reason, note).await;
    }
}

/// Whether an object is terminating: its children are left to garbage collection.
pub fn is_terminating(object: &impl ResourceExt) -> bool {
    object.meta().deletion_timestamp.is_some()
}
