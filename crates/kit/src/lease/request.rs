//! The requests of an election, each with a deadline, and what their failure means.

use std::time::Duration;

use k8s_openapi::api::coordination::v1::Lease;
use kube::api::{ListParams, PostParams};
use kube::{Api, Client};

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

/// Every Lease of that name, as it is now: RBAC can allow this for the name alone.
pub(super) async fn list_all(client: &Client, name: &str) -> kube::Result<Vec<Lease>> {
    let leases: Api<Lease> = Api::all(client.clone());
    let params = ListParams::default().fields(&format!("metadata.name={name}"));
    Ok(leases.list(&params).await?.items)
}

/// Replaces a Lease in whichever namespace it is.
pub(super) async fn replace(client: &Client, lease: &Lease) -> kube::Result<Lease> {
    let namespace = lease.metadata.namespace.as_deref().unwrap_or_default();
    let leases: Api<Lease> = Api::namespaced(client.clone(), namespace);
    leases.replace(lease.metadata.name.as_deref().unwrap_or_default(), &PostParams::default(), lease).await
}
