//! Writes that fail, one in turn, on their way to a real API server: whatever happens to one, the cache becomes ready,
//! and nobody is alarmed.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use http::Method;
use serde_json::json;
use testbed::{User, wait};

use crate::harness::proxy::{Fate, Proxy};
use crate::harness::{Arena, DEADLINE, Operator};

fn account() -> User {
    User::service_account("memcached-operator-system", "memcached-operator")
}

fn is_write(method: &Method) -> bool {
    [Method::POST, Method::PUT, Method::PATCH, Method::DELETE].contains(method)
}

/// The cache that a request is about, by the names in its path; a revision's has a hash behind it.
fn concerns(path: &str, cache: &str) -> bool {
    path.split('/').any(|segment| segment.strip_prefix(cache).is_some_and(|r| r.is_empty() || r.starts_with('-')))
}

/// What is to happen to which write of a cache, and how many there were.
struct Fault {
    fate: Fate,
    which: usize,
    writes: usize,
}

/// How many writes a new cache takes at least: two children, their revision and two of the status, and how many are failed.
const LEAST: usize = 5;
const WRITES: usize = 7;

#[tokio::test]
async fn each_write_that_fails_in_turn_is_made_up_for() {
    let fates = [
        ("conflict", Fate::Refused(409)),
        ("busy", Fate::Refused(429)),
        ("broken", Fate::Refused(500)),
        ("request", Fate::RequestLost),
        ("answer", Fate::AnswerLost),
    ];
    let faults = fates.iter().flat_map(|(name, fate)| {
        (0..WRITES).map(move |which| (format!("{name}-{which}"), Fault { fate: *fate, which, writes: 0 }))
    });
    let faults: Arc<Mutex<BTreeMap<String, Fault>>> = Arc::new(Mutex::new(faults.collect()));
    let arena = Arena::without_operator().await;
    let place = arena.namespace("fault").await;
    let planned = Arc::clone(&faults);
    let account = account();
    let proxy = Proxy::start(&arena.cluster, &account, move |method, path| {
        let mut faults = planned.lock().unwrap();
        let fault = faults.iter_mut().find(|(cache, _)| is_write(method) && concerns(path, cache));
        let Some((_, fault)) = fault else { return Fate::Forwarded };
        fault.writes += 1;
        if fault.writes == fault.which + 1 { fault.fate } else { Fate::Forwarded }
    });
    let proxy = proxy.await;
    *arena.operator.lock().unwrap() = Some(Operator::start_by(&proxy.kubeconfig(), &["--leader-elect=false"]));

    let names: Vec<String> = faults.lock().unwrap().keys().cloned().collect();
    for name in &names {
        place.declare(name, json!({"replicas": 1})).await;
    }
    for name in &names {
        place.ready(name).await;
    }
    for (name, fault) in &*faults.lock().unwrap() {
        assert!(fault.which >= LEAST || fault.writes > fault.which, "{name}: only {} writes", fault.writes);
    }
    // What passes by itself is no news.
    let warnings = place.namespace.kubectl(&["get", "events", "--field-selector=type=Warning"]).unwrap();
    let told: Vec<&str> = warnings.lines().filter(|line| line.contains("memcached/")).collect();
    assert_eq!(told, [""; 0]);
}

#[derive(Default)]
struct Seen {
    writes: usize,
    is_cut_off: bool,
    /// When the API server was last asked about a Lease, and answered.
    renewed: Option<Instant>,
}

#[tokio::test]
async fn leadership_that_is_lost_between_two_writes_stops_the_second() {
    /// How long a Lease lasts that is not renewed.
    const LEASE: Duration = Duration::from_secs(15);
    let arena = Arena::without_operator().await;
    let place = arena.namespace("lost").await;
    let seen = Arc::new(Mutex::new(Seen::default()));
    let noted = Arc::clone(&seen);
    let account = account();
    let proxy = Proxy::start(&arena.cluster, &account, move |method, path| {
        let mut seen = noted.lock().unwrap();
        match path.contains("/leases") {
            true if seen.is_cut_off => Fate::RequestLost,
            true => {
                seen.renewed = Some(Instant::now());
                Fate::Forwarded
            }
            false if is_write(method) && concerns(path, "sessions") => {
                seen.writes += 1;
                let is_lost = seen.is_cut_off;
                // After the first write neither a Lease nor another write gets through.
                seen.is_cut_off |= seen.writes == 1;
                if is_lost { Fate::RequestLost } else { Fate::Forwarded }
            }
            false => Fate::Forwarded,
        }
    });
    let proxy = proxy.await;
    *arena.operator.lock().unwrap() = Some(Operator::start_by(&proxy.kubeconfig(), &["--leader-elect=true"]));
    place.declare("sessions", json!({"replicas": 1})).await;
    let expired = wait::until("the Lease to expire", DEADLINE, async || {
        let seen = seen.lock().unwrap();
        let since = seen.renewed.map(|renewed| renewed.elapsed()).filter(|_| seen.is_cut_off);
        if since.is_some_and(|since| since > LEASE) { Ok(seen.writes) } else { Err(format!("{since:?}")) }
    });
    let tried = expired.await.unwrap();
    assert!(tried > 1, "it goes on as long as it leads");
    // Another replica may lead from now on. There is work left, and a retry was due long ago.
    tokio::time::sleep(LEASE).await;
    assert_eq!(seen.lock().unwrap().writes, tried);
    seen.lock().unwrap().is_cut_off = false;
    place.ready("sessions").await;
}
