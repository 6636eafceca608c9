//! The command line: what can be asked, and how it is answered.
//! `run` measures and keeps results; `report` reads them all and writes what people look at.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand, ValueEnum};
use testbed::progress::duration;

use crate::error::{Error, Result};
use crate::number::short;
use crate::outcome::{self, Outcome};
use crate::plan::{Key, Scenario, Subject, keys};
use crate::report;
use crate::scenario;
use crate::session::{Settings, say};

/// Measures our operator, another one, and what bare requests would take.
///
/// Each measurement has a control plane of its own with a fresh etcd, and its result is a file. One that is there is
/// not measured again, so a series that was interrupted goes on where it ended. Compare ratios within one series, not
/// seconds between machines.
#[derive(Debug, Parser)]
#[command(name = "bench", version, after_help = EXAMPLES)]
pub struct Cli {
    #[command(subcommand)]
    command: Verb,
}

const EXAMPLES: &str = "\
Examples:
  bench run --size 100,300,1000                    creation, all three subjects, three times
  bench run --size 10000 --scenario ready --subject ours
  bench run --size 1000 --scenario idle --again    measured before, and once more
  bench report                                     tables, target/bench/report.json, the plot";

#[derive(Debug, Subcommand)]
enum Verb {
    /// Measure what has no result yet
    Run(Run),
    /// Print ratios of all results as Markdown, and write them as JSON and as a plot
    Report(Report),
}

#[derive(Debug, Args)]
struct Run {
    /// How many objects; several sizes are separated by commas
    #[arg(long, value_delimiter = ',', default_value = "1000", value_parser = parse_size)]
    size: Vec<usize>,
    /// What happens to them
    #[arg(long, value_enum, value_delimiter = ',', default_value = "create")]
    scenario: Vec<Scenario>,
    /// Who does the work
    #[arg(long, value_enum, value_delimiter = ',', default_value = "all")]
    subject: Vec<Choice>,
    /// How often; three times up to 1,000 objects and once above, if not given
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    runs: Option<u32>,
    /// Measure again what has a result already
    #[arg(long)]
    again: bool,
    /// How many seconds writes are counted after convergence; 300 in the scenario idle and 30 in others, if not given
    #[arg(long)]
    idle_seconds: Option<u64>,
    /// How many seconds an operator may take until it is written down as not converged
    #[arg(long, default_value_t = 2400)]
    deadline: u64,
    /// Our operator's program; the static one that `make image` builds, if not given
    #[arg(long)]
    ours: Option<PathBuf>,
    /// Where results and logs go
    #[arg(long, default_value = "target/bench")]
    output: PathBuf,
}

/// Who does the work, or everybody.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Choice {
    /// The operator of this repository
    Ours,
    /// The other operator
    Peer,
    /// The same children and statuses, written by 16 tasks and nothing else
    Bare,
    /// Each of them in turn
    All,
}

#[derive(Debug, Args)]
struct Report {
    /// Where results are
    #[arg(long, default_value = "target/bench")]
    output: PathBuf,
    /// Where the plot goes
    #[arg(long, default_value = "docs/src/images/bench.svg")]
    plot: PathBuf,
    /// What the plot is about
    #[arg(long, value_enum, default_value_t = Scenario::Create)]
    plot_scenario: Scenario,
}

fn parse_size(text: &str) -> Result<usize, String> {
    match text.trim().replace('_', "").parse() {
        Ok(size @ 1..=99_999) => Ok(size),
        _ => Err("a number of objects from 1 to 99999".into()),
    }
}

impl Choice {
    fn subjects(self) -> &'static [Subject] {
        match self {
            Self::Ours => &[Subject::Ours],
            Self::Peer => &[Subject::Peer],
            Self::Bare => &[Subject::Bare],
            Self::All => &Subject::ALL,
        }
    }
}

impl Run {
    fn settings(&self) -> Settings {
        let machine = std::env::consts::ARCH;
        let built = || PathBuf::from(format!("target/{machine}-unknown-linux-musl/release/memcached-operator"));
        Settings {
            ours: self.ours.clone().unwrap_or_else(built),
            output: self.output.clone(),
            idle_seconds: self.idle_seconds,
            deadline: self.deadline,
        }
    }

    /// What is to be measured, without what has been.
    fn keys(&self) -> Vec<Key> {
        let subjects: Vec<Subject> = self.subject.iter().flat_map(|choice| choice.subjects()).copied().collect();
        let mut keys = keys(&self.size, &self.scenario, &subjects, self.runs);
        keys.retain(|key| self.again || !self.output.join(key.file_name()).exists());
        keys
    }
}

