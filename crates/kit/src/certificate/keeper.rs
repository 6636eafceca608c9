//! Keeps certificates: reads the Secret, serves what may be served, and as the leader writes what is to be written.

use std::collections::BTreeSet;
use std::sync::Arc;

use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Secret;
use kube::api::PostParams;
use kube::{Api, Client, ResourceExt};
use tokio::sync::mpsc::unbounded_channel;

use super::plan::{RenewalStep, plan};
use super::registration::Registrations;
use super::state::State;
use super::trust::Trust;
use super::turn::{self, CertificateError, Turn, call};
use super::{Material, SelfManaged};
use crate::controller::Request;
use crate::lease::Leadership;
use crate::metrics::Metrics;
use crate::reference::Secrets;
use crate::shutdown::Shutdown;
use crate::task::Tasks;

/// Who refers to the Secret.
const USER: &str = "webhook";

/// What keeps the certificates of one replica.
pub(super) struct Keeper {
    config: SelfManaged,
    api: Api<Secret>,
    secrets: Secrets,
    leadership: Leadership,
    registrations: Registrations,
    trust: Trust,
    /// What is sound of what was last read: a Secret that is lost is made again from it.
    known: Option<Material>,
    served: Option<Material>,
    tls: RustlsConfig,
    state: State,
}

impl Keeper {
    pub(super) fn start(
        config: SelfManaged,
        client: Client,
        leadership: Leadership,
        tls: RustlsConfig,
        state: State,
        tasks: &Tasks,
        shutdown: Shutdown,
    ) {
        let (sender, mut wake) = unbounded_channel();
        let secrets = {
            let sender = sender.clone();
            let wake = move |request: Request| drop(sender.send((request.namespace, request.name)));
            // Who serves webhooks may see this one Secret, and no other.
            Secrets::named(client.clone(), &config.secret, Arc::new(wake), tasks.clone(), Metrics::unregistered())
        };
        let (all, linger) = (config.registrations.clone(), config.times.linger);
        let registrations = Registrations::new(client.clone(), &config.manager, all, linger);
        let follow = registrations.clone().follow(sender);
        let api = Api::namespaced(client, &config.namespace);
        let (trust, known, served) = (Trust::default(), None, None);
        let watched = leadership.clone();
        let mut keeper = Self { config, api, secrets, leadership, registrations, trust, known, served, tls, state };
        let end = shutdown.clone();
        tasks.spawn_until("webhook certificate", shutdown, async move {
            keeper.refer(&BTreeSet::from([keeper.config.secret.clone()]));
            tokio::select! {
                () = turn::run(&mut keeper, &watched, &mut wake) => {}
                () = follow => {}
                () = end.requested() => {}
            }
            keeper.refer(&BTreeSet::new());
        });
    }

    fn refer(&self, secrets: &BTreeSet<String>) {
        let request = Request { kind: "Secret", namespace: self.config.namespace.as_str().into(), name: USER.into() };
        self.secrets.track(&request, secrets);
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
        self.trust.observe(now, authorities, |authority| self.registrations.trust(authority));
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

    /// Ready once whoever calls would trust us; later it stays so, as an unready replica helps nobody with a bad bundle.
    fn judge_readiness(&mut self, now: Timestamp, material: &Material) {
        let is_trusted = self.registrations.is_known() && self.trust.published(material).is_some();
        if is_trusted && self.served.is_some() {
            self.state.set_ready(now);
        }
    }

    /// The next step of a rotation, if it is time for one; else says when.
    async fn rotate(&self, now: Timestamp, secret: Secret, old: Material) -> Result<Timestamp, CertificateError> {
        let SelfManaged { names, times, .. } = &self.config;
        let certificates = old.certificates(names, self.trust.published(&old));
        let step = plan(now, &certificates, times);
        let new = match step {
            RenewalStep::Wait(until) => return Ok(until),
            RenewalStep::RenewAuthority => old.with_new_authority(times, now)?,
            RenewalStep::RenewServing => old.with_new_serving(names, times, now)?,
            RenewalStep::RetirePrevious => old.without_previous(),
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

impl Turn for Keeper {
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
        let mut told = Ok(Timestamp::MAX);
        if self.leadership.is_leader() {
            if let Some(adopted) = self.adopt(&material, now)? {
                self.write(secret, &adopted).await?;
                return Ok(now);
            }
            let is_callable = self.state.is_callable(now);
            told = self.registrations.publish(&material.bundle(), is_callable, &self.leadership).await;
        }
        // Writing may have taken a while, and trust counts from its end.
        let (asked, now) = (now, Timestamp::now());
        self.look_around(now, &material);
        let swap = self.serve(now, &material)?;
        self.judge_readiness(now, &material);
        let next = swap.min(told?);
        if !self.leadership.is_leader() {
            return Ok(next);
        }
        // As it was when that was asked: what became callable meanwhile has not been registered.
        let register = self.state.callable_at(asked).filter(|_| self.registrations.has_vacancy());
        Ok(next.min(register.unwrap_or(Timestamp::MAX)).min(self.rotate(now, secret, material).await?))
    }
}
