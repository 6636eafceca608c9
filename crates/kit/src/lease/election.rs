//! Carries out what the [`ScopeElector`] says, against the API server, until the shutdown.
//! Every request has a deadline of its own, and none keeps a leader past the end of its leadership.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::{Api, Client};

use super::leadership::Publisher;
use super::request::{RequestError, Response, list_all, replace, request_own, within};
use super::trust::Trust;
use super::{ElectionStep, InvalidLease, Leadership, LeaseConfig, ScopeElector, ScopeStatus, ScopeStep};
use crate::shutdown::Shutdown;
use crate::telemetry::Chain;

/// Tries to give the lease back: a write of ours that is still on its way costs one.
const RELEASE_TRIES: u32 = 3;

/// A candidate, ready to [`run`](Election::run).
pub struct Election {
    config: LeaseConfig,
    elector: ScopeElector,
    client: Client,
    publisher: Publisher,
    trust: Trust,
}

impl std::fmt::Debug for Election {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Election").field("elector", &self.elector).finish_non_exhaustive()
    }
}

/// How an election ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LeadershipEnd {
    /// The lease was ours and is free again.
    Released,
    /// The lease was not ours.
    NotHeld,
    /// The lease may still be ours: others have to wait until it expires.
    Kept,
}

/// A candidate for a lease, or with a [`Mark`](super::Mark) for a whole scope, and the handle that says whether it
/// leads.
///
/// The client should be one from [`lease::client`](super::client).
pub fn candidate(config: LeaseConfig, client: Client) -> Result<(Leadership, Election), InvalidLease> {
    config.check()?;
    let (publisher, leadership) = Publisher::new();
    let elector = ScopeElector::new(config.clone());
    Ok((leadership, Election { config, elector, client, publisher, trust: Trust::default() }))
}

impl Election {
    /// Stands for election until the shutdown, then gives the lease back.
    ///
    /// Leadership that was lost is stood for again: whoever writes checks it each time. Give a token that
    /// is set off *after* the writers have ended, or the next leader may meet their last writes.
    pub async fn run(mut self, shutdown: Shutdown) -> LeadershipEnd {
        tokio::select! {
            () = shutdown.requested() => {}
            never = self.campaign() => match never {},
        }
        self.publisher.publish(None);
        self.release().await
    }

    async fn campaign(&mut self) -> Infallible {
        loop {
            let now = Instant::now();
            let until = self.elector.leads_until(now);
            self.announce(now, until);
            let step = self.elector.next(now, Timestamp::now());
            // A leader wakes up in time to say that it is none any more.
            let left = until.map(|until| until - now);
            match step {
                ScopeStep::Sleep(pause) => tokio::time::sleep(left.map_or(pause, |left| left.min(pause))).await,
                step => {
                    let limit = self.config.request_timeout();
                    self.attempt(step, left.map_or(limit, |left| left.min(limit))).await;
                }
            }
        }
    }

    /// One request, and what came of it.
    async fn attempt(&mut self, step: ScopeStep, limit: Duration) {
        match step {
            ScopeStep::Sleep(_) => {}
            ScopeStep::Own(number, step) => self.attempt_own(number, step, limit).await,
            ScopeStep::GiveBack(number, lease) => {
                let request = ElectionStep::Replace(lease);
                match within(limit, request_own(&self.leases(number), &self.config.name, request)).await {
                    Ok(Response::Written(lease)) => self.elector.given_back(number, Instant::now(), *lease),
                    Ok(Response::Read(_)) => {}
                    Err(error) => self.own_failed(number, &error, true),
                }
            }
            ScopeStep::List => {
                let sent = Instant::now();
                match self.list(limit).await {
                    Ok((leases, trusted)) => self.elector.listed(sent, Instant::now(), leases, trusted),
                    Err(error) => self.rivals_failed("failed to list the Leases of other operators", &error),
                }
            }
            ScopeStep::Rival(lease) => self.attempt_rival(&lease, limit).await,
        }
    }

    /// The Leases of our name, and the namespaces of those that may claim every namespace.
    async fn list(&mut self, limit: Duration) -> Result<(Vec<Lease>, BTreeSet<String>), RequestError> {
        let deadline = Instant::now() + limit;
        let leases = within(limit, list_all(&self.client, &self.config.name)).await?;
        let Some(mark) = &self.config.mark else { return Ok((leases, BTreeSet::new())) };
        let trusted = self.trust.of(&self.client, mark, &self.config.namespace, &leases, deadline).await?;
        Ok((leases, trusted))
    }

