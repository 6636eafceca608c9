//! `try`: memcached is started once and is gone again, its memory is as it was, and what does not start is told.

use std::fs;
use std::process::Command;

use rustix::process::Signal;
use testbed::wait;

use super::harness::{Agent, DEADLINE, Pod, fill, found};

/// Longer than a busy machine takes.
const LONG: &str = "--timeout=300s";
/// All that is told of one that starts.
const STARTS: &str = "memcached 1.6.45 starts with these arguments\n";

#[derive(Debug)]
struct Outcome {
    code: Option<i32>,
    stdout: String,
    stderr: String,
}

impl Outcome {
    /// Runs a program to its end.
    fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), stdout: text(&output.stdout), stderr: text(&output.stderr) }
    }
}

/// Tries memcached with these arguments.
fn outcome(pod: &Pod, options: &[&str], arguments: &[String]) -> Outcome {
    Outcome::of(&mut pod.command(&[&["try"], options].concat(), arguments))
}

/// No process has the pod's address among its arguments.
fn assert_gone(pod: &Pod) {
    let address = pod.address().to_string();
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| fs::read_to_string(entry.path().join("cmdline")).ok());
    let left: Vec<String> = lines.filter(|line| line.split('\0').any(|word| word == address)).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Waits until the agent has said this.
async fn says(agent: &Agent, words: &str) {
    wait::until(words, DEADLINE, async || {
        let log = agent.log();
        if log.contains(words) { Ok(()) } else { Err(log) }
    })
    .await
    .unwrap();
}

#[test]
fn memcached_that_starts_is_told_and_is_gone_again() {
    let pod = Pod::new();
    let outcome = outcome(&pod, &[LONG], &pod.arguments(&["-m", "64"]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), STARTS), "{outcome:?}");
    // Told to, and not killed with its parent.
    assert!(outcome.stderr.contains("memcached has stopped"), "{outcome:?}");
    assert_gone(&pod);
}

#[tokio::test]
async fn memory_is_left_as_it_is() {
    let pod = Pod::new();
    let new = outcome(&pod, &[LONG], &pod.warm(&[]));
    assert_eq!(new.code, Some(0), "{new:?}");
    assert!(!pod.path("memory").exists() && !pod.meta().exists(), "there was none");

    let agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    fill(&mut pod.client().await, 10).await;
    assert!(agent.stop().await.success());
    let meta = fs::read(pod.meta()).unwrap();
    let again = outcome(&pod, &[LONG], &pod.warm(&[]));
    assert_eq!(again.code, Some(0), "{again:?}");
    assert_eq!(fs::read(pod.meta()).unwrap(), meta);
    let agent = pod.start(&[], &pod.warm(&[]));
    assert_eq!(agent.ready(0).await["memcached"]["itemsRecovered"], 10, "{}", agent.log());
    assert_eq!(found(&mut pod.client().await, 10).await, 10);
}

#[test]
fn memcached_that_ends_by_itself_fails_with_its_last_words() {
    let pod = Pod::new();
    let outcome = outcome(&pod, &[LONG], &pod.arguments(&["-m", "64", "--no-such-option"]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("--no-such-option"), "memcached's own words: {outcome:?}");
    let error = "error: memcached does not start with these arguments: it ended before it answered (exit code 1)";
    assert!(outcome.stderr.contains(error), "{outcome:?}");
}

#[test]
fn a_program_that_is_not_there_is_named() {
    let agent = env!("CARGO_BIN_EXE_memcached-agent");
    let outcome = Outcome::of(Command::new(agent).args(["try", "--", "/no/such/memcached", "-m", "64"]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("error: failed to start /no/such/memcached: "), "{outcome:?}");
}

#[test]
fn memcached_that_does_not_answer_in_time_fails_and_is_gone() {
    let (pod, elsewhere) = (Pod::new(), Pod::new());
    let outcome = outcome(&pod, &["--timeout=2s"], &elsewhere.arguments(&["-m", "64"]));
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(1), ""), "{outcome:?}");
    assert!(outcome.stderr.contains("error: memcached did not answer within 2s: failed to connect"), "{outcome:?}");
    assert!(outcome.stderr.contains("memcached has stopped"), "{outcome:?}");
    assert_gone(&elsewhere);
}

#[tokio::test]
async fn who_is_told_to_stop_stops_memcached_and_fails() {
    let (pod, elsewhere) = (Pod::new(), Pod::new());
    let mut agent = Agent::watch(pod.command(&["try", LONG], &elsewhere.arguments(&["-m", "64"])));
    says(&agent, "memcached starts").await;
    agent.signal(Signal::TERM);
    says(&agent, "error: told to stop before memcached answered").await;
    assert_eq!(agent.ended().await.code(), Some(1));
    assert_gone(&elsewhere);
}

#[test]
fn memcached_that_wants_a_login_starts_as_well() {
    let pod = Pod::new();
    pod.swap("passwords", b"ann:secret\n");
    let file = pod.text("passwords");
    let arguments = pod.arguments(&["-m", "64", "-Y", &file]);
    let credentials = format!("--credentials-file={file}");
    let inside = outcome(&pod, &[LONG, &credentials], &arguments);
    assert_eq!((inside.code, inside.stdout.as_str()), (Some(0), STARTS), "{inside:?}");
    let outside = outcome(&pod, &[LONG], &arguments);
    assert_eq!(outside.code, Some(0), "{outside:?}");
    let told = "memcached starts with these arguments, and does not let us in: ";
    assert!(outside.stdout.starts_with(told), "{outside:?}");
}
