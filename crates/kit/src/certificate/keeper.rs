//! Keeps certificates: reads the Secret, serves what may be served, and as the leader writes what is to be written.
//! Every turn starts from what there is; nothing has to be finished that another turn began.

use std::collections::BTreeSet;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::bundle::Bundles;
use super::plan::{Step, plan};
use super::trust::Trust;
use super::{Material, SelfManaged};
use crate::admin::TlsError;
use crate::backoff::Backoff;
use crate::controller::Request;
use crate::lease::{Leadership, NotLeader};
use crate::reference::Secrets;
use crate::shutdown::Shutdown;
use crate::telemetry::Chain;
use crate::watch::Key;

/// A write has to end while others still leave the lease alone.
const PATIENCE: Duration = Duration::from_secs(5);
/// The longest time between two looks, for what no watch tells: clocks are set, and timers drift.
const LOOK: Duration = Duration::from_secs(3600);
/// Who refers to the Secret.
const USER: &str = "webhook";

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
    #[error("failed to {action} {object}: no answer within {} s", PATIENCE.as_secs())]
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
    /// It is for the leader to write.
    #[error(transparent)]
    NotLeader(#[from] NotLeader),
}

impl CertificateError {
    /// Whether somebody else was faster: what there is has to be looked at again.
    pub(super) fn is_overtaken(&self) -> bool {
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
    match tokio::time::timeout(PATIENCE, request).await {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(source)) => Err(CertificateError::Api { action, object: object.to_string(), source: Box::new(source) }),
        Err(_) => Err(CertificateError::Timeout { action, object: object.to_string() }),
    }
}

/// What keeps the certificates of one replica.
pub(super) struct Keeper {
    config: SelfManaged,
    api: Api<Secret>,
    secrets: Secrets,
    leadership: Leadership,
    bundles: Bundles,
    trust: Trust,
    /// What is sound of what was last read: a Secret that is lost is made again from it.
    known: Option<Material>,
    served: Option<Material>,
    tls: RustlsConfig,
    is_ready: Arc<AtomicBool>,
    wake: UnboundedReceiver<Key>,
}

impl Keeper {
    pub(super) fn start(
        config: SelfManaged,
        client: Client,
        leadership: Leadership,
        tls: RustlsConfig,
        is_ready: Arc<AtomicBool>,
        shutdown: Shutdown,
    ) {
        let (sender, wake) = unbounded_channel();
        let secrets = {
            let sender = sender.clone();
            let wake = move |request: Request| drop(sender.send((request.namespace, request.name)));
            Secrets::new(client.clone(), Arc::new(wake), crate::task::tasks().0)
        };
        let bundles = Bundles::new(client.clone(), &config.manager, config.configurations.clone());
        let follow = bundles.clone().follow(sender);
        let api = Api::namespaced(client, &config.namespace);
        let (trust, known, served) = (Trust::default(), None, None);
        let mut keeper = Self { config, api, secrets, leadership, bundles, trust, known, served, tls, is_ready, wake };
        tokio::spawn(async move {
            keeper.refer(&BTreeSet::from([keeper.config.secret.clone()]));
            tokio::select! {
                () = keeper.run() => {}
                () = follow => {}
                () = shutdown.requested() => {}
            }
            keeper.refer(&BTreeSet::new());
        });
    }

    fn refer(&self, secrets: &BTreeSet<String>) {
        let request = Request { kind: "Secret", namespace: self.config.namespace.clone(), name: USER.into() };
        self.secrets.track(&request, secrets);
    }

