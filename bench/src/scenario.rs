//! What happens in each scenario while the clock runs, and what is written down afterwards.
//! Every number has the same meaning for every subject.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::arena::Arena;
use crate::bare;
use crate::error::{Error, Result};
use crate::object::{self, Target};
use crate::outcome::{Figures, Idle, Outcome};
use crate::plan::{Key, Scenario, Subject};
use crate::request::{Kind, Requests, for_each};
use crate::session::{Session, Settings};
use crate::tracker::Goal;
use crate::traffic::Traffic;

/// Everything that an object and its children are; none of it may be left after a deletion.
const ALL_KINDS: [Kind; 5] =
    [Kind::Memcached, Kind::Deployment, Kind::Service, Kind::PodDisruptionBudget, Kind::ControllerRevision];
/// The leader is killed when so many percent of the objects are done.
const KILLED_AT_PERCENT: usize = 30;
/// How long the API server is gone.
const OUTAGE: Duration = Duration::from_secs(30);
/// After an outage nobody tries again less often than this: who was silent for so long is at rest.
const LONGEST_BACKOFF: Duration = Duration::from_secs(45);

/// Measures once, on a control plane of its own.
pub async fn measure(key: Key, settings: &Settings) -> Result<Outcome> {
    let began = Instant::now();
    let mut session = Session::prepare(key, settings).await?;
    let setup_seconds = began.elapsed().as_secs_f64();
    let (seconds, mut failure) = match perform(&mut session).await {
        Ok(seconds) => (Some(seconds), None),
        Err(error) if error.is_finding() => (None, Some(error.to_string())),
        Err(error) => return Err(error),
    };
    let rest = match finish(&mut session, failure.is_none()).await {
        Err(error) if error.is_finding() => {
            failure = Some(error.to_string());
            finish(&mut session, false).await?
        }
        rest => rest?,
    };
    let seconds = seconds.filter(|_| failure.is_none());
    let (traffic, process, idle) = rest;
    let notes = session.notes;
    Ok(Outcome { setup_seconds, seconds, failure, traffic, process, idle, notes, ..Outcome::new(key) })
}

/// Lets it happen; the seconds it took.
async fn perform(session: &mut Session) -> Result<f64> {
    match session.key.scenario {
        Scenario::Create | Scenario::CreateOneNamespace | Scenario::CreateSecrets | Scenario::Idle => {
            create(session).await
        }
        Scenario::Ready => ready(session).await,
        Scenario::Change => change(session).await,
        Scenario::Delete => delete(session).await,
        Scenario::LeaderKilled => leader_killed(session).await,
        Scenario::Restart => restart(session).await,
        Scenario::Outage => outage(session).await,
    }
}

/// The time after the clock has stopped: until it is quiet, then the idle time.
async fn finish(session: &mut Session, is_converged: bool) -> Result<(Traffic, Option<Figures>, Option<Idle>)> {
    let cpu_seconds_to_converge = session.cpu_seconds();
    if is_converged {
        session.settle().await?;
    }
    let (mut traffic, cpu_seconds) = (session.traffic()?, session.cpu_seconds());
    traffic.busiest_second = session.busiest_second()?;
    let idle = if is_converged { session.idle().await? } else { None };
    let figures = session.reading().map(|reading| Figures {
        peak_kib: reading.memory.peak,
        settled_kib: reading.memory.resident,
        settled_anonymous_kib: reading.memory.anonymous,
        cpu_seconds_to_converge,
        cpu_seconds,
        connections: reading.connections,
        peak_connections: reading.peak_connections,
    });
    Ok((traffic, figures, idle))
}

/// All objects are there; from the start of the subject until all are reconciled.
async fn create(session: &mut Session) -> Result<f64> {
    let mut tracker = session.track(Goal::Reconciled { generation: 1 }).await?;
    session.begin()?;
    session.start_subject(1).await?;
    let reached = session.reach(&mut tracker, session.key.size).await?;
    let reached = session.until_children_exist(reached).await?;
    session.join().await?;
    Ok(session.seconds_until(reached))
}

/// The same, until all pods are ready and the objects say so.
async fn ready(session: &mut Session) -> Result<f64> {
    let goal = if session.key.subject == Subject::Bare { Goal::RolledOut } else { Goal::Ready };
    let mut tracker = session.track(goal).await?;
    session.begin()?;
    session.start_subject(1).await?;
    let reached = session.reach(&mut tracker, session.key.size).await?;
    session.join().await?;
    Ok(session.seconds_until(reached))
}

