//! Admission webhooks: the API server asks over HTTPS, reviewers answer, and nothing that is sent can break the server.
//! Every replica serves; who leads is no matter of admission.

mod answer;
mod review;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::any;
use kube::api::DynamicObject;
use kube::core::admission::AdmissionRequest;

pub use answer::{Answer, Cause, CauseReason};
pub use kube::core::admission::Operation;

use crate::admin::{AdminError, BindAddress, Server, start};
use crate::certificate::Serving;
use crate::metrics::Metrics;
use crate::shutdown::Shutdown;

use review::{Hook, Reviewer, review};

/// What the API server itself takes of an object is 3 MiB, and an update has two of them in it.
const BODY_LIMIT: usize = 7 << 20;

/// What the API server asks about.
pub type Request = AdmissionRequest<DynamicObject>;

/// Who reviews what, by path.
///
/// ```
/// use operator_kit::webhook::{Answer, Webhooks};
///
/// let webhooks = Webhooks::default().route("/validate-widget", |request| async move {
///     if request.name == "forbidden" { Answer::deny("not this name") } else { Answer::allow() }
/// });
/// let others = Webhooks::default().route("/validate-gadget", |_| async { Answer::allow() });
/// assert_eq!(webhooks.merge(others).paths(), ["/validate-gadget", "/validate-widget"]);
/// ```
#[derive(Clone, Default)]
pub struct Webhooks {
    routes: BTreeMap<String, Reviewer>,
}

impl Webhooks {
    /// Requests at this path go to that reviewer; later ones replace earlier ones.
    ///
    /// A reviewer that panics, or takes more than four seconds, refuses.
    #[must_use]
    pub fn route<R, A>(mut self, path: &str, reviewer: R) -> Self
    where
        R: Fn(Request) -> A + Send + Sync + 'static,
        A: Future<Output = Answer> + Send + 'static,
    {
        let reviewer: Reviewer = Arc::new(move |request| Box::pin(reviewer(request)));
        self.routes.insert(path.to_owned(), reviewer);
        self
    }

    /// Those of another kind as well.
    #[must_use]
    pub fn merge(mut self, others: Self) -> Self {
        self.routes.extend(others.routes);
        self
    }

    /// The paths that are served.
    pub fn paths(&self) -> Vec<&str> {
        self.routes.keys().map(String::as_str).collect()
    }

    fn into_router(self, metrics: &Metrics) -> Router {
        let router = self.routes.into_iter().fold(Router::new(), |router, (path, reviewer)| {
            let hook = Hook { path: path.clone(), reviewer, metrics: metrics.clone() };
            // Any method, so that a wrong one is counted too.
            router.route(&path, any(review).with_state(Arc::new(hook)))
        });
        router.layer(DefaultBodyLimit::max(BODY_LIMIT))
    }
}

/// Serves webhooks until the shutdown; nothing if the address is off.
///
/// It listens at once; a client that comes before there is a certificate is turned away.
/// Has to be called within a tokio runtime.
pub fn serve(
    address: &BindAddress,
    webhooks: Webhooks,
    certificate: Serving,
    metrics: &Metrics,
    shutdown: Shutdown,
) -> Result<Option<WebhookServer>, AdminError> {
    let Some(listener) = address.listen()? else { return Ok(None) };
    let paths = webhooks.paths().join(" ");
    let app = webhooks.into_router(metrics);
    let server = start(listener, Some(certificate.tls()), app, shutdown).map_err(AdminError::Serve)?;
    tracing::info!(address = %server.address(), paths, "serving webhooks");
    Ok(Some(WebhookServer { server, certificate }))
}

/// A webhook server that is listening; it ends with its shutdown token.
#[derive(Debug)]
pub struct WebhookServer {
    server: Server,
    certificate: Serving,
}

impl WebhookServer {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.server.address()
    }

    /// Says whether the API server can be served, for [`Readiness::register`](crate::admin::Readiness::register).
    pub fn readiness(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let (is_running, certificate) = (self.server.liveness(), self.certificate.clone());
        move || is_running() && certificate.is_ready()
    }

    /// Waits for its end.
    pub async fn ended(self) -> Result<(), AdminError> {
        self.server.ended().await
    }
}
