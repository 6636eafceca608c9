//! Runs the operator: clients, leadership, servers, controllers, and an orderly end.

use std::error::Error;

use kube::{Client, Config};
use memcached_api::label;
use memcached_core::memcached::PodDefaults;
use operator_kit::admin::{CertificateSource, Protection, Readiness, serve_health, serve_metrics};
use operator_kit::client::Clients;
use operator_kit::controller::{self, Controllers};
use operator_kit::lease::{self, Leadership, LeaseConfig, Mark, MarkKeys, Right, Scope};
use operator_kit::metrics::{Memory, Metrics};
use operator_kit::shutdown::{self, Shutdown};
use operator_kit::{task, telemetry};

use crate::args::Operator;
use crate::memcached::MemcachedKind;
use crate::{NAME, webhook};

/// Field managers under which the other operator wrote the same objects.
const PREDECESSORS: [&str; 2] = ["manager", "memcached-operator"];

/// The most worker threads, however many cores there are.
const MOST_THREADS: usize = 4;

/// Runs until a signal says stop.
pub fn run(operator: Operator, settings: &PodDefaults) -> Result<(), Box<dyn Error>> {
    telemetry::init(operator.log_format)?;
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    // On a machine with many cores each further thread would cost memory, and the API server is what is waited for.
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_THREADS);
    runtime.worker_threads(threads).enable_all().build()?.block_on(serve(operator, settings))
}

async fn serve(operator: Operator, settings: &PodDefaults) -> Result<(), Box<dyn Error>> {
    let shutdown = shutdown::on_signals()?;
    let config = Config::infer().await.map_err(|error| format!("no cluster to work in: {error}"))?;
    let metrics = Metrics::new("memcached_operator", &[("version", env!("CARGO_PKG_VERSION"))]);
    let clients = Clients::new(config.clone(), &metrics)?;
    let client = clients.requests().clone();
    let readiness = Readiness::default();
    let health = serve_health(&operator.health_probe_bind_address, readiness.clone(), shutdown.clone())?;
    let scrape = serve_metrics(
        &operator.metrics_bind_address,
        metrics.clone(),
        protection(&operator, &client),
        shutdown.clone(),
    )?;
    // The lease is released last, when nobody writes any more.
    let (resign, resigned) = shutdown::channel();
    let (leadership, mut election) = stand(&operator, config, resigned)?;
    metrics.show_leadership(leadership.clone());
    let scope = leadership.clone();
    readiness.register_check("scope", move || scope.status().check());
    let (tasks, mut failures) = task::tasks();
    tasks.spawn("memory", Memory::default().watch());
    let admission =
        webhook::serve(&operator, client.clone(), &metrics, leadership.clone(), &readiness, &tasks, &shutdown)?;

    tracing::info!(version = env!("CARGO_PKG_VERSION"), namespaces = ?operator.watch_namespaces, "starting");
    let controllers = Controllers::new(settings_of(&operator), clients, metrics.clone(), leadership, readiness, tasks)
        .with(MemcachedKind::new(settings.clone(), &metrics));
    tokio::select! {
        () = controllers.run(shutdown) => {}
        // Half an operator that looks healthy is worse than none: the kubelet starts a new one.
        failure = failures.first() => return Err(failure.into()),
        end = ended(election.as_mut()) => return Err(format!("the election ended: {end}").into()),
    }
    resign.fire();
    if let Some(election) = election {
        tracing::info!(end = ?election.await?, "leadership ended");
    }
    if let Some(admission) = admission {
        admission.ended().await?;
    }
    for server in [health, scrape].into_iter().flatten() {
        server.ended().await?;
    }
    Ok(())
}

/// How the controllers work, by the flags.
fn settings_of(operator: &Operator) -> controller::Config {
    controller::Config {
        manager: NAME,
        predecessors: &PREDECESSORS,
        digest: label::LAST_APPLIED_HASH,
        labels: format!("{}={}", label::MANAGED_BY, label::MANAGED_BY_VALUE),
        namespaces: operator.watch_namespaces.clone(),
        concurrency: operator.concurrency.into(),
        resync: operator.resync_interval.0,
    }
}

type Election = tokio::task::JoinHandle<lease::LeadershipEnd>;

/// Waits for the end of an election, which is a bug before the shutdown; for ever if there is none.
async fn ended(election: Option<&mut Election>) -> String {
    match election {
        Some(election) => match election.await {
            Ok(end) => format!("{end:?}"),
            Err(error) => error.to_string(),
        },
        None => std::future::pending().await,
    }
}

fn stand(
    operator: &Operator,
    config: Config,
    resigned: Shutdown,
) -> Result<(Leadership, Option<Election>), Box<dyn Error>> {
    if !operator.leader_elect {
        tracing::warn!("leader election is off: no other operator of the same namespaces is noticed");
        return Ok((Leadership::always(), None));
    }
    let host = std::env::var("HOSTNAME").unwrap_or_else(|_| NAME.into());
    let identity = lease::unique_identity(&host);
    let namespace = &operator.leader_election_namespace;
    let mark = Mark {
        keys: MarkKeys {
            release: label::LEASE_RELEASE,
            scope: label::LEASE_WATCH_NAMESPACES,
            phase: label::LEASE_PHASE,
            account: label::LEASE_SERVICE_ACCOUNT,
        },
        release: format!("{namespace}/{}", operator.release_name),
        scope: Scope::of(&operator.watch_namespaces),
        account: operator.service_account.clone(),
        // Nobody but an operator writes the status of caches, and in all namespaces only one of all.
        right: Right { verb: "patch", group: "memcached.c5c3.io", resource: "memcacheds", subresource: "status" },
    };
    let config_of_lease = LeaseConfig { mark: Some(mark), ..LeaseConfig::new(namespace, NAME, &identity) };
    let (leadership, election) = lease::candidate(config_of_lease, lease::client(config)?)?;
    Ok((leadership, Some(tokio::spawn(election.run(resigned)))))
}

fn protection(operator: &Operator, client: &Client) -> Protection {
    if !operator.metrics_secure {
        return Protection::Plain;
    }
    let names = vec!["localhost".into(), NAME.into()];
    Protection::Secure { certificate: CertificateSource::SelfSigned { names }, client: client.clone() }
}
