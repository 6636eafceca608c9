//! memcached ends in every way there is, and comes back: with its items where that can be, and never in a loop.

use std::fs;
use std::time::Duration;

use rustix::process::{Signal, kill_process};

use super::harness::{Pod, fill, found};

const ITEMS: usize = 1000;

#[tokio::test]
async fn items_outlive_a_restart_of_the_container() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    let status = agent.ready(0).await;
    assert_eq!((&status["memcached"]["start"], &status["protocol"]), (&"Cold".into(), &1.into()));
    fill(&mut pod.client().await, ITEMS).await;
    assert!(agent.stop().await.success());
    let agent = pod.start(&[], &pod.warm(&[]));
    let status = agent.ready(0).await;
    assert_eq!(status["memcached"]["start"], "Warm", "{status:#}");
    assert_eq!(status["memcached"]["itemsRecovered"], ITEMS);
    assert_eq!(found(&mut pod.client().await, ITEMS).await, ITEMS);
    let metrics = agent.metrics().await;
    for line in [
        "memcached_up 1",
        "memcached_agent_starts_total{start=\"warm\"} 1",
        "memcached_agent_items_recovered 1000",
        "memcached_current_items 1000",
    ] {
        assert!(metrics.lines().any(|is| is == line), "{line} is missing in {metrics}");
    }
}

#[tokio::test]
async fn a_memcached_that_is_killed_comes_back_empty_and_is_warm_again_after_the_next_stop() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    fill(&mut pod.client().await, 10).await;
    kill_process(agent.memcached(), Signal::KILL).unwrap();
    let status = agent.ready(1).await;
    assert_eq!((&status["memcached"]["start"], &status["memcached"]["lastExit"]), (&"Cold".into(), &"signal 9".into()));
    fill(&mut pod.client().await, ITEMS).await;
    assert!(agent.stop().await.success());
    let agent = pod.start(&[], &pod.warm(&[]));
    assert_eq!(agent.ready(0).await["memcached"]["itemsRecovered"], ITEMS);
}

#[tokio::test]
async fn what_memcached_would_abort_on_is_removed() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    fill(&mut pod.client().await, 10).await;
    assert!(agent.stop().await.success());
    let meta = fs::read(pod.meta()).unwrap();
    for damaged in [
        Vec::new(),
        meta[..meta.len() / 2].to_vec(),
        b"Tmain\nKcurrent_time 63\nKstop_time 1\nKmmap_oldbase 0x1f\n".to_vec(),
    ] {
        fs::write(pod.meta(), &damaged).unwrap();
        let agent = pod.start(&[], &pod.warm(&[]));
        let status = agent.eventually("memcached to answer", |status| status["memcached"]["phase"] == "Ready").await;
        assert_eq!(status["memcached"]["start"], "Cold", "{damaged:?}: {status:#}");
        assert!(agent.stop().await.success());
    }
}

#[tokio::test]
async fn an_agent_that_is_killed_leaves_nothing_that_keeps_memcached_from_starting() {
    let pod = Pod::new();
    let mut agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    agent.signal(Signal::KILL);
    agent.ended().await;
    drop(agent);
    let agent = pod.start(&[], &pod.warm(&[]));
    let status = agent.eventually("memcached to answer", |status| status["memcached"]["phase"] == "Ready").await;
    assert_eq!(status["memcached"]["start"], "Cold");
}

#[tokio::test]
async fn one_that_does_not_start_ends_the_container_with_its_code() {
    let pod = Pod::new();
    let mut agent = pod.start(&[], &pod.arguments(&["--no-such-option"]));
    let status = agent.ended().await;
    assert!(!status.success());
    assert!(agent.log().contains("memcached does not start"), "{}", agent.log());
    assert!(agent.log().contains("no-such-option"), "memcached's own words: {}", agent.log());
}

#[tokio::test]
async fn it_goes_on_serving_for_a_while_when_the_pod_ends() {
    let pod = Pod::new();
    let mut agent = pod.start(&["--stop-delay=5s"], &pod.warm(&[]));
    agent.ready(0).await;
    agent.signal(Signal::TERM);
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(pod.client().await.version().await.unwrap(), "1.6.45");
    assert!(agent.ended().await.success());
    assert!(pod.meta().exists(), "and keeps its memory then");
}

#[tokio::test]
async fn probes_tell_a_frozen_memcached() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    agent.answers("/readyz", 200).await;
    kill_process(agent.memcached(), Signal::STOP).unwrap();
    agent.answers("/readyz", 503).await;
    // Not at once: it may be busy.
    agent.answers("/healthz", 200).await;
    kill_process(agent.memcached(), Signal::CONT).unwrap();
    agent.answers("/readyz", 200).await;
}
