//! Makes sure that everything a command needs is there: the host's programs, and what we build.

use std::time::Instant;

use crate::artifact::{self, Artifact, Set};
use crate::error::Result;
use crate::progress::duration;
use crate::store::{Check, Store};

/// What an installation found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Report {
    /// How many parts are in place now.
    pub parts: usize,
    /// How many of them had to be built.
    pub built: usize,
}

/// Builds what is missing or damaged of these sets; says nothing if that is nothing.
pub fn install(store: &Store, sets: &[Set], check: Check) -> Result<Report> {
    let began = Instant::now();
    let parts = parts_of(sets);
    let missing: Vec<&Artifact> = parts.iter().filter(|part| !store.is_intact(part, check)).collect();
    let report = Report { parts: parts.len(), built: missing.len() };
    let running = sets.iter().flat_map(|set| set.tools());
    let building = missing.iter().flat_map(|part| part.tools());
    let tools: Vec<(&str, &str)> = running.chain(building).copied().collect();
    artifact::ensure_tools(&tools, store.progress())?;
    if missing.is_empty() {
        return Ok(report);
    }
    store.progress().say(&format!(
        "Building {} of {} parts into {}. All of them take about 12 minutes on two cores, once.",
        report.built,
        report.parts,
        store.home().root().display(),
    ));
    for (position, part) in missing.into_iter().enumerate() {
        let progress = store.progress().at(position + 1, report.built);
        store.clone().showing(progress).ensure_checked(part, check)?;
    }
    store.progress().say(&format!("Built in {}.", duration(began.elapsed())));
    Ok(report)
}

/// Every part once, in the order in which they are built.
fn parts_of(sets: &[Set]) -> Vec<Artifact> {
    let mut parts: Vec<Artifact> = Vec::new();
    for part in sets.iter().flat_map(|set| set.artifacts()) {
        if parts.iter().all(|known| known.directory() != part.directory()) {
            parts.push(part);
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_two_sets_share_is_one_part() {
        let both = parts_of(&[Set::ControlPlane, Set::Fleet]);
        assert_eq!(both.len(), Set::Fleet.artifacts().len());
    }
}