    async fn attempt_rival(&mut self, lease: &Lease, limit: Duration) {
        let namespace = lease.metadata.namespace.as_deref().unwrap_or_default();
        match within(limit, replace(&self.client, lease)).await {
            Ok(lease) => self.elector.rival_written(Instant::now(), lease),
            Err(error) => {
                if !error.is_conflict(true) {
                    let error = Chain(&error);
                    tracing::warn!(lease = self.config.name, namespace, %error, "failed to write the lease of another");
                }
                self.elector.rival_refused(namespace);
            }
        }
    }

    async fn attempt_own(&mut self, number: usize, step: ElectionStep, limit: Duration) {
        let replaces = matches!(step, ElectionStep::Replace(_));
        let sent = Instant::now();
        match within(limit, request_own(&self.leases(number), &self.config.name, step)).await {
            Ok(Response::Read(lease)) => self.elector.observed(number, Instant::now(), lease.map(|lease| *lease)),
            Ok(Response::Written(lease)) => self.elector.written(number, sent, Instant::now(), *lease),
            Err(error) => self.own_failed(number, &error, replaces),
        }
    }

    fn own_failed(&mut self, number: usize, error: &RequestError, replaces: bool) {
        let now = Instant::now();
        if error.is_conflict(replaces) {
            self.elector.refused(number, now);
            return;
        }
        let (lease, namespace) = (&self.config.name, self.elector.namespace(number).to_owned());
        let is_one_of_several = self.config.mark.is_some() && self.elector.len() > 1;
        if is_one_of_several && error.is_denial() {
            self.elector.denied(number, now, &error.to_string());
            return;
        }
        tracing::warn!(lease, namespace, error = %Chain(error), "failed to reach the lease");
        self.elector.failed(number, now, &Chain(error).to_string());
    }

    fn rivals_failed(&mut self, what: &str, error: &RequestError) {
        let why = format!("{what}: {}", Chain(error));
        tracing::warn!(lease = self.config.name, why, "failed to reach the lease");
        self.elector.rivals_failed(Instant::now(), &why);
    }

    fn leases(&self, number: usize) -> Api<Lease> {
        Api::namespaced(self.client.clone(), self.elector.namespace(number))
    }

    fn announce(&mut self, now: Instant, until: Option<Instant>) {
        let status = self.elector.status(now);
        let LeaseConfig { name, identity, .. } = &self.config;
        // First what is not led, then until when the rest is.
        let news = self.publisher.describe(status.clone(), self.elector.limits(now), self.elector.without(now));
        for (namespace, why) in &news.without {
            let words = format!("no Lease in namespace {namespace}: objects there are not managed; {why}");
            tracing::warn!(lease = name, identity, "{words}");
        }
        for namespace in &news.returned {
            tracing::info!(lease = name, identity, namespace, "objects in this namespace are managed again");
        }
        if news.status {
            match &status {
                ScopeStatus::Waiting(_) => tracing::warn!(lease = name, identity, "{status}"),
                status => tracing::info!(lease = name, identity, %status, "scope"),
            }
        }
        if !self.publisher.publish(until) {
            return;
        }
        if until.is_some() {
            tracing::info!(lease = name, identity, "leading");
        } else {
            tracing::warn!(lease = name, identity, "leading no more");
        }
    }

    async fn release(&mut self) -> LeadershipEnd {
        let mut ends = Vec::new();
        for number in 0..self.elector.len() {
            ends.push(self.release_own(number).await);
        }
        for lease in self.elector.release_rivals(Timestamp::now()) {
            // One that is not given back expires.
            within(self.config.request_timeout(), replace(&self.client, &lease)).await.ok();
        }
        let end = [LeadershipEnd::Kept, LeadershipEnd::Released].into_iter().find(|end| ends.contains(end));
        end.unwrap_or(LeadershipEnd::NotHeld)
    }

    async fn release_own(&mut self, number: usize) -> LeadershipEnd {
        let (leases, limit) = (self.leases(number), self.config.request_timeout());
        let namespace = self.elector.namespace(number).to_owned();
        for _ in 0..RELEASE_TRIES {
            // Read first: the shutdown may have cut off a write whose outcome nobody knows.
            let Ok(lease) = within(limit, leases.get_opt(&self.config.name)).await else { break };
            self.elector.observed(number, Instant::now(), lease);
            let Some(lease) = self.elector.release(number, Timestamp::now()) else { return LeadershipEnd::NotHeld };
            match within(limit, request_own(&leases, &self.config.name, ElectionStep::Replace(lease))).await {
                Ok(_) => {
                    tracing::info!(lease = self.config.name, namespace, "released");
                    return LeadershipEnd::Released;
                }
                Err(error) if error.is_conflict(true) => {}
                Err(_) => break,
            }
        }
        tracing::warn!(lease = self.config.name, namespace, "failed to release the lease: it has to expire");
        LeadershipEnd::Kept
    }
}
