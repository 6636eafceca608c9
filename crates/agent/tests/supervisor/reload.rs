//! Passwords and certificates are taken live: nothing restarts, open connections stay, and what is told is what a client
//! sees.

use std::fs;
use std::time::Duration;

use memcached_wire::shown_certificate;
use rustix::process::{Signal, kill_process};
use serde_json::Value;
use testbed::pki::Pki;

use super::harness::{Agent, Pod, fill, found, text};

/// An agent whose memcached wants a login by the pod's password file.
fn with_passwords(pod: &Pod, options: &[&str]) -> Agent {
    let file = pod.text("passwords");
    let credentials = format!("--credentials-file={file}");
    pod.start(&[&[credentials.as_str()], options].concat(), &pod.warm(&["-Y", &file]))
}

#[tokio::test]
async fn passwords_are_taken_live_and_the_old_ones_refused() {
    let pod = Pod::new();
    pod.swap("passwords", b"ann:old\n");
    let agent = with_passwords(&pod, &[]);
    assert_eq!(agent.ready(0).await["credentials"]["inForce"], true);
    let mut open = pod.login("ann", "old").await.unwrap();
    fill(&mut open, 10).await;
    pod.swap("passwords", b"ann:new\nbob:other\n");
    let status = agent.eventually("the new ones", |status| status["credentials"]["reloads"] == 1).await;
    assert_eq!((&status["credentials"]["inForce"], &status["memcached"]["restarts"]), (&true.into(), &0.into()));
    assert_eq!(found(&mut open, 10).await, 10, "whoever is in stays in");
    for (user, password) in [("ann", "new"), ("bob", "other")] {
        assert!(pod.login(user, password).await.is_ok(), "{user}");
    }
    assert!(pod.login("ann", "old").await.is_err());

    // What cannot be used changes nothing, and is told.
    pod.swap("passwords", b"no colon\n");
    let status = agent.eventually("the failure", |status| status["credentials"]["failures"] == 1).await;
    assert!(status["credentials"]["error"].as_str().unwrap().contains("not user:password"), "{status:#}");
    assert!(pod.login("ann", "new").await.is_ok());
    // memcached serves as before, and is said to.
    agent.answers("/readyz", 200).await;
    assert!(agent.metrics().await.contains("memcached_agent_in_force{what=\"credentials\"} 0"));
    // memcached would not take this one, though its first user is as before.
    pod.swap("passwords", b"ann:new\n\nbob:third\n");
    let status = agent.eventually("the second failure", |status| status["credentials"]["failures"] == 2).await;
    assert_eq!(status["credentials"]["inForce"], false);
    assert!(pod.login("bob", "other").await.is_ok());
    let metrics = agent.metrics().await;
    for line in [
        "memcached_agent_reloads_total{outcome=\"taken\",what=\"credentials\"} 1",
        "memcached_agent_reloads_total{outcome=\"refused\",what=\"credentials\"} 2",
        "memcached_agent_in_force{what=\"credentials\"} 0",
    ] {
        assert!(metrics.contains(line), "{line} is missing in {metrics}");
    }
    let log = agent.log();
    assert!(!log.contains("other") && !log.contains("ann:"), "passwords are not for logs: {log}");
}

/// Whether the status proves that the files of a Secret with this hash are in force, as the operator reads it.
fn proves(status: &Value, hash: &str) -> bool {
    status["orders"]["secretHash"] == hash && status["credentials"]["inForce"] != false
}

#[tokio::test]
async fn an_announced_hash_is_told_once_its_files_were_compared() {
    let pod = Pod::new();
    pod.swap("passwords", b"ann:old\n");
    pod.annotate(&[("secret-hash", "first")]);
    let agent = with_passwords(&pod, &[]);
    let status = agent.eventually("the first hash", |status| proves(status, "first")).await;
    assert_eq!((&status["credentials"]["inForce"], &status["credentials"]["reloads"]), (&true.into(), &0.into()));

    // The kubelet may refresh either first.
    pod.annotate(&[("secret-hash", "second")]);
    pod.swap("passwords", b"ann:new\n");
    let status = agent.eventually("the second hash", |status| proves(status, "second")).await;
    assert_eq!((&status["credentials"]["reloads"], &status["memcached"]["restarts"]), (&1.into(), &0.into()));
    assert!(pod.login("ann", "new").await.is_ok());
    assert!(pod.login("ann", "old").await.is_err());

    pod.swap("passwords", b"no colon\n");
    pod.annotate(&[("secret-hash", "third")]);
    let status = agent.eventually("the third hash", |status| status["orders"]["secretHash"] == "third").await;
    assert!(!proves(&status, "third"), "what is not taken is not in force: {status:#}");
    pod.annotate(&[]);
    agent.eventually("no hash", |status| status["orders"]["secretHash"].is_null()).await;
}

