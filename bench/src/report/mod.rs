//! What people look at: tables of ratios, everything as JSON, and a plot.
//! Whatever did not converge is said as plainly as what did.

mod figure;
mod plot;
mod statistic;
mod table;

use std::collections::BTreeMap;
use std::path::Path;

use serde::Serialize;

use crate::error::{Error, Result};
use crate::number::float;
use crate::outcome::{Outcome, write_file};
use crate::plan::{Scenario, Subject};

use figure::{FIGURES, Figure};
use plot::{Plot, Point, Series};
use statistic::{Spread, paired_ratios};

/// Memory in MB as the issue and the documentation count it.
pub fn megabytes(kib: u64) -> f64 {
    float(kib) * 1024.0 / 1_000_000.0
}

/// All measurements of a scenario and a size, side by side.
#[derive(Debug, Serialize)]
struct Comparison {
    scenario: Scenario,
    size: usize,
    /// How many runs each subject has.
    runs: BTreeMap<Subject, usize>,
    rows: Vec<Row>,
    /// What did not converge, and notes, one sentence each.
    remarks: Vec<String>,
}

/// One figure of all subjects.
#[derive(Debug, Serialize)]
struct Row {
    figure: &'static str,
    subjects: BTreeMap<Subject, Spread>,
    /// Ours divided by the other operator's, run by run.
    ours_to_peer: Option<Spread>,
    /// Ours divided by the bare limit's, run by run.
    ours_to_bare: Option<Spread>,
}

impl Comparison {
    fn of(scenario: Scenario, size: usize, outcomes: &[&Outcome]) -> Self {
        let mut runs = BTreeMap::new();
        for outcome in outcomes {
            *runs.entry(outcome.key.subject).or_default() += 1;
        }
        let rows = FIGURES.iter().map(|figure| Row::of(figure, outcomes)).filter(|row| !row.subjects.is_empty());
        let failed = outcomes.iter().filter_map(|o| Some(format!("{}: {}", o.key, o.failure.as_ref()?)));
        let noted = outcomes.iter().flat_map(|o| o.notes.iter().map(move |note| format!("{}: {note}", o.key)));
        Self { scenario, size, runs, rows: rows.collect(), remarks: failed.chain(noted).collect() }
    }
}

impl Row {
    fn of(figure: &Figure, outcomes: &[&Outcome]) -> Self {
        let mut values: BTreeMap<Subject, BTreeMap<u32, f64>> = BTreeMap::new();
        for outcome in outcomes {
            if let Some(value) = (figure.value)(outcome) {
                values.entry(outcome.key.subject).or_default().insert(outcome.key.run, value);
            }
        }
        let ratio = |other: Subject| {
            let (ours, theirs) = (values.get(&Subject::Ours)?, values.get(&other)?);
            Spread::of(paired_ratios(ours, theirs))
        };
        let (ours_to_peer, ours_to_bare) = (ratio(Subject::Peer), ratio(Subject::Bare));
        let spread = |(subject, runs): (&Subject, &BTreeMap<u32, f64>)| {
            Some((*subject, Spread::of(runs.values().copied().collect())?))
        };
        Self { figure: figure.name, subjects: values.iter().filter_map(spread).collect(), ours_to_peer, ours_to_bare }
    }
}

/// Outcomes by scenario and size.
fn compare(outcomes: &[Outcome]) -> Vec<Comparison> {
    let mut groups: BTreeMap<(Scenario, usize), Vec<&Outcome>> = BTreeMap::new();
    for outcome in outcomes {
        groups.entry((outcome.key.scenario, outcome.key.size)).or_default().push(outcome);
    }
    groups.iter().map(|((scenario, size), group)| Comparison::of(*scenario, *size, group)).collect()
}

/// Prints the tables on standard output; nobody may be there any more to read them.
pub fn print(outcomes: &[Outcome], is_colourful: bool) {
    use std::io::Write;
    let text = table::render(&compare(outcomes), is_colourful);
    write!(std::io::stdout(), "{text}").ok();
}

/// Everything for programs: the comparisons, and the results that they are made of.
pub fn write_json(outcomes: &[Outcome], path: &Path) -> Result<()> {
    let all = serde_json::json!({"comparisons": compare(outcomes), "results": outcomes});
    let text = serde_json::to_string_pretty(&all).map_err(|error| Error::Other(error.to_string()))?;
    write_file(path, &(text + "\n"))
}

