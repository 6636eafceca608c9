//! The election on a real API server: one leads, another follows in time, and never do two lead at once.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use kube::Api;
use kube::api::{Patch, PatchParams};
use operator_kit::lease::{self, Leadership, LeadershipEnd, LeaseConfig};
use operator_kit::shutdown::{self, Trigger};
use serde_json::json;
use testbed::{ControlPlane, wait};
use tokio::task::JoinHandle;

const LEASE_DURATION: Duration = Duration::from_secs(4);
const RENEW_DEADLINE: Duration = Duration::from_secs(2);

struct Candidate {
    leadership: Leadership,
    stop: Trigger,
    task: JoinHandle<LeadershipEnd>,
}

impl Candidate {
    async fn stand(cluster: &ControlPlane, identity: &str) -> Self {
        let config = LeaseConfig {
            lease_duration: LEASE_DURATION,
            renew_deadline: RENEW_DEADLINE,
            retry_period: Duration::from_millis(300),
            ..LeaseConfig::new("default", "widget-operator", identity)
        };
        let (leadership, election) = lease::candidate(config, cluster.client().await.unwrap()).unwrap();
        let (stop, token) = shutdown::channel();
        Self { leadership, stop, task: tokio::spawn(election.run(token)) }
    }

    async fn leads(&self) {
        within(20, "to lead", self.leadership.acquired()).await;
        assert_eq!(self.leadership.check(), Ok(()));
    }
}

async fn within<T>(seconds: u64, what: &str, work: impl Future<Output = T>) -> T {
    let limit = Duration::from_secs(seconds);
    tokio::time::timeout(limit, work).await.unwrap_or_else(|_| panic!("gave up after {seconds} s waiting {what}"))
}

async fn spec(cluster: &ControlPlane) -> LeaseSpec {
    let leases: Api<Lease> = Api::namespaced(cluster.client().await.unwrap(), "default");
    leases.get("widget-operator").await.unwrap().spec.unwrap()
}

/// Looks at two handles without pause, from a thread of its own, until it is asked what it saw.
struct Referee {
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<(u64, u64)>,
}

impl Referee {
    fn watch(one: &Candidate, two: &Candidate) -> Self {
        let (one, two) = (one.leadership.clone(), two.leadership.clone());
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let stop = stop.clone();
            move || {
                let (mut checks, mut both) = (0, 0);
                while !stop.load(Ordering::Relaxed) {
                    checks += 1;
                    both += u64::from(one.is_leader() && two.is_leader());
                    std::thread::sleep(Duration::from_micros(500));
                }
                (checks, both)
            }
        });
        Self { stop, thread }
    }

    fn never_saw_two(self) {
        self.stop.store(true, Ordering::Relaxed);
        let (checks, both) = self.thread.join().unwrap();
        assert!(checks > 100, "checked only {checks} times");
        assert_eq!(both, 0, "of {checks} checks");
    }
}

#[tokio::test]
async fn a_released_lease_goes_to_the_other_at_once() {
    let cluster = ControlPlane::start().await.unwrap();
    let one = Candidate::stand(&cluster, "one").await;
    one.leads().await;
    let two = Candidate::stand(&cluster, "two").await;
    let referee = Referee::watch(&one, &two);
    tokio::time::sleep(LEASE_DURATION + Duration::from_secs(1)).await;
    assert!(one.leadership.is_leader() && !two.leadership.is_leader(), "a renewed lease stays where it is");

    one.stop.fire();
    assert_eq!(one.task.await.unwrap(), LeadershipEnd::Released);
    assert!(!one.leadership.is_leader());
    let released = Instant::now();
    two.leads().await;
    let waited = released.elapsed();
    assert!(waited < LEASE_DURATION / 2, "waited {waited:?} for a free lease");
    let spec = spec(&cluster).await;
    assert_eq!((spec.holder_identity.as_deref(), spec.lease_transitions), (Some("two"), Some(1)));

    let three = Candidate::stand(&cluster, "three").await;
    three.stop.fire();
    assert_eq!(three.task.await.unwrap(), LeadershipEnd::NotHeld);
    assert!(two.leadership.is_leader(), "a follower that ends takes nothing along");
    referee.never_saw_two();
}

