//! Starts memcached once, to prove that an image and its arguments start, and stops it again: no memory is touched.

use std::io::{self, Write};
use std::time::Duration;

use rustix::process::Signal;
use tokio::time::{sleep, timeout};

use crate::Chain;
use crate::args::Trial;
use crate::exporter::Source;
use crate::supervisor::argument::without_memory_file;
use crate::supervisor::child::Child;
use crate::supervisor::question::{QUESTION, is_of, question};
use crate::supervisor::signal::Signals;

/// How long until memcached is asked again.
const PAUSE: Duration = Duration::from_millis(250);
/// How long it may take to stop before it is killed.
const STOP_TIMEOUT: Duration = Duration::from_secs(5);

/// Why memcached is not known to start. What it said itself is on stderr already.
#[derive(Debug, thiserror::Error)]
pub enum TrialError {
    /// The system gives no timers or signals, or there is no such program.
    #[error("failed to start {what}")]
    Start {
        /// What did not start.
        what: String,
        /// What the system said.
        source: io::Error,
    },
    /// It ended by itself.
    #[error("memcached does not start with these arguments: it ended before it answered ({exit})")]
    Ended {
        /// How.
        exit: String,
    },
    /// It runs, and nobody answers.
    #[error("memcached did not answer within {timeout:?}: {trouble}")]
    Silent {
        /// How long it had.
        timeout: Duration,
        /// What came instead of an answer.
        trouble: String,
    },
    /// A signal came first.
    #[error("told to stop before memcached answered")]
    Stopped,
}

/// What came of a question.
enum Answer {
    /// It is up, and of this version.
    Version(String),
    /// It is up, and does not let us in.
    Refusal(String),
    /// Neither, for this reason.
    Trouble(String),
}

/// Starts memcached, and stops it once it has answered.
pub fn run(trial: &Trial) -> Result<(), TrialError> {
    let failed = |source| TrialError::Start { what: "the agent".into(), source };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let proof = runtime.block_on(start_once(trial))?;
    // The exit code is what counts: it is the same where nobody reads the words.
    writeln!(io::stdout(), "{proof}").ok();
    Ok(())
}

/// One life of memcached, from its start to its end; what it has proved.
async fn start_once(trial: &Trial) -> Result<String, TrialError> {
    let failed = |source| TrialError::Start { what: "the agent".into(), source };
    let mut signals = Signals::register().map_err(failed)?;
    let mut words = trial.command.iter().cloned();
    let program = words.next().unwrap_or_default();
    let arguments: Vec<String> = words.collect();
    let failed = |source| TrialError::Start { what: program.clone(), source };
    let child = Child::spawn(&program, &without_memory_file(&arguments)).map_err(failed)?;
    tracing::info!(pid = child.pid(), "memcached starts");
    let proof = prove_in_time(trial, &child, &mut signals).await;
    if !matches!(proof, Err(TrialError::Ended { .. })) {
        stop(&child, &mut signals).await;
    }
    proof
}

/// Waits for memcached's answer, for as long as it may take.
async fn prove_in_time(trial: &Trial, child: &Child, signals: &mut Signals) -> Result<String, TrialError> {
    let source = Source::of(&trial.target);
    let allowed = trial.target.timeout;
    let mut trouble = "the first question is still open".to_owned();
    let outcome = tokio::select! {
        biased;
        () = signals.stop() => return Err(TrialError::Stopped),
        outcome = timeout(allowed, prove(&source, child, &mut trouble)) => outcome,
    };
    outcome.unwrap_or(Err(TrialError::Silent { timeout: allowed, trouble }))
}

/// Asks until memcached answers, or has ended.
async fn prove(source: &Source, child: &Child, trouble: &mut String) -> Result<String, TrialError> {
    let mut is_refused = false;
    loop {
        let answer = ask(source, child).await;
        // After the question: somebody else at its port may have answered for one that has ended.
        if let Some(exit) = child.reap() {
            return Err(TrialError::Ended { exit: exit.to_string() });
        }
        match answer {
            Answer::Version(version) => return Ok(format!("memcached {version} starts with these arguments")),
            // Nobody who refuses us tells whether it is ours; if it were not, ours would have ended by now.
            Answer::Refusal(why) if is_refused => {
                return Ok(format!("memcached starts with these arguments, and does not let us in: {why}"));
            }
            Answer::Refusal(why) => {
                is_refused = true;
                *trouble = why;
            }
            Answer::Trouble(why) => *trouble = why,
        }
        sleep(PAUSE).await;
    }
}

/// Asks memcached how it is, as the supervisor does.
async fn ask(source: &Source, child: &Child) -> Answer {
    match timeout(QUESTION, question(source, true)).await {
        Ok(Ok((version, Some(stats)))) if is_of(&stats, child) => Answer::Version(version),
        Ok(Ok(_)) => Answer::Trouble(format!("somebody else answers at {}", source.address())),
        Ok(Err(error)) if error.is_refusal() => Answer::Refusal(Chain(&error).to_string()),
        Ok(Err(error)) => Answer::Trouble(Chain(&error).to_string()),
        Err(_) => Answer::Trouble("it does not answer".into()),
    }
}

/// There is nothing to keep: it ends the quick way.
async fn stop(child: &Child, signals: &mut Signals) {
    child.signal(Signal::TERM);
    let exit = if let Ok(exit) = timeout(STOP_TIMEOUT, child.exit(signals)).await {
        exit
    } else {
        tracing::warn!("memcached does not stop: it is killed");
        child.signal(Signal::KILL);
        child.exit(signals).await
    };
    tracing::info!(%exit, "memcached has stopped");
}