/// Draws the seconds of a scenario over the number of objects; false if there is nothing to draw.
pub fn write_plot(outcomes: &[Outcome], scenario: Scenario, path: &Path) -> Result<bool> {
    let series: Vec<Series> = Subject::ALL
        .into_iter()
        .map(|subject| series(outcomes, scenario, subject))
        .filter(|s| !s.points.is_empty())
        .collect();
    if series.is_empty() {
        return Ok(false);
    }
    let cores = outcomes.iter().map(|outcome| outcome.machine.cores).max().unwrap_or_default();
    let plot = Plot {
        title: title(scenario),
        subtitle: format!("API server and etcd on {cores} cores; medians, with the range of all runs; lower is better"),
        series,
    };
    write_file(path, &plot.to_svg())?;
    Ok(true)
}

fn title(scenario: Scenario) -> String {
    match scenario {
        Scenario::Create => "Seconds until all objects have their children and a status".into(),
        Scenario::Ready => "Seconds until all objects are Ready, with three pods each".into(),
        other => format!("Seconds to converge: {other}"),
    }
}

fn series(outcomes: &[Outcome], scenario: Scenario, subject: Subject) -> Series {
    let mut seconds: BTreeMap<usize, Vec<f64>> = BTreeMap::new();
    for outcome in outcomes.iter().filter(|o| o.key.scenario == scenario && o.key.subject == subject) {
        seconds.entry(outcome.key.size).or_default().extend(outcome.seconds);
    }
    let point = |(size, runs): (usize, Vec<f64>)| Some(Point { objects: size, seconds: Spread::of(runs)? });
    Series { subject, points: seconds.into_iter().filter_map(point).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::number::short;
    use crate::plan::Key;

    fn outcome(size: usize, subject: Subject, run: u32, seconds: f64) -> Outcome {
        let key = Key { scenario: Scenario::Create, size, subject, run };
        Outcome { seconds: Some(seconds), ..Outcome::new(key) }
    }

    #[test]
    fn ratios_are_made_run_by_run() {
        let outcomes = [
            outcome(1000, Subject::Ours, 1, 10.0),
            outcome(1000, Subject::Ours, 2, 20.0),
            outcome(1000, Subject::Peer, 1, 40.0),
            outcome(1000, Subject::Peer, 2, 40.0),
            outcome(1000, Subject::Bare, 1, 5.0),
        ];
        let comparisons = compare(&outcomes);
        let row = &comparisons[0].rows[0];
        let peer = row.ours_to_peer.unwrap();
        assert_eq!([peer.min, peer.max].map(short), ["0.25", "0.50"]);
        assert_eq!(row.ours_to_bare.map(|ratio| short(ratio.median)), Some("2".into()));
    }

    #[test]
    fn a_failure_is_remarked_and_leaves_the_other_figures() {
        let failed =
            Outcome { seconds: None, failure: Some("did not converge".into()), ..outcome(100, Subject::Peer, 1, 0.0) };
        let outcomes = [outcome(100, Subject::Ours, 1, 1.0), failed];
        let comparison = &compare(&outcomes)[0];
        assert_eq!(comparison.remarks, ["100-create-peer-1: did not converge"]);
        assert!(comparison.rows[0].ours_to_peer.is_none());
        assert_eq!(comparison.runs[&Subject::Peer], 1);
    }

    #[test]
    fn a_plot_is_drawn_only_of_what_was_measured() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("images/bench.svg");
        let outcomes = [outcome(100, Subject::Ours, 1, 1.0), outcome(1000, Subject::Ours, 1, 9.0)];
        assert!(!write_plot(&outcomes, Scenario::Ready, &path).unwrap());
        assert!(write_plot(&outcomes, Scenario::Create, &path).unwrap() && path.exists());
    }

    #[test]
    fn everything_is_in_the_json() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.json");
        write_json(&[outcome(100, Subject::Ours, 1, 1.0)], &path).unwrap();
        let all: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(all["results"][0]["scenario"], "create");
        assert_eq!(all["comparisons"][0]["rows"][0]["figure"], "seconds to converge");
    }
}
