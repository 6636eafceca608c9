//! On what it was measured, so that figures of two machines are never compared by mistake.
//! Ratios within one run are what can be compared; these lines only say where they come from.

use std::fs;
use std::thread;

use serde::{Deserialize, Serialize};

use crate::procfs;

/// The machine that this runs on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// How many cores there are.
    pub cores: usize,
    /// What the processor calls itself.
    pub processor: String,
    /// All memory, as the kernel prints it.
    pub memory: String,
}

impl Machine {
    /// This one.
    pub fn here() -> Self {
        let read = |path: &str, name: &str| {
            let text = fs::read_to_string(path).unwrap_or_default();
            procfs::value(&text, name).unwrap_or("unknown").to_owned()
        };
        Self {
            cores: thread::available_parallelism().map_or(1, usize::from),
            processor: read("/proc/cpuinfo", "model name"),
            memory: read("/proc/meminfo", "MemTotal"),
        }
    }
}
