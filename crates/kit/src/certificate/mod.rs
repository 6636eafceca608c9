//! The certificate that webhooks are served with: kept by the operator itself, or mounted by somebody else.
//!
//! Kept by the operator: an authority and a serving certificate in one Secret that all replicas share. Each serves what
//! is in it; the leader renews it. Mounted: a directory that somebody else keeps. Either way the leader registers the
//! webhooks with the authority to trust, once they are served, and in an order in which no request is refused.

mod keeper;
mod material;
mod mount;
mod plan;
#[cfg(test)]
mod plan_tests;
mod registration;
mod state;
mod trust;
mod turn;
mod x509;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use kube::Client;

pub use material::{Material, Unsound};
pub use plan::{CertificateState, RenewalStep, Signer, plan};
pub use registration::{Configuration, Registration};
pub use turn::CertificateError;

use crate::admin::{TlsError, blank_config};
use crate::lease::Leadership;
use crate::shutdown::Shutdown;
use crate::task::Tasks;
use keeper::Keeper;
use mount::Mount;
use state::State;

const DAY: Duration = Duration::from_secs(24 * 3600);

/// From when to when a certificate is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// From then.
    pub not_before: Timestamp,
    /// Until then.
    pub not_after: Timestamp,
}

impl Validity {
    /// Whether it is good at that time.
    pub fn contains(&self, now: Timestamp) -> bool {
        (self.not_before..self.not_after).contains(&now)
    }
}

/// How long certificates live, and how long others get to follow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Times {
    /// How long a serving certificate lives; it is renewed after two thirds of that.
    pub serving: Duration,
    /// How long an authority lives; it is followed by another after two thirds of that.
    pub authority: Duration,
    /// How long after a bundle was written all API servers surely use it.
    pub settle: Duration,
    /// How long an authority is trusted after another has signed the serving certificate.
    pub overlap: Duration,
    /// How long after a replica is ready the API server surely reaches it: the kubelet has to ask, and nodes have to
    /// learn the way. Webhooks that fail closed are not registered before.
    pub reach: Duration,
    /// How long a replica may outlive its package: what the kubelet gives it to end, and some more.
    pub linger: Duration,
}

impl Default for Times {
    fn default() -> Self {
        let (settle, reach, linger) = (Duration::from_secs(60), Duration::from_secs(4), Duration::from_secs(30));
        Self { serving: 90 * DAY, authority: 3652 * DAY, settle, overlap: DAY, reach, linger }
    }
}

/// Certificates that the operator keeps itself.
///
/// It takes these rights: `get`, `list`, `watch` and `update` on the Secret and `create` on Secrets in its namespace;
/// `list`, `watch` and `patch` on the configurations.
#[derive(Debug, Clone)]
pub struct SelfManaged {
    /// The namespace of the Secret.
    pub namespace: String,
    /// The name of the Secret.
    pub secret: String,
    /// Labels for the Secret.
    pub labels: BTreeMap<String, String>,
    /// The host names that the webhook is called by: `<service>.<namespace>.svc`.
    pub names: Vec<String>,
    /// The webhooks that the API server is told to call.
    pub registrations: Vec<Registration>,
    /// As whom fields are written.
    pub manager: String,
    /// How long everything lasts.
    pub times: Times,
}

/// Certificates in a directory that somebody else keeps: `tls.crt`, `tls.key` and, for registrations, `ca.crt`.
///
/// It takes the rights `list`, `watch` and `patch` on the configurations; without registrations none.
#[derive(Debug, Clone)]
pub struct Mounted {
    /// The directory.
    pub directory: PathBuf,
    /// The host name that the webhook is called by.
    pub host: String,
    /// The webhooks that the API server is told to call; none where somebody else tells it.
    pub registrations: Vec<Registration>,
    /// As whom fields are written.
    pub manager: String,
    /// How long others get to follow.
    pub times: Times,
}

/// A certificate to serve with, swapped without a break; clones are the same.
#[derive(Debug, Clone)]
pub struct Serving {
    tls: RustlsConfig,
    is_ready: Arc<AtomicBool>,
}

impl Serving {
    /// Whether there is a certificate, and nobody is told to call us who would not trust it.
    pub fn is_ready(&self) -> bool {
        self.is_ready.load(Ordering::Relaxed)
    }

    pub(crate) fn tls(&self) -> RustlsConfig {
        self.tls.clone()
    }
}

/// A certificate that the operator keeps itself, until the shutdown.
///
/// Only the leader writes, but for a Secret that nobody has made yet. Has to be called within a tokio runtime.
pub fn self_managed(
    config: SelfManaged,
    client: Client,
    leadership: Leadership,
    tasks: &Tasks,
    shutdown: Shutdown,
) -> Result<Serving, TlsError> {
    let serving = Serving { tls: RustlsConfig::from_config(Arc::new(blank_config()?)), is_ready: Arc::default() };
    let state = State::new(Arc::clone(&serving.is_ready), config.times.reach);
    Keeper::start(config, client, leadership, serving.tls(), state, tasks, shutdown);
    Ok(serving)
}

/// A certificate in the files of a directory, read again when they change, until the shutdown.
///
/// Only the leader writes. Has to be called within a tokio runtime.
pub fn mounted(
    config: Mounted,
    client: Client,
    leadership: Leadership,
    tasks: &Tasks,
    shutdown: Shutdown,
) -> Result<Serving, TlsError> {
    Mount::start(config, client, leadership, tasks, shutdown)
}