#[tokio::test]
async fn a_leader_that_dies_is_followed_when_its_lease_has_expired() {
    let cluster = ControlPlane::start().await.unwrap();
    let one = Candidate::stand(&cluster, "one").await;
    one.leads().await;
    let two = Candidate::stand(&cluster, "two").await;
    let referee = Referee::watch(&one, &two);
    wait::until("the follower to have seen a renewal", 20, async || {
        let spec = spec(&cluster).await;
        if spec.renew_time > spec.acquire_time { Ok(()) } else { Err(format!("{spec:?}")) }
    })
    .await
    .unwrap();

    one.task.abort();
    let died = Instant::now();
    within(5, "for leadership to lapse without anybody's doing", one.leadership.lost()).await;
    two.leads().await;
    let waited = died.elapsed();
    assert!(waited > LEASE_DURATION / 2, "took over after {waited:?}, from a lease of {LEASE_DURATION:?}");
    assert_eq!(spec(&cluster).await.lease_transitions, Some(1));
    referee.never_saw_two();
}

#[tokio::test]
async fn without_an_api_server_a_leader_gives_up_and_comes_back() {
    let mut cluster = ControlPlane::start().await.unwrap();
    let one = Candidate::stand(&cluster, "one").await;
    one.leads().await;
    let two = Candidate::stand(&cluster, "two").await;
    let referee = Referee::watch(&one, &two);
    let mut led = one.leadership.watch();

    cluster.stop_api_server();
    let stopped = Instant::now();
    within(10, "for the leader to give up", one.leadership.lost()).await;
    let waited = stopped.elapsed();
    assert!(waited < RENEW_DEADLINE + Duration::from_secs(1), "gave up after {waited:?}");
    assert!(one.leadership.check().is_err());
    within(5, "for the channel to say so", led.wait_for(|leads| !*leads)).await.unwrap();

    cluster.start_api_server().await.unwrap();
    within(30, "for a leader", async {
        tokio::select! {
            () = one.leadership.acquired() => {}
            () = two.leadership.acquired() => {}
        }
    })
    .await;
    referee.never_saw_two();
}

#[tokio::test]
async fn a_lease_that_cannot_be_released_is_said_to_be_kept() {
    let mut cluster = ControlPlane::start().await.unwrap();
    let one = Candidate::stand(&cluster, "one").await;
    one.leads().await;
    cluster.stop_api_server();
    one.stop.fire();
    assert_eq!(within(10, "for the end", one.task).await.unwrap(), LeadershipEnd::Kept);
    assert!(!one.leadership.is_leader());
}

#[tokio::test]
async fn every_write_carries_the_version_that_was_read() {
    let cluster = ControlPlane::start().await.unwrap();
    let one = Candidate::stand(&cluster, "one").await;
    one.leads().await;
    let leases: Api<Lease> = Api::namespaced(cluster.client().await.unwrap(), "default");
    let note = Patch::Merge(json!({"metadata": {"annotations": {"note": "kept"}}}));
    let before = leases.patch("widget-operator", &PatchParams::default(), &note).await.unwrap();
    wait::until("a renewal after the write of another client", 20, async || {
        let now = leases.get("widget-operator").await.map_err(|e| e.to_string())?;
        let renewed = now.spec.as_ref().unwrap().renew_time > before.spec.as_ref().unwrap().renew_time;
        let noted = now.metadata.annotations.as_ref().is_some_and(|all| all.contains_key("note"));
        if renewed && noted { Ok(()) } else { Err(format!("{now:?}")) }
    })
    .await
    .unwrap();
    assert!(one.leadership.is_leader());
    assert_eq!(spec(&cluster).await.lease_transitions, Some(0));
}