    async fn run(&mut self) {
        let backoff = Backoff::default();
        let mut leads = self.leadership.watch();
        loop {
            let pause = match self.turn(Timestamp::now()).await {
                Ok(next) => {
                    backoff.reset(USER);
                    until(next)
                }
                // Who leads now will see to it, and perhaps that is us: then we are woken.
                Err(CertificateError::NotLeader(_)) => LOOK,
                Err(error) => {
                    let pause = backoff.next(USER, operator_model::problem::Class::Retry);
                    if error.is_overtaken() {
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
                Some(_) = self.wake.recv() => while self.wake.try_recv().is_ok() {},
            }
        }
    }

    /// Looks at everything once and does what is to be done; says when to look again.
    async fn turn(&mut self, now: Timestamp) -> Result<Timestamp, CertificateError> {
        let secret = call("get", &self.secret(), self.api.get_opt(&self.config.secret)).await?;
        let read = secret.as_ref().map(|secret| Material::read(&secret.data.clone().unwrap_or_default()));
        let (secret, material) = match (secret, read) {
            (Some(secret), Some(Ok(material))) => (secret, material),
            (secret, read) => {
                if let Some(Err(unsound)) = read {
                    tracing::warn!(secret = self.config.secret, %unsound, "the webhook's Secret is of no use");
                }
                self.restore(secret, now).await?
            }
        };
        self.known = Some(material.clone());
        let mut told = Ok(());
        if self.leadership.is_leader() {
            if let Some(adopted) = self.adopt(&material, now)? {
                self.write(secret, &adopted).await?;
                return Ok(now);
            }
            told = self.bundles.publish(&material.bundle(), &self.leadership).await;
        }
        // Writing may have taken a while, and trust counts from its end.
        let now = Timestamp::now();
        self.look_around(now, &material);
        let swap = self.serve(now, &material)?;
        self.judge_readiness(&material);
        told?;
        let next = if self.leadership.is_leader() { self.rotate(now, secret, material).await? } else { Timestamp::MAX };
        Ok(swap.min(next))
    }

    /// Makes the Secret anew: of what this replica knows, or if it knows nothing, from nothing.
    async fn restore(&self, secret: Option<Secret>, now: Timestamp) -> Result<(Secret, Material), CertificateError> {
        let known = self.known.as_ref().filter(|known| known.is_valid(now));
        // The first one may be anybody's: of several only one can be created, and the others take that.
        if known.is_some() || secret.is_some() {
            self.leadership.check()?;
        }
        let material = match known {
            Some(known) => known.clone(),
            None => Material::make(&self.config.names, &self.config.times, now)?,
        };
        if let Some(secret) = secret {
            let secret = self.write(secret, &material).await?;
            return Ok((secret, material));
        }
        let mut secret = Secret { type_: Some("kubernetes.io/tls".to_owned()), ..Secret::default() };
        secret.metadata.name = Some(self.config.secret.clone());
        secret.metadata.labels = Some(self.config.labels.clone()).filter(|labels| !labels.is_empty());
        secret.data = Some(material.data());
        let params = self.params();
        let created = call("create", &self.secret(), self.api.create(&params, &secret)).await?;
        tracing::info!(secret = self.config.secret, expiry = %material.expiry(), "made the webhook's Secret");
        Ok((created, material))
    }

    /// Replaces the Secret's content, if it is still the one that was read.
    async fn write(&self, mut secret: Secret, material: &Material) -> Result<Secret, CertificateError> {
        self.leadership.check()?;
        secret.data = Some(material.data());
        let params = self.params();
        let written = call("update", &self.secret(), self.api.replace(&secret.name_any(), &params, &secret)).await?;
        tracing::info!(secret = self.config.secret, expiry = %material.expiry(), "wrote the webhook's Secret");
        Ok(written)
    }

    /// If the Secret came to hold what does not know whom we serve with: the same, in an order that breaks nothing.
    fn adopt(&self, material: &Material, now: Timestamp) -> Result<Option<Material>, CertificateError> {
        let Some(served) = self.served.as_ref().filter(|served| served.is_valid(now)) else { return Ok(None) };
        if material.trusted().any(|authority| authority == served.issuer()) {
            return Ok(None);
        }
        let SelfManaged { names, times, .. } = &self.config;
        // Signed anew, since the overlap counts from there.
        let adopted = material.clone().with_previous(served.issuer().clone()).with_new_serving(names, times, now)?;
        Ok(Some(adopted))
    }

    /// Notes who is trusted, and since when.
    fn look_around(&mut self, now: Timestamp, material: &Material) {
        let served = self.served.as_ref().map(|served| &served.issuer().der);
        let authorities = material.trusted().map(|authority| &authority.der).chain(served);
        self.trust.observe(now, authorities, |authority| self.bundles.trust(authority));
    }

    /// Serves with this, if it may; else says when.
    fn serve(&mut self, now: Timestamp, material: &Material) -> Result<Timestamp, CertificateError> {
        if self.served.as_ref().is_some_and(|served| served.serving() == material.serving()) {
            return Ok(Timestamp::MAX);
        }
        let at = self.trust.may_serve(now, self.served.as_ref(), material, self.config.times.settle);
        if at > now {
            return Ok(at);
        }
        self.tls.reload_from_config(Arc::new(material.server_config()?));
        self.served = Some(material.clone());
        tracing::info!(expiry = %material.expiry(), "serving webhooks with another certificate");
        Ok(Timestamp::MAX)
    }

    /// Ready once the API server can call; later it stays so, as an unready replica helps nobody with a bad bundle.
    fn judge_readiness(&self, material: &Material) {
        let is_trusted = self.bundles.is_known() && self.trust.published(material).is_some();
        if is_trusted && self.served.is_some() && !self.is_ready.swap(true, Ordering::Relaxed) {
            tracing::info!("the API server can call the webhooks");
        }
    }

    /// The next step of a rotation, if it is time for one; else says when.
    async fn rotate(&self, now: Timestamp, secret: Secret, old: Material) -> Result<Timestamp, CertificateError> {
        let SelfManaged { names, times, .. } = &self.config;
        let facts = old.facts(names, self.trust.published(&old));
        let step = plan(now, &facts, times);
        let new = match step {
            Step::Wait(until) => return Ok(until),
            Step::RenewAuthority => old.with_new_authority(times, now)?,
            Step::RenewServing => old.with_new_serving(names, times, now)?,
            Step::RetirePrevious => old.without_previous(),
        };
        tracing::info!(?step, "rotating the webhook's certificates");
        self.write(secret, &new).await?;
        Ok(now)
    }

    fn params(&self) -> PostParams {
        PostParams { field_manager: Some(self.config.manager.clone()), ..PostParams::default() }
    }

    fn secret(&self) -> String {
        format!("Secret {:?}", self.config.secret)
    }
}

/// How long to wait for a time.
fn until(time: Timestamp) -> Duration {
    let left = time.duration_since(Timestamp::now());
    Duration::try_from(left).unwrap_or_default().min(LOOK)
}
