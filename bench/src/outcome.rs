//! What came of a measurement, as it is kept in a file.
//! One file a measurement: whatever interrupts a series, the next one goes on where it ended.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::machine::Machine;
use crate::number::float;
use crate::plan::Key;
use crate::traffic::Traffic;

/// Raised when older files can no longer be compared with newer ones.
const FORMAT: u32 = 1;

/// What came of a measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The version of this format.
    pub format: u32,
    /// What was measured.
    #[serde(flatten)]
    pub key: Key,
    /// Where.
    pub machine: Machine,
    /// How long preparations took.
    pub setup_seconds: f64,
    /// From the start of the operator, or of the change, until every object is where it should be; none if that was
    /// not to be seen.
    pub seconds: Option<f64>,
    /// Why it was not to be seen.
    pub failure: Option<String>,
    /// What was asked of the API server in this time, and until it was quiet again.
    pub traffic: Traffic,
    /// The process; none for bare requests.
    pub process: Option<Figures>,
    /// The time after that.
    pub idle: Option<Idle>,
    /// What else was noticed.
    pub notes: Vec<String>,
}

/// Figures of a process.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// The most resident memory since it started, in KiB.
    pub peak_kib: u64,
    /// Resident memory at the end of the idle time, in KiB.
    pub settled_kib: u64,
    /// The part of it that no file backs.
    pub settled_anonymous_kib: u64,
    /// CPU seconds from the start of the clock until every object was where it should be.
    pub cpu_seconds_to_converge: f64,
    /// The same, until it was quiet again.
    pub cpu_seconds: f64,
    /// Connections to the API server at the end.
    pub connections: usize,
    /// The most of them.
    pub peak_connections: usize,
}

/// What an operator does while nothing happens.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Idle {
    /// How long it was watched.
    pub seconds: u64,
    /// What it asked for.
    pub traffic: Traffic,
    /// The CPU seconds that it used.
    pub cpu_seconds: f64,
}

impl Idle {
    /// Everything that it wrote, Events too; Leases have to be renewed.
    pub fn writes(&self) -> usize {
        self.traffic.writes + self.traffic.events
    }
}

impl Outcome {
    /// Nothing measured yet.
    pub fn new(key: Key) -> Self {
        Self {
            format: FORMAT,
            key,
            machine: Machine::here(),
            setup_seconds: 0.0,
            seconds: None,
            failure: None,
            traffic: Traffic::default(),
            process: None,
            idle: None,
            notes: Vec::new(),
        }
    }

    /// A count divided by the number of objects.
    pub fn per_object(&self, count: usize) -> f64 {
        float(count) / float(self.key.size)
    }

    /// Keeps it in a directory; whoever reads meanwhile sees all of it or nothing.
    pub fn keep(&self, dir: &Path) -> Result<PathBuf> {
        let path = dir.join(self.key.file_name());
        let text = serde_json::to_string_pretty(self).map_err(|error| Error::Other(error.to_string()))?;
        write_file(&path, &text)?;
        Ok(path)
    }
}

/// Writes a file as a whole.
pub fn write_file(path: &Path, text: &str) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let dir = path.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(dir)?;
        let mut file = tempfile::NamedTempFile::new_in(dir)?;
        file.write_all(text.as_bytes())?;
        // A temporary file is for its owner alone; a result is for everybody.
        let mut mode = file.as_file().metadata()?.permissions();
        std::os::unix::fs::PermissionsExt::set_mode(&mut mode, 0o644);
        file.as_file().set_permissions(mode)?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(Error::file("write", path))
}

/// All results below a directory, sorted by what was measured.
pub fn read_all(dir: &Path) -> Result<Vec<Outcome>> {
    let mut outcomes = Vec::new();
    read_below(dir, &mut outcomes)?;
    outcomes.sort_by_key(|outcome| outcome.key);
    Ok(outcomes)
}

fn read_below(dir: &Path, outcomes: &mut Vec<Outcome>) -> Result<()> {
    for entry in fs::read_dir(dir).map_err(Error::file("read", dir))? {
        let path = entry.map_err(Error::file("read", dir))?.path();
        if path.is_dir() {
            read_below(&path, outcomes)?;
        } else if path.file_name().and_then(|name| Key::of_file(name.to_str()?)).is_some() {
            outcomes.push(read(&path)?);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<Outcome> {
    let text = fs::read_to_string(path).map_err(Error::file("read", path))?;
    let outcome: Outcome = serde_json::from_str(&text).map_err(|source| Error::Format { path: path.into(), source })?;
    if outcome.format == FORMAT {
        return Ok(outcome);
    }
    let (path, found) = (path.display(), outcome.format);
    Err(Error::Other(format!("{path} has format {found}, and this version reads {FORMAT}: run it again with --again")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{Scenario, Subject, keys};

    #[test]
    fn results_are_read_as_they_were_kept_and_other_files_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let mut kept = Vec::new();
        for key in keys(&[1000, 100], &[Scenario::Create, Scenario::CreateSecrets], &Subject::ALL, Some(1)) {
            let outcome = Outcome { seconds: Some(1.5), notes: vec!["a note".into()], ..Outcome::new(key) };
            outcome.keep(&dir.path().join(key.scenario.name())).unwrap();
            kept.push(outcome);
        }
        write_file(&dir.path().join("report.json"), "[]").unwrap();
        kept.sort_by_key(|outcome| outcome.key);
        assert_eq!(read_all(dir.path()).unwrap(), kept);
    }

    #[test]
    fn a_result_that_cannot_be_read_is_named() {
        let dir = tempfile::tempdir().unwrap();
        write_file(&dir.path().join("100-create-ours-1.json"), "{}").unwrap();
        let error = read_all(dir.path()).unwrap_err().to_string();
        assert!(error.contains("100-create-ours-1.json") && error.contains("--again"), "{error}");
    }

    #[test]
    fn events_count_as_writes_while_idle_and_leases_do_not() {
        let traffic = Traffic { writes: 1, events: 2, leases: 40, ..Traffic::default() };
        assert_eq!(Idle { seconds: 30, traffic, cpu_seconds: 0.0 }.writes(), 3);
    }
}
