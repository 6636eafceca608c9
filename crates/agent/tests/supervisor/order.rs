//! What annotations ask for is carried out in place, with the items kept; what makes no sense is told.

use memcached_wire::Report;

use super::harness::{Pod, fill, found};

const ITEMS: usize = 500;

fn json(arguments: &[String]) -> String {
    serde_json::to_string(arguments).unwrap()
}

/// The arguments behind the ones with which the program itself is found.
fn after_program(pod: &Pod, more: &[&str]) -> String {
    json(&pod.command_line(&pod.warm(more)))
}

#[tokio::test]
async fn other_arguments_are_taken_with_the_items_kept() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    assert_eq!(agent.ready(0).await["orders"]["argsInForce"], false);
    fill(&mut pod.client().await, ITEMS).await;
    pod.annotate(&[("args", &after_program(&pod, &["-c", "2000"]))]);
    let status = agent.ready(1).await;
    assert_eq!((&status["orders"]["argsInForce"], &status["memcached"]["start"]), (&true.into(), &"Warm".into()));
    let mut client = pod.client().await;
    assert_eq!(found(&mut client, ITEMS).await, ITEMS);
    assert_eq!(client.stats(Report::Settings).await.unwrap().get("maxconns"), Some("2000"));
    // They win over the container's at every start.
    assert!(agent.stop().await.success());
    let agent = pod.start(&[], &pod.warm(&[]));
    let status = agent.ready(0).await;
    assert_eq!((&status["orders"]["argsInForce"], &status["memcached"]["start"]), (&true.into(), &"Warm".into()));
}

#[tokio::test]
async fn a_restart_is_carried_out_once() {
    let pod = Pod::new();
    pod.annotate(&[("restart", "monday")]);
    let agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    fill(&mut pod.client().await, ITEMS).await;
    pod.annotate(&[("restart", "tuesday"), ("note", "something else")]);
    let status = agent.ready(1).await;
    assert_eq!(
        (&status["orders"]["restart"], &status["memcached"]["itemsRecovered"]),
        (&"tuesday".into(), &ITEMS.into())
    );
    pod.annotate(&[("restart", "tuesday"), ("note", "something new")]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert_eq!(agent.status().await["memcached"]["restarts"], 1);
}

#[tokio::test]
async fn arguments_with_which_memcached_does_not_start_are_told_and_cost_nothing() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    fill(&mut pod.client().await, ITEMS).await;
    pod.annotate(&[("args", &after_program(&pod, &["--no-such-option"]))]);
    let status = agent
        .eventually("it to be told", |status| {
            status["orders"]["error"].is_string() && status["memcached"]["phase"] == "Ready"
        })
        .await;
    assert!(status["orders"]["error"].as_str().unwrap().contains("does not start"), "{status:#}");
    assert_eq!(status["orders"]["argsInForce"], false);
    assert_eq!(found(&mut pod.client().await, ITEMS).await, ITEMS, "{}", agent.log());
    // It is told for as long as it is asked for.
    pod.annotate(&[("args", &after_program(&pod, &["--no-such-option"])), ("note", "something else")]);
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    assert!(agent.status().await["orders"]["error"].is_string());
    pod.annotate(&[]);
    let status = agent.eventually("it to be forgotten", |status| status["orders"]["error"].is_null()).await;
    assert_eq!(status["memcached"]["phase"], "Ready");
}

#[tokio::test]
async fn items_of_an_abandoned_memory_do_not_come_back() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    fill(&mut pod.client().await, ITEMS).await;
    let cold = json(&pod.command_line(&pod.arguments(&["-m", "64"])));
    pod.annotate(&[("args", &cold)]);
    assert_eq!(agent.ready(1).await["memcached"]["start"], "Cold");
    pod.annotate(&[]);
    let status = agent.ready(2).await;
    assert_eq!(status["memcached"]["start"], "Cold", "what was stored since would be older than what comes back");
    assert_eq!(found(&mut pod.client().await, ITEMS).await, 0);
}
