//! What a kind brings; everything else is the kit's.

use std::fmt::Debug;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use kube::Resource;
use kube::api::{DynamicObject, ObjectMeta};
use kube::core::NamespaceResourceScope;
use operator_model::problem::Class;
use operator_model::resource::ResourceType;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::context::Context;
use crate::metrics::GaugeFamily;

/// A namespaced custom resource.
pub trait CustomResource:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl<K> CustomResource for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + Serialize
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Finds the name of the object that another one concerns.
pub type RelatedRoute = fn(&DynamicObject) -> Option<String>;

/// A condition to be set on an object whose spec cannot be read: type, status, reason.
pub type Unreadable = (&'static str, bool, &'static str);

/// A kind of objects that an operator reconciles.
pub trait Kind: Send + Sync + 'static {
    /// The custom resource.
    type Object: CustomResource;

    /// Its name, in requests, metrics and owner references.
    const NAME: &'static str;

    /// The kinds of its children: a change of one reconciles the object that controls it.
    const CHILDREN: &'static [ResourceType];

    /// The keys of Secrets that it asks for: of others nothing is kept in memory.
    const SECRET_KEYS: &'static [&'static str] = &[];

    /// The annotations of pods that it reads: others are not kept in memory.
    const POD_ANNOTATIONS: &'static [&'static str] = &[];

    /// The conditions of an object that this version cannot read, for example one of a newer CRD.
    const UNREADABLE: &'static [Unreadable];

    /// Kinds that concern it without being its children, and the name of the object that they concern: pods, whose
    /// controller is a ReplicaSet.
    fn related(&self) -> Vec<(ResourceType, RelatedRoute)> {
        Vec::new()
    }

    /// Its gauges; the series of an object are removed with it.
    fn gauges(&self) -> Vec<GaugeFamily> {
        Vec::new()
    }

    /// Makes the cluster as one object declares it.
    fn reconcile(
        &self,
        object: Arc<Self::Object>,
        context: &Context<Self::Object>,
    ) -> impl Future<Output = Result<Outcome, Error>> + Send;
}

/// How a reconcile went, and when the object is due again without being asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Outcome {
    /// What stands in the way asks for this.
    pub class: Option<Class>,
    /// Something was left for later.
    pub requeue: Option<Duration>,
}

/// Why a reconcile could not be finished.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The status could not be written.
    #[error("failed to write the status: {0}")]
    Status(Box<kube::Error>),
    /// The API server did not answer in time.
    #[error("failed to write the status: no answer within {} s", crate::REQUEST_TIMEOUT.as_secs())]
    Timeout,
    /// The object was changed or made anew meanwhile.
    #[error("failed to write the status: the object was changed meanwhile")]
    Conflict,
    /// Another process leads.
    #[error(transparent)]
    NotLeader(#[from] crate::lease::NotLeader),
}

impl Error {
    /// Why, out of a closed set.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Status(_) => "StatusNotWritten",
            Self::Timeout => operator_model::reason::API_UNAVAILABLE,
            Self::Conflict => operator_model::reason::CONFLICT,
            Self::NotLeader(_) => "NotLeader",
        }
    }

    /// What it asks for; leadership that comes back, everywhere or in a namespace, reconciles what is there.
    pub fn class(&self) -> Option<Class> {
        match self {
            Self::Status(_) | Self::Timeout | Self::Conflict => Some(Class::Retry),
            Self::NotLeader(_) => None,
        }
    }
}

/// What makes an object worth a reconcile: our own status writes do not; annotations carry requests, and a new object
/// under an old name is another one.
pub(super) fn trigger(metadata: &ObjectMeta) -> impl Hash + use<> {
    (metadata.generation, metadata.annotations.clone(), metadata.uid.clone(), metadata.deletion_timestamp.is_some())
}
