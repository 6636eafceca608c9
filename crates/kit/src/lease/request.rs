//! The requests of an election, each with a deadline, and what their failure means.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::api::{ListParams, PostParams, Request};
use kube::{Api, Client, Resource};
use serde::Deserialize;
use serde_json::Value;

use super::ElectionStep;

/// Why a request came to nothing.
#[derive(Debug, thiserror::Error)]
pub(super) enum RequestError {
    #[error(transparent)]
    Api(#[from] kube::Error),
    #[error("the API server did not answer within {0:?}")]
    Late(Duration),
}

impl RequestError {
    /// The lease is not the one that the write was made for: another version, already there, or gone.
    pub(super) fn is_conflict(&self, replaces: bool) -> bool {
        let Self::Api(kube::Error::Api(status)) = self else { return false };
        status.code == 409 || (replaces && status.code == 404)
    }

    /// The question itself was refused: asking again brings nothing else.
    pub(super) fn is_refusal(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if (400..500).contains(&status.code) && status.code != 429)
    }

    /// The namespace is not there, takes nothing new, or is none of ours.
    pub(super) fn is_denial(&self) -> bool {
        matches!(self, Self::Api(kube::Error::Api(status)) if matches!(status.code, 403 | 404))
    }
}

/// The answer to a request about a Lease of our own.
pub(super) enum Response {
    Read(Option<Box<Lease>>),
    Written(Box<Lease>),
}

pub(super) async fn within<T>(
    limit: Duration,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, RequestError> {
    match tokio::time::timeout(limit, request).await {
        Ok(answer) => Ok(answer?),
        Err(_) => Err(RequestError::Late(limit)),
    }
}

pub(super) async fn request_own(leases: &Api<Lease>, name: &str, step: ElectionStep) -> kube::Result<Response> {
    let params = PostParams::default();
    let written = match step {
        ElectionStep::Sleep(_) | ElectionStep::Read => {
            return Ok(Response::Read(leases.get_opt(name).await?.map(Box::new)));
        }
        ElectionStep::Create(lease) => leases.create(&params, &lease).await?,
        ElectionStep::Replace(lease) => leases.replace(name, &params, &lease).await?,
    };
    Ok(Response::Written(Box::new(written)))
}

/// A list, with what is in it as it came.
#[derive(Deserialize)]
struct RawList {
    #[serde(default)]
    items: Vec<Value>,
}

/// Every Lease of that name, as it is now: RBAC can allow this for the name alone.
///
/// Each is parsed for itself: one that somebody has made unreadable says nothing about the others.
pub(super) async fn list_all(client: &Client, name: &str) -> kube::Result<Vec<Lease>> {
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    let request = Request::new(Lease::url_path(&(), None)).list(&params).map_err(kube::Error::BuildRequest)?;
    let list: RawList = client.request(request).await?;
    Ok(list.items.into_iter().map(parsed).collect())
}

/// A Lease; one that cannot be read is somebody's, of its namespace, and another after every write.
fn parsed(item: Value) -> Lease {
    let text = |path: &str| item.pointer(path).and_then(Value::as_str).map(str::to_owned);
    let metadata = ["/metadata/name", "/metadata/namespace", "/metadata/resourceVersion"].map(text);
    serde_json::from_value(item).unwrap_or_else(|error| {
        let [name, namespace, version] = metadata;
        let holder = format!("unreadable at resourceVersion {}", version.as_deref().unwrap_or("unknown"));
        tracing::debug!(namespace, %error, "a Lease cannot be read");
        let mut lease = Lease::default();
        (lease.metadata.name, lease.metadata.namespace, lease.metadata.resource_version) = (name, namespace, version);
        lease.spec = Some(LeaseSpec { holder_identity: Some(holder), ..LeaseSpec::default() });
        lease
    })
}

/// Replaces a Lease in whichever namespace it is.
pub(super) async fn replace(client: &Client, lease: &Lease) -> kube::Result<Lease> {
    let namespace = lease.metadata.namespace.as_deref().unwrap_or_default();
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    leases.replace(lease.metadata.name.as_deref().unwrap_or_default(), &PostParams::default(), lease).await
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_lease_that_cannot_be_read_belongs_to_somebody_in_its_namespace() {
        let metadata = json!({"name": "widget", "namespace": "shop", "resourceVersion": "7"});
        let good = parsed(json!({"metadata": metadata, "spec": {"holderIdentity": "x", "leaseDurationSeconds": 15}}));
        assert_eq!(good.spec.unwrap().holder_identity.as_deref(), Some("x"));
        for spec in [json!({"renewTime": "99999-01-01T00:00:00.000000Z"}), json!(3)] {
            let bad = parsed(json!({"metadata": metadata, "spec": spec}));
            assert_eq!(bad.metadata.namespace.as_deref(), Some("shop"));
            assert_eq!(bad.metadata.resource_version.as_deref(), Some("7"));
            assert_eq!(bad.spec.unwrap().holder_identity.as_deref(), Some("unreadable at resourceVersion 7"));
        }
    }
}
