//! Carries out what the [`Elector`] says, against the API server, until the shutdown.
//! Every request has a deadline of its own, and none keeps a leader past the end of its leadership.

use std::convert::Infallible;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::PostParams;
use kube::{Api, Client};
use tokio::time::timeout;

use super::leadership::Publisher;
use super::{Elector, InvalidLease, Leadership, LeaseConfig, Step};
use crate::shutdown::Shutdown;
use crate::telemetry::Chain;

/// Tries to give the lease back: a write of ours that is still on its way costs one.
const RELEASE_TRIES: u32 = 3;

/// A candidate, ready to [`run`](Election::run).
#[derive(Debug)]
pub struct Election {
    config: LeaseConfig,
    elector: Elector,
    leases: Api<Lease>,
    publisher: Publisher,
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

/// A candidate for a lease, and the handle that says whether it leads.
///
/// The client should be one from [`lease::client`](super::client).
pub fn candidate(config: LeaseConfig, client: Client) -> Result<(Leadership, Election), InvalidLease> {
    config.check()?;
    let (publisher, leadership) = Publisher::new();
    let leases = Api::namespaced(client, &config.namespace);
    let elector = Elector::new(config.clone());
    Ok((leadership, Election { config, elector, leases, publisher }))
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
            self.announce(until);
            let step = self.elector.next(now, Timestamp::now());
            // A leader wakes up in time to say that it is none any more.
            let left = until.map(|until| until - now);
            match step {
                Step::Sleep(pause) => tokio::time::sleep(left.map_or(pause, |left| left.min(pause))).await,
                step => self.attempt(step, left).await,
            }
        }
    }

    /// One request, and what came of it.
    async fn attempt(&mut self, step: Step, left: Option<Duration>) {
        let limit = self.config.request_timeout();
        let limit = left.map_or(limit, |left| left.min(limit));
        let replaces = matches!(step, Step::Replace(_));
        let sent = Instant::now();
        let answer = timeout(limit, request(&self.leases, &self.config.name, step)).await;
        let now = Instant::now();
        match answer {
            Ok(Ok(Answer::Read(lease))) => self.observe(now, lease),
            Ok(Ok(Answer::Written(lease))) => self.elector.written(sent, lease),
            Ok(Err(error)) if is_conflict(&error, replaces) => self.elector.refused(now),
            Ok(Err(error)) => {
                tracing::warn!(lease = self.config.name, error = %Chain(&error), "failed to reach the lease");
                self.elector.failed(now);
            }
            Err(_) => {
                tracing::warn!(lease = self.config.name, ?limit, "failed to reach the lease in time");
                self.elector.failed(now);
            }
        }
    }

    fn observe(&mut self, now: Instant, lease: Option<Lease>) {
        let before = self.elector.holder().map(str::to_owned);
        self.elector.observed(now, lease);
        let holder = self.elector.holder();
        if holder.is_some() && holder != before.as_deref() && holder != Some(&self.config.identity) {
            tracing::info!(lease = self.config.name, holder, "following");
        }
    }

    fn announce(&self, until: Option<Instant>) {
        if !self.publisher.publish(until) {
            return;
        }
        let Self { config: LeaseConfig { name, identity, .. }, .. } = self;
        if until.is_some() {
            tracing::info!(lease = name, identity, "leading");
        } else {
            tracing::warn!(lease = name, identity, holder = self.elector.holder(), "leading no more");
        }
    }

    async fn release(&mut self) -> LeadershipEnd {
        for _ in 0..RELEASE_TRIES {
            let limit = self.config.request_timeout();
            // Read first: the shutdown may have cut off a write whose outcome nobody knows.
            let Ok(Ok(lease)) = timeout(limit, self.leases.get_opt(&self.config.name)).await else { break };
            self.elector.observed(Instant::now(), lease);
            let Some(lease) = self.elector.release(Timestamp::now()) else { return LeadershipEnd::NotHeld };
            match timeout(limit, request(&self.leases, &self.config.name, Step::Replace(lease))).await {
                Ok(Ok(_)) => {
                    tracing::info!(lease = self.config.name, "released");
                    return LeadershipEnd::Released;
                }
                Ok(Err(error)) if is_conflict(&error, true) => {}
                _ => break,
            }
        }
        tracing::warn!(lease = self.config.name, "failed to release the lease: it has to expire");
        LeadershipEnd::Kept
    }
}

enum Answer {
    Read(Option<Lease>),
    Written(Lease),
}

async fn request(leases: &Api<Lease>, name: &str, step: Step) -> kube::Result<Answer> {
    let params = PostParams::default();
    match step {
        Step::Sleep(_) | Step::Read => leases.get_opt(name).await.map(Answer::Read),
        Step::Create(lease) => leases.create(&params, &lease).await.map(Answer::Written),
        Step::Replace(lease) => leases.replace(name, &params, &lease).await.map(Answer::Written),
    }
}

/// The lease is not the one that the write was made for: another version, already there, or gone.
fn is_conflict(error: &kube::Error, replaces: bool) -> bool {
    matches!(error, kube::Error::Api(status) if status.code == 409 || (replaces && status.code == 404))
}