#[tokio::test]
async fn an_announced_hash_is_told_without_files_too_and_in_every_life() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    assert!(agent.ready(0).await["orders"].get("secretHash").is_none());
    pod.annotate(&[("secret-hash", "first")]);
    agent.eventually("the hash", |status| proves(status, "first")).await;
    pod.annotate(&[("secret-hash", "first"), ("restart", "monday")]);
    agent.ready(1).await;
    agent.eventually("the hash again", |status| proves(status, "first")).await;
}

struct Certificates {
    pki: Pki,
}

impl Certificates {
    /// Another certificate in the pod's files.
    fn issue(&self, pod: &Pod, name: &str) -> Vec<u8> {
        let (chain, key) = self.pki.server(name, &["cache.test"], &[]).unwrap();
        pod.swap("tls.key", &fs::read(key).unwrap());
        let chain = fs::read(chain).unwrap();
        pod.swap("tls.crt", &chain);
        memcached_wire::first_certificate(&chain).unwrap()
    }
}

async fn tls(pod: &Pod, options: &[&str], more: &[&str]) -> Agent {
    let chain = format!("ssl_chain_cert={}", pod.text("tls.crt"));
    let key = format!("ssl_key={}", pod.text("tls.key"));
    let agent = pod.start(options, &pod.warm(&[&["-Z", "-o", &chain, "-o", &key], more].concat()));
    agent.ready(0).await;
    agent
}

#[tokio::test]
async fn certificates_are_taken_live_and_bad_ones_leave_the_old_in_force() {
    let pod = Pod::new();
    let certificates = Certificates { pki: Pki::create(pod.path("pki")).unwrap() };
    let address = pod.address().to_string();
    let first = certificates.issue(&pod, "first");
    let ca = certificates.pki.ca();
    let tls_address = format!("--tls-address={address}");
    let options = [tls_address.as_str(), "--tls", "--tls-ca-file", text(&ca), "--tls-server-name", "cache.test"];
    let agent = tls(&pod, &options, &[]).await;
    assert_eq!(shown_certificate(&address).await.unwrap(), first);
    let before = agent.eventually("the serial", |status| status["certificates"]["serial"].is_string()).await;

    let second = certificates.issue(&pod, "second");
    let status = agent
        .eventually("the new one", |status| {
            status["certificates"]["inForce"] == true
                && status["certificates"]["serial"] != before["certificates"]["serial"]
        })
        .await;
    assert_eq!(shown_certificate(&address).await.unwrap(), second);
    assert_eq!(status["memcached"]["restarts"], 0);
    assert!(status["certificates"]["notAfter"].as_i64().unwrap() > 1_700_000_000);

    pod.swap("tls.crt", b"no certificate");
    let bad = agent.eventually("the failure", |status| status["certificates"]["inForce"] == false).await;
    assert!(bad["certificates"]["error"].as_str().unwrap().contains("tls.crt"), "{bad:#}");
    assert_eq!(shown_certificate(&address).await.unwrap(), second, "the old one is shown");
    certificates.issue(&pod, "third");
    agent.eventually("the third", |status| status["certificates"]["inForce"] == true).await;
}

#[tokio::test]
async fn a_broken_password_file_costs_no_memory() {
    let pod = Pod::new();
    pod.swap("passwords", b"ann:secret\n");
    let agent = with_passwords(&pod, &[]);
    agent.ready(0).await;
    fill(&mut pod.login("ann", "secret").await.unwrap(), 10).await;
    assert!(agent.stop().await.success());
    // The container is started while the Secret is broken: memcached does not take it.
    pod.swap("passwords", b"broken\n");
    let mut agent = with_passwords(&pod, &[]);
    assert!(!agent.ended().await.success(), "{}", agent.log());
    pod.swap("passwords", b"ann:secret\n");
    let agent = with_passwords(&pod, &[]);
    assert_eq!(agent.ready(0).await["memcached"]["itemsRecovered"], 10, "{}", agent.log());
}

#[tokio::test]
async fn whoever_is_told_to_stop_does_so_in_the_middle_of_a_reload() {
    let pod = Pod::new();
    pod.swap("passwords", b"ann:old\n");
    let mut agent = with_passwords(&pod, &["--stop-timeout=1s"]);
    agent.ready(0).await;
    kill_process(agent.memcached(), Signal::STOP).unwrap();
    pod.swap("passwords", b"ann:new\n");
    tokio::time::sleep(Duration::from_millis(500)).await;
    agent.signal(Signal::TERM);
    assert!(agent.ended().await.success());
    assert!(agent.log().contains("does not stop: it is killed"), "{}", agent.log());
}