/// One field in all objects, from the first patch until Deployments and statuses show it.
async fn change(session: &mut Session) -> Result<f64> {
    create(session).await?;
    session.settle().await?;
    let before = generations(&session.arena).await?;
    let mut tracker = session.track(Goal::Reconciled { generation: 2 }).await?;
    let (user, targets) = (session.arena.user.clone(), session.arena.targets.clone());
    if session.key.subject == Subject::Bare {
        let requests = session.arena.requests_as("bench-bare").await?;
        session.begin()?;
        session.in_background(bare::change(user, requests, targets));
    } else {
        session.begin()?;
        session.in_background(change_all(user, targets));
    }
    let reached = session.reach(&mut tracker, session.key.size).await?;
    let reached = session
        .until_nothing_is_missing(reached, async |arena: &Arena| {
            let now = generations(arena).await?;
            let behind = before.iter().filter(|(key, old)| now.get(*key).is_none_or(|new| new <= *old)).count();
            Ok::<_, Error>((behind > 0).then(|| format!("{behind} Deployments are as before")))
        })
        .await?;
    session.join().await?;
    Ok(session.seconds_until(reached))
}

async fn change_all(user: Requests, targets: Vec<Target>) -> Result<()> {
    let change = |target: Target| {
        let user = user.clone();
        async move { user.merge(&target.path(), &object::change()).await }
    };
    for_each(targets, change).await.map(drop)
}

/// The generation of every Deployment: it counts the changes of its spec.
async fn generations(arena: &Arena) -> Result<HashMap<(String, String), i64>> {
    let deployments = arena.user.list_metadata(&Kind::Deployment.everywhere()).await?;
    Ok(deployments.into_iter().map(|d| ((d.namespace, d.name), d.generation)).collect())
}

/// All objects, from the first deletion until the garbage collector has left nothing.
async fn delete(session: &mut Session) -> Result<f64> {
    create(session).await?;
    session.settle().await?;
    session.arena.wait_for_collector().await;
    let (user, targets) = (session.arena.user.clone(), session.arena.targets.clone());
    session.begin()?;
    session.in_background(delete_all(user, targets));
    let gone = session.until_nothing_is_missing(Instant::now(), async |arena: &Arena| leftover(arena).await).await?;
    session.join().await?;
    Ok(session.seconds_until(gone))
}

async fn delete_all(user: Requests, targets: Vec<Target>) -> Result<()> {
    let delete = |target: Target| {
        let user = user.clone();
        async move { user.delete(&target.path()).await }
    };
    for_each(targets, delete).await.map(drop)
}

/// A kind of which something is left.
async fn leftover(arena: &Arena) -> Result<Option<String>> {
    for kind in ALL_KINDS {
        // The API server has a Service of its own, in this namespace.
        if arena.user.has_any(&kind.everywhere(), "&fieldSelector=metadata.namespace%21%3Ddefault").await? {
            return Ok(Some(format!("{} are left", kind.plural())));
        }
    }
    Ok(None)
}

/// Two replicas, of which the leader dies on the way; until the other one has finished the work.
async fn leader_killed(session: &mut Session) -> Result<f64> {
    let mut tracker = session.track(Goal::Reconciled { generation: 1 }).await?;
    session.begin()?;
    session.start_subject(2).await?;
    session.reach(&mut tracker, session.key.size * KILLED_AT_PERCENT / 100).await?;
    session.kill_leader()?;
    let reached = session.reach(&mut tracker, session.key.size).await?;
    let reached = session.until_children_exist(reached).await?;
    Ok(session.seconds_until(reached))
}

/// From the start over converged objects until nothing is left to do.
async fn restart(session: &mut Session) -> Result<f64> {
    create(session).await?;
    session.settle().await?;
    session.stop_subject().await;
    session.begin()?;
    session.start_subject(1).await?;
    session.until_at_work().await?;
    let last = session.settle().await?;
    Ok(session.seconds_until(last))
}

/// The API server goes and comes back over converged objects; from its start until nothing is left to do.
async fn outage(session: &mut Session) -> Result<f64> {
    create(session).await?;
    session.settle().await?;
    session.arena.cluster.stop_api_server();
    tokio::time::sleep(OUTAGE).await;
    session.begin()?;
    session.arena.cluster.start_api_server().await?;
    session.until_at_work().await?;
    let last = session.settle_for(LONGEST_BACKOFF).await?;
    Ok(session.seconds_until(last))
}
