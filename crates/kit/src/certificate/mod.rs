//! The certificate that webhooks are served with: kept by the operator itself, or mounted by somebody else.
//!
//! Kept by the operator: an authority and a serving certificate in one Secret that all replicas share. Each serves what
//! is in it; the leader renews it and tells the API server whom to trust, in an order in which no request is refused.

mod bundle;
mod keeper;
mod material;
mod plan;
#[cfg(test)]
mod plan_test;
mod trust;
mod x509;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use kube::Client;

pub use bundle::Configuration;
pub use keeper::CertificateError;
pub use material::{Material, Unsound};
pub use plan::{Facts, Signer, Step, plan};

use crate::admin::{Certificate, TlsError, blank_config};
use crate::lease::Leadership;
use crate::shutdown::Shutdown;
use keeper::Keeper;

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
}

impl Default for Times {
    fn default() -> Self {
        Self { serving: 90 * DAY, authority: 3652 * DAY, settle: Duration::from_secs(60), overlap: DAY }
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
    /// Where the API server is told whom to trust; one that does not exist is waited for.
    pub configurations: Vec<Configuration>,
    /// As whom fields are written.
    pub manager: String,
    /// How long everything lasts.
    pub times: Times,
}

/// A certificate to serve with, swapped without a break; clones are the same.
#[derive(Debug, Clone)]
pub struct Serving {
    tls: RustlsConfig,
    is_ready: Arc<AtomicBool>,
}

impl Serving {
    /// Whether there is a certificate and, if we keep it ourselves, the API server has been told to trust it.
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
    shutdown: Shutdown,
) -> Result<Serving, TlsError> {
    let serving = Serving { tls: RustlsConfig::from_config(Arc::new(blank_config()?)), is_ready: Arc::default() };
    let (tls, is_ready) = (serving.tls(), Arc::clone(&serving.is_ready));
    Keeper::start(config, client, leadership, tls, is_ready, shutdown);
    Ok(serving)
}

/// A certificate in the files `tls.crt` and `tls.key` of a directory, read again when they change, until the shutdown.
///
/// Whoever mounts them tells the API server whom to trust. Has to be called within a tokio runtime.
pub fn mounted(directory: &Path, shutdown: Shutdown) -> Result<Serving, TlsError> {
    let files = Certificate::Files { certificate: directory.join("tls.crt"), key: directory.join("tls.key") };
    Ok(Serving { tls: files.serve(shutdown)?, is_ready: Arc::new(AtomicBool::new(true)) })
}
