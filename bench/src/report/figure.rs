//! The figures of a table, each with where it comes from.
//! All are such that less is better.

use super::megabytes;
use crate::number::float;
use crate::outcome::{Figures, Outcome};

/// A figure of a measurement.
pub struct Figure {
    /// As people read it.
    pub name: &'static str,
    /// Its value; none where it was not or could not be measured.
    pub value: fn(&Outcome) -> Option<f64>,
}

/// All of them, in the order of the table.
pub const FIGURES: &[Figure] = &[
    Figure { name: "seconds to converge", value: |outcome| outcome.seconds },
    Figure { name: "requests an object", value: |outcome| per_object(outcome, outcome.traffic.work()) },
    Figure { name: "reads an object", value: |outcome| per_object(outcome, outcome.traffic.reads) },
    Figure { name: "writes an object", value: |outcome| per_object(outcome, outcome.traffic.writes) },
    Figure { name: "status writes an object", value: |outcome| per_object(outcome, outcome.traffic.status_writes) },
    Figure { name: "Events", value: |outcome| counted(outcome, outcome.traffic.events) },
    Figure { name: "lists and watches", value: |outcome| counted(outcome, outcome.traffic.lists_and_watches) },
    Figure {
        name: "requests in the busiest second",
        // What was measured before it was counted has none.
        value: |outcome| Some(float(outcome.traffic.busiest_second)).filter(|count| *count > 0.0),
    },
    Figure { name: "CPU seconds", value: |outcome| process(outcome, |figures| figures.cpu_seconds) },
    Figure { name: "peak memory, MB", value: |outcome| process(outcome, |figures| megabytes(figures.peak_kib)) },
    Figure { name: "settled memory, MB", value: |outcome| process(outcome, |figures| megabytes(figures.settled_kib)) },
    Figure {
        name: "connections, at most",
        value: |outcome| process(outcome, |figures| float(figures.peak_connections)),
    },
    Figure { name: "connections, at the end", value: |outcome| process(outcome, |figures| float(figures.connections)) },
    Figure { name: "writes while idle", value: |outcome| outcome.idle.as_ref().map(|idle| float(idle.writes())) },
];

/// What failed on the way has counts too, but they say nothing about the whole work.
fn per_object(outcome: &Outcome, count: usize) -> Option<f64> {
    outcome.seconds.map(|_| outcome.per_object(count))
}

fn counted(outcome: &Outcome, count: usize) -> Option<f64> {
    outcome.seconds.map(|_| float(count))
}

fn process(outcome: &Outcome, figure: fn(&Figures) -> f64) -> Option<f64> {
    outcome.process.as_ref().map(figure)
}