/// Does what was asked; errors become one sentence and a non-zero exit.
pub async fn main() -> ExitCode {
    let cli = Cli::parse();
    let work = async {
        match &cli.command {
            Verb::Run(run) => measure_all(run).await,
            Verb::Report(report) => write_report(report),
        }
    };
    // Whoever is dropped here takes its control plane and its operator along.
    let done = tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => {
            say("interrupted: what was measured stays, the rest is measured next time");
            return ExitCode::from(130);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!("error: {error}"));
            ExitCode::FAILURE
        }
    }
}

async fn measure_all(run: &Run) -> Result<()> {
    let (settings, keys) = (run.settings(), run.keys());
    if keys.iter().any(|key| key.subject == Subject::Ours) && !settings.ours.is_file() {
        let program = settings.ours.display();
        return Err(Error::Other(format!("there is no {program}: run `make bench`, or name another with --ours")));
    }
    if keys.is_empty() {
        say("Everything asked for has a result already: measure it again with --again.");
    }
    for (position, key) in keys.iter().enumerate() {
        say(&format!("{key}: {} of {}", position + 1, keys.len()));
        let began = std::time::Instant::now();
        let outcome = scenario::measure(*key, &settings).await?;
        let path = outcome.keep(&settings.output)?;
        say(&format!("{key}: {}; {} in all, {}", summary(&outcome), duration(began.elapsed()), path.display()));
    }
    Ok(())
}

/// The figures of a measurement in one line.
fn summary(outcome: &Outcome) -> String {
    let Some(seconds) = outcome.seconds else {
        return outcome.failure.clone().unwrap_or_default();
    };
    let traffic = &outcome.traffic;
    let (requests, writes) = (outcome.per_object(traffic.work()), outcome.per_object(traffic.writes));
    let mut text = format!(
        "converged in {} s, {} requests and {} writes an object",
        short(seconds),
        short(requests),
        short(writes)
    );
    if let Some(process) = &outcome.process {
        let (memory, cpu) = (report::megabytes(process.peak_kib), short(process.cpu_seconds));
        let connections = process.connections;
        text = format!("{text}, {} MB, {cpu} CPU s, {connections} connections", short(memory));
    }
    text
}

fn write_report(report: &Report) -> Result<()> {
    let outcomes = outcome::read_all(&report.output)?;
    if outcomes.is_empty() {
        let output = report.output.display();
        return Err(Error::Other(format!("no result below {output}: measure something with `bench run` first")));
    }
    let is_colourful = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none_or(|v| v.is_empty());
    report::print(&outcomes, is_colourful);
    let json = report.output.join("report.json");
    report::write_json(&outcomes, &json)?;
    say(&format!("Written: {}", json.display()));
    if report::write_plot(&outcomes, report.plot_scenario, &report.plot)? {
        say(&format!("Written: {}", report.plot.display()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn run(words: &[&str]) -> Run {
        match Cli::try_parse_from([&["bench", "run"], words].concat()).unwrap().command {
            Verb::Run(run) => run,
            Verb::Report(_) => panic!("asked to run"),
        }
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn sizes_scenarios_and_subjects_are_lists() {
        let run = run(&["--size", "100,300", "--scenario", "create,idle", "--subject", "ours", "--output", "nowhere"]);
        let names: Vec<String> = run.keys().iter().map(Key::to_string).collect();
        assert_eq!(names.len(), 12, "two sizes, two scenarios, three runs: {names:?}");
        assert_eq!(names[0], "100-create-ours-1");
    }

    #[test]
    fn large_sizes_are_measured_once() {
        let run = run(&["--size", "3000", "--output", "nowhere"]);
        assert_eq!(run.keys().len(), 3, "one a subject");
    }

    #[test]
    fn what_has_a_result_is_skipped_unless_asked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let output = dir.path().to_str().unwrap();
        let key = Key { scenario: Scenario::Create, size: 100, subject: Subject::Ours, run: 1 };
        Outcome::new(key).keep(dir.path()).unwrap();
        let left = |more: &[&str]| {
            run(&[&["--size", "100", "--subject", "ours", "--runs", "2", "--output", output], more].concat())
                .keys()
                .len()
        };
        assert_eq!((left(&[]), left(&["--again"])), (1, 2));
    }

    #[test]
    fn a_size_is_a_number_of_objects() {
        assert_eq!(parse_size("10_000"), Ok(10_000));
        for wrong in ["0", "many", "100000"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }
}
