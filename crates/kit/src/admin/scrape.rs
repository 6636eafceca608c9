//! `/metrics`: over TLS and for those only whom RBAC lets `get` that path, unless plain HTTP was asked for.
//! This is what kube-rbac-proxy used to do, and what controller-runtime does today.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{AUTHORIZATION, CONTENT_TYPE, WWW_AUTHENTICATE};
use http::{HeaderMap, StatusCode};
use kube::Client;

use super::{Access, AdminError, BindAddress, CertificateSource, Permission, Server, start};
use crate::metrics::{self, Metrics};
use crate::shutdown::Shutdown;
use crate::telemetry::Chain;

/// Where metrics are, on the server and in the eyes of RBAC.
const PATH: &str = "/metrics";

/// Who may scrape.
#[derive(Clone)]
pub enum Protection {
    /// Everybody who reaches the port, over plain HTTP.
    Plain,
    /// Whoever has a token that RBAC allows to `get` the path `/metrics`, over TLS.
    Secure {
        /// What the server shows.
        certificate: CertificateSource,
        /// Creates the reviews (`tokenreviews`, `subjectaccessreviews`).
        client: Client,
    },
}

/// Serves `/metrics` until the shutdown; nothing if the address is off.
///
/// Has to be called within a tokio runtime.
pub fn serve_metrics(
    address: &BindAddress,
    metrics: Metrics,
    protection: Protection,
    shutdown: Shutdown,
) -> Result<Option<Server>, AdminError> {
    let Some(listener) = address.listen()? else { return Ok(None) };
    let (tls, access) = match protection {
        Protection::Plain => (None, None),
        Protection::Secure { certificate, client } => {
            (Some(certificate.serve(shutdown.clone())?), Some(Arc::new(Access::new(client, PATH))))
        }
    };
    let secure = tls.is_some();
    let app = Router::new().route(PATH, get(scrape)).with_state(Scrape { metrics, access });
    let server = start(listener, tls, app, shutdown).map_err(AdminError::Serve)?;
    tracing::info!(address = %server.address(), secure, "serving metrics");
    Ok(Some(server))
}

#[derive(Clone)]
struct Scrape {
    metrics: Metrics,
    access: Option<Arc<Access>>,
}

async fn scrape(State(scrape): State<Scrape>, headers: HeaderMap) -> Response {
    if let Some(access) = &scrape.access
        && let Err(refusal) = admit(access, &headers).await
    {
        return refusal;
    }
    match scrape.metrics.encode() {
        Ok(text) => ([(CONTENT_TYPE, metrics::CONTENT_TYPE)], text).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

async fn admit(access: &Access, headers: &HeaderMap) -> Result<(), Response> {
    let unauthenticated = || (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, "Bearer")], "who are you?\n");
    let token = bearer(headers).ok_or_else(|| unauthenticated().into_response())?;
    match access.permission(token).await {
        Ok(Permission::Allowed) => Ok(()),
        Ok(Permission::Unauthenticated) => Err(unauthenticated().into_response()),
        Ok(Permission::Forbidden) => {
            Err((StatusCode::FORBIDDEN, "RBAC does not let you get the path /metrics\n").into_response())
        }
        Err(error) => {
            tracing::warn!(error = %Chain(&error), "failed to review a scrape");
            Err((StatusCode::INTERNAL_SERVER_ERROR, "the API server could not be asked\n").into_response())
        }
    }
}

fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, token) = headers.get(AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_bearer_token_is_one() {
        let token = |value: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(AUTHORIZATION, value.parse().unwrap());
            bearer(&headers).map(str::to_owned)
        };
        assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
        assert_eq!(token("bearer  abc").as_deref(), Some("abc"));
        for wrong in ["Basic abc", "Bearer", "Bearer ", "abc", ""] {
            assert_eq!(token(wrong), None, "{wrong:?}");
        }
        assert_eq!(bearer(&HeaderMap::new()), None);
    }
}
