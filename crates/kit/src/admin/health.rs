//! `/healthz`: the process answers. `/readyz`: every part that was registered says that it is ready.
//! Which replica of a release leads is no matter of readiness: followers are ready too.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use axum::Router;
use axum::extract::State;
use axum::routing::get;
use http::StatusCode;

use super::{AdminError, BindAddress, Server, start};
use crate::shutdown::Shutdown;

/// An error says what is missing; it is empty where the name says it all.
type Check = Box<dyn Fn() -> Result<(), String> + Send + Sync>;

/// What has to be true before the operator is ready; clones are the same list.
///
/// ```
/// use operator_kit::admin::Readiness;
///
/// let readiness = Readiness::default();
/// readiness.register("stores", || false);
/// readiness.register_check("scope", || Err("waiting for another operator".into()));
/// assert_eq!(readiness.failing(), ["stores", "scope: waiting for another operator"]);
/// ```
#[derive(Clone, Default)]
pub struct Readiness {
    checks: Arc<Mutex<Vec<(String, Check)>>>,
}

impl Readiness {
    /// Adds a check; it is asked at every probe, so it only looks at something that is already known.
    pub fn register(&self, name: &str, check: impl Fn() -> bool + Send + Sync + 'static) {
        self.register_check(name, move || if check() { Ok(()) } else { Err(String::new()) });
    }

    /// Adds a check that says why it fails.
    pub fn register_check(&self, name: &str, check: impl Fn() -> Result<(), String> + Send + Sync + 'static) {
        let mut checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        checks.push((name.to_owned(), Box::new(check)));
    }

    /// The checks that fail: their names, and why where they say so.
    pub fn failing(&self) -> Vec<String> {
        let checks = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let why = |(name, check): &(String, Check)| match check() {
            Ok(()) => None,
            Err(why) if why.is_empty() => Some(name.clone()),
            Err(why) => Some(format!("{name}: {why}")),
        };
        checks.iter().filter_map(why).collect()
    }
}

impl fmt::Debug for Readiness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Readiness").field("failing", &self.failing()).finish()
    }
}

/// Serves `/healthz` and `/readyz` until the shutdown; nothing if the address is off.
///
/// Has to be called within a tokio runtime.
pub fn serve_health(
    address: &BindAddress,
    readiness: Readiness,
    shutdown: Shutdown,
) -> Result<Option<Server>, AdminError> {
    let Some(listener) = address.listen()? else { return Ok(None) };
    let app = Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(readyz)).with_state(readiness);
    let server = start(listener, None, app, shutdown).map_err(AdminError::Serve)?;
    tracing::info!(address = %server.address(), "serving health");
    Ok(Some(server))
}

async fn readyz(State(readiness): State<Readiness>) -> (StatusCode, String) {
    let failing = readiness.failing();
    if failing.is_empty() {
        return (StatusCode::OK, "ok\n".to_owned());
    }
    (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", failing.join(", ")))
}
