//! A server with Leases, a clock in the tests' hands, and candidates of several releases: the stage of the scope tests.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

use super::elector::micro;
use super::mark::Phase;
use super::{ElectionStep, LeaseConfig, Mark, MarkKeys, Right, Scope, ScopeElector, ScopeStatus, ScopeStep};

/// The mark of a release in the namespace of its name.
pub fn mark_of(release: &str, watches: &[&str]) -> Mark {
    let watches: Vec<String> = watches.iter().map(ToString::to_string).collect();
    let keys = MarkKeys {
        release: "widget/release",
        scope: "widget/scope",
        phase: "widget/phase",
        account: "widget/service-account",
    };
    let right = Right { verb: "patch", group: "widget", resource: "widgets", subresource: "status" };
    Mark { keys, release: release.into(), scope: Scope::of(&watches), account: "operator".into(), right }
}

/// The Leases of one name, by namespace; every write needs the current resourceVersion.
#[derive(Default)]
pub struct Server {
    pub leases: BTreeMap<String, Lease>,
    version: u32,
}

impl Server {
    pub fn write(&mut self, mut lease: Lease) -> Option<Lease> {
        let namespace = lease.metadata.namespace.clone().unwrap();
        let current = self.leases.get(&namespace).and_then(|lease| lease.metadata.resource_version.clone());
        if lease.metadata.resource_version != current {
            return None;
        }
        self.version += 1;
        lease.metadata.resource_version = Some(self.version.to_string());
        self.leases.insert(namespace, lease.clone());
        Some(lease)
    }

    /// Somebody with every right on Leases in a namespace writes this one, or takes it away.
    pub fn force(&mut self, namespace: &str, lease: Option<Lease>) {
        let Some(mut lease) = lease else {
            self.leases.remove(namespace);
            return;
        };
        lease.metadata.namespace = Some(namespace.to_owned());
        lease.metadata.resource_version =
            self.leases.get(namespace).and_then(|lease| lease.metadata.resource_version.clone());
        self.write(lease).unwrap();
    }

    /// Who holds the Lease of a namespace; nobody if it is free or absent.
    pub fn holder(&self, namespace: &str) -> String {
        let spec = self.leases.get(namespace).and_then(|lease| lease.spec.clone());
        spec.and_then(|spec| spec.holder_identity).unwrap_or_default()
    }
}

/// The namespaces in which nobody is an operator of all namespaces, whatever Leases there say.
pub fn is_tenant(namespace: &str) -> bool {
    namespace.starts_with("tenant-")
}

/// What a request brought.
#[derive(Debug, Clone)]
pub enum Response {
    Read(Option<Lease>),
    List(Vec<Lease>),
    Written(Lease),
    Refused,
}

/// A replica.
pub struct Candidate {
    pub elector: ScopeElector,
    pub clock: Instant,
    pub wall: Timestamp,
}

impl Candidate {
    /// A replica of a release in its own namespace, which watches these namespaces, or all.
    pub fn new(clock: Instant, identity: &str, release: &str, watches: &[&str]) -> Self {
        let mark = Some(mark_of(release, watches));
        let config = LeaseConfig { mark, ..LeaseConfig::new(release, "widget", identity) };
        Self { elector: ScopeElector::new(config), clock, wall: "2030-01-02T03:04:05Z".parse().unwrap() }
    }

    pub fn wait(&mut self, span: Duration) {
        self.clock += span;
        self.wall += span;
    }

    pub fn next(&mut self) -> ScopeStep {
        self.elector.next(self.clock, self.wall)
    }

    pub fn leads(&mut self) -> bool {
        self.elector.leads_until(self.clock).is_some()
    }

    /// Whether it may write in a namespace of its scope.
    pub fn works_in(&mut self, namespace: &str) -> bool {
        let (now, limits) = (self.clock, self.elector.limits(self.clock));
        self.leads() && limits.get(namespace).is_none_or(|limit| limit.is_some_and(|limit| now < limit))
    }

    /// The namespaces that it does without, as it says.
    pub fn without(&mut self) -> Vec<String> {
        self.elector.without(self.clock).into_keys().collect()
    }

    pub fn status(&mut self) -> ScopeStatus {
        self.elector.status(self.clock)
    }

    /// The releases that it waits for, with the namespaces of the Leases in question.
    pub fn waits_for(&mut self) -> Vec<(String, String)> {
        match self.status() {
            ScopeStatus::Waiting(rivals) => rivals.into_iter().map(|rival| (rival.release, rival.namespace)).collect(),
            _ => Vec::new(),
        }
    }

