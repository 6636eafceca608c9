//! Turn by turn: each starts from what there is, so that nothing has to be finished that another turn began.

use std::fmt::Display;
use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use tokio::sync::mpsc::UnboundedReceiver;

use crate::admin::TlsError;
use crate::backoff::Backoff;
use crate::lease::{Leadership, NotLeader};
use crate::telemetry::Chain;
use crate::watch::Key;
use operator_model::problem::Class;

/// A write has to end while others still leave the lease alone.
const DEADLINE: Duration = Duration::from_secs(5);
/// The longest time between two turns, for what no watch tells: clocks are set, and timers drift.
pub(super) const RESYNC: Duration = Duration::from_secs(3600);
/// Whose failures are counted: there is one of them.
const KEY: &str = "webhook";

/// Why certificates are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum CertificateError {
    /// The API server refused.
    #[error("failed to {action} {object}")]
    Api {
        /// What was tried.
        action: &'static str,
        /// On what.
        object: String,
        /// What it said.
        source: Box<kube::Error>,
    },
    /// The API server took too long.
    #[error("failed to {action} {object}: no answer within {} s", DEADLINE.as_secs())]
    Timeout {
        /// What was tried.
        action: &'static str,
        /// On what.
        object: String,
    },
    /// No certificate could be made.
    #[error("failed to make a certificate")]
    Make(#[from] rcgen::Error),
    /// A certificate cannot be served.
    #[error("failed to serve with a certificate")]
    Serve(#[from] TlsError),
    /// Nobody says whom the API server has to trust.
    #[error("{0} is missing: the API server would trust nobody, so the webhooks are not registered")]
    NoAuthority(PathBuf),
    /// The API server would refuse the certificate.
    #[error("ca.crt does not vouch for tls.crt as {host:?}, so the webhooks are not registered")]
    Untrusted {
        /// The name that it would be called by.
        host: String,
        /// What is wrong with it.
        source: rustls::Error,
    },
    /// It is for the leader to write.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
}

impl CertificateError {
    /// Whether somebody else was faster: what there is has to be looked at again.
    pub(super) fn is_conflict(&self) -> bool {
        let Self::Api { source, .. } = self else { return false };
        matches!(&**source, kube::Error::Api(status) if status.code == 409)
    }
}

/// A request within its time.
pub(super) async fn call<T>(
    action: &'static str,
    object: &impl Display,
    request: impl Future<Output = kube::Result<T>>,
) -> Result<T, CertificateError> {
    match tokio::time::timeout(DEADLINE, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(CertificateError::Api { action, object: object.to_string(), source: Box::new(source) }),
        Err(_) => Err(CertificateError::Timeout { action, object: object.to_string() }),
    }
}

/// Something that is done again and again.
pub(super) trait Turn {
    /// Looks at everything once and does what is to be done; says when to do so again.
    fn turn(&mut self, now: Timestamp) -> impl Future<Output = Result<Timestamp, CertificateError>> + Send;
}

/// Takes turns for ever: when it is time, when something changes, when leadership does.
pub(super) async fn run(work: &mut impl Turn, leadership: &Leadership, wake: &mut UnboundedReceiver<Key>) {
    let backoff = Backoff::default();
    let mut leads = leadership.watch();
    loop {
        let pause = match work.turn(Timestamp::now()).await {
            Ok(next) => {
                backoff.reset(KEY);
                until(next)
            }
            // Who leads now will see to it, and perhaps that is us: then we are woken.
            Err(CertificateError::NotLeader(_)) => RESYNC,
            Err(error) => {
                let pause = backoff.next(KEY, Class::Retry);
                if error.is_conflict() {
                    tracing::debug!(error = %Chain(&error), "somebody else was faster");
                } else {
                    tracing::warn!(error = %Chain(&error), ?pause, "failed to keep the webhook's certificates");
                }
                pause
            }
        };
        tokio::select! {
            () = tokio::time::sleep(pause) => {}
            Ok(()) = leads.changed() => {}
            Some(_) = wake.recv() => while wake.try_recv().is_ok() {},
        }
    }
}

/// How long to wait for a time.
fn until(time: Timestamp) -> Duration {
    let left = time.duration_since(Timestamp::now());
    Duration::try_from(left).unwrap_or_default().min(RESYNC)
}
