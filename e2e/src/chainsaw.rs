//! The runner of the other operator's suite: started on some of its cases, and its report read.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::Deserialize;
use testbed::{Error, Result, program};

/// How many cases run at once: they mostly wait for pods.
const PARALLEL: &str = "4";

/// The name of the report that chainsaw writes, without its ending.
const REPORT: &str = "report";

/// A command that runs these cases as the user of `kubeconfig`, and writes its report below `dir`.
pub fn command(chainsaw: &Path, kubeconfig: &Path, cases: &[PathBuf], dir: &Path) -> Command {
    let mut command = program::bound_to_parent(chainsaw);
    command.args(["test", "--no-color", "--parallel", PARALLEL]);
    // The cases say how long they wait for what they assert, but not for their namespace to go.
    command.args(["--cleanup-timeout", "180s", "--delete-timeout", "60s"]);
    command.args(["--report-format", "JSON", "--report-name", REPORT]).arg("--report-path").arg(dir);
    for case in cases {
        command.arg("--test-dir").arg(case);
    }
    command.current_dir(dir).env("KUBECONFIG", kubeconfig);
    command
}

/// What chainsaw wrote down.
#[derive(Debug, Deserialize)]
pub struct Report {
    #[serde(default)]
    tests: Vec<Test>,
}

#[derive(Debug, Deserialize)]
struct Test {
    name: String,
    #[serde(default)]
    skipped: bool,
    #[serde(default)]
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    #[serde(default)]
    name: String,
    #[serde(default)]
    operations: Vec<Operation>,
}

#[derive(Debug, Deserialize)]
struct Operation {
    #[serde(default, rename = "type")]
    kind: String,
    failure: Option<Failure>,
}

#[derive(Debug, Deserialize)]
struct Failure {
    #[serde(default)]
    error: String,
}

impl Report {
    /// The report below `dir`.
    pub fn read(dir: &Path) -> Result<Self> {
        let path = dir.join(REPORT).with_extension("json");
        let text = std::fs::read_to_string(&path).map_err(Error::file("read", &path))?;
        Self::parse(&text)
    }

    /// A report from its text.
    pub fn parse(text: &str) -> Result<Self> {
        serde_json::from_str(text).map_err(|e| Error::Other(format!("chainsaw's report cannot be read: {e}")))
    }

    /// The cases that ran to their end and found everything as it should be.
    pub fn passed(&self) -> Vec<&str> {
        let passed = |test: &&Test| !test.skipped && !test.steps.is_empty() && test.failures().next().is_none();
        self.tests.iter().filter(passed).map(|test| test.name.as_str()).collect()
    }
}

impl Test {
    fn failures(&self) -> impl Iterator<Item = (&Step, &Operation, &Failure)> {
        self.steps
            .iter()
            .flat_map(|step| step.operations.iter().map(move |operation| (step, operation)))
            .filter_map(|(step, operation)| Some((step, operation, operation.failure.as_ref()?)))
    }
}

/// One line for each case, and below it what went wrong.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let passed = self.passed();
        for test in &self.tests {
            let verdict = if passed.contains(&test.name.as_str()) { "passed" } else { "FAILED" };
            writeln!(f, "{verdict}  {}", test.name)?;
            for (step, operation, failure) in test.failures() {
                writeln!(f, "    step {}, {}:", step.name, operation.kind)?;
                for line in failure.error.lines() {
                    writeln!(f, "        {line}")?;
                }
            }
        }
        Ok(())
    }
}