    /// What the server makes of a step.
    pub fn carry_out(&self, step: &ScopeStep, server: &mut Server) -> Response {
        let written = |lease: Option<Lease>| lease.map_or(Response::Refused, Response::Written);
        match step {
            ScopeStep::Sleep(_) => Response::Refused,
            ScopeStep::List => Response::List(server.leases.values().cloned().collect()),
            ScopeStep::Own(number, ElectionStep::Read | ElectionStep::Sleep(_)) => {
                Response::Read(server.leases.get(self.elector.namespace(*number)).cloned())
            }
            ScopeStep::Own(_, ElectionStep::Create(lease) | ElectionStep::Replace(lease))
            | ScopeStep::GiveBack(_, lease)
            | ScopeStep::Rival(lease) => written(server.write(lease.clone())),
        }
    }

    /// Takes the answer in; none was lost on its way.
    pub fn take_in(&mut self, step: ScopeStep, sent: Instant, answer: Option<Response>) {
        let now = self.clock;
        match (step, answer) {
            (ScopeStep::Own(number, _), Some(Response::Read(lease))) => self.elector.observed(number, now, lease),
            (ScopeStep::Own(number, _), Some(Response::Written(lease))) => {
                self.elector.written(number, sent, now, lease);
            }
            (ScopeStep::GiveBack(number, _), Some(Response::Written(lease))) => {
                self.elector.given_back(number, now, lease);
            }
            (ScopeStep::Own(number, _) | ScopeStep::GiveBack(number, _), Some(_)) => self.elector.refused(number, now),
            (ScopeStep::Own(number, _) | ScopeStep::GiveBack(number, _), None) => {
                self.elector.failed(number, now, "no answer");
            }
            (ScopeStep::List, Some(Response::List(leases))) => {
                let trusted = leases.iter().filter_map(|lease| lease.metadata.namespace.clone());
                let trusted = trusted.filter(|namespace| !is_tenant(namespace)).collect();
                self.elector.listed(sent, now, leases, trusted);
            }
            (ScopeStep::Rival(_), Some(Response::Written(lease))) => self.elector.rival_written(now, lease),
            (ScopeStep::Rival(lease), _) => {
                self.elector.rival_refused(lease.metadata.namespace.as_deref().unwrap_or_default());
            }
            (ScopeStep::List, _) => self.elector.rivals_failed(now, "no answer"),
            (ScopeStep::Sleep(_), _) => {}
        }
    }

    /// Does the next thing; whether there was one.
    pub fn step(&mut self, server: &mut Server) -> bool {
        let step = self.next();
        if matches!(step, ScopeStep::Sleep(_)) {
            return false;
        }
        let answer = self.carry_out(&step, server);
        self.take_in(step, self.clock, Some(answer));
        true
    }

    /// Does everything there is to do at this moment.
    pub fn settle(&mut self, server: &mut Server) {
        while self.step(server) {}
    }

    /// Ends in an orderly way.
    pub fn end(&mut self, server: &mut Server) {
        for number in 0..self.elector.len() {
            let lease = server.leases.get(self.elector.namespace(number)).cloned();
            self.elector.observed(number, self.clock, lease);
            if let Some(lease) = self.elector.release(number, self.wall) {
                server.write(lease).unwrap();
            }
        }
        for lease in self.elector.release_rivals(self.wall) {
            server.write(lease);
        }
    }
}

/// A Lease that says whatever somebody wants it to say.
pub fn forged(holder: &str, mark: Option<(&Mark, Phase)>, wall: Timestamp) -> Lease {
    let mut lease = Lease::default();
    if let Some((mark, phase)) = mark {
        mark.put(&mut lease, phase);
    }
    lease.spec = Some(LeaseSpec {
        holder_identity: Some(holder.to_owned()),
        lease_duration_seconds: Some(i32::MAX),
        acquire_time: Some(micro("2000-01-01T00:00:00Z".parse().unwrap())),
        renew_time: Some(micro(wall)),
        ..LeaseSpec::default()
    });
    lease
}

/// Lets time pass for all of them, in steps short enough for everybody to renew.
pub fn pass(seconds: u64, server: &mut Server, candidates: &mut [&mut Candidate]) {
    for _ in 0..seconds {
        for candidate in &mut *candidates {
            candidate.wait(Duration::from_secs(1));
            candidate.settle(server);
        }
    }
}
