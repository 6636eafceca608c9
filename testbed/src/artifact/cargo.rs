//! Programs built from their crates, pinned by version and by the lock file that each brings along.

use std::fs;
use std::path::Path;

use crate::error::{Error, Result};
use crate::program::{run_watched, tool};
use crate::progress::Task;

/// Built in a third of the time of a release; what they are asked for takes them seconds even so.
const PROFILE: &str = "dev";

/// A program of a crate.
#[derive(Debug, Clone)]
pub struct Program {
    /// The crate, which the program is named after.
    pub name: &'static str,
    pub version: &'static str,
    /// What of it is wanted; nothing more is built.
    pub features: &'static str,
}

impl Program {
    /// Everything that decides what is built.
    pub fn ingredients(&self) -> Vec<Vec<u8>> {
        [self.name, self.version, self.features, PROFILE].map(|text| text.as_bytes().to_vec()).into()
    }

    /// Builds the program into `out`.
    pub fn build(&self, out: &Path, task: &Task) -> Result<()> {
        let work = tempfile::tempdir().map_err(Error::file("create a directory below", std::env::temp_dir()))?;
        let root = work.path().join("root");
        let mut cargo = tool("cargo")?;
        cargo
            .args(["install", self.name, "--version", self.version, "--locked", "--no-track"])
            .args(["--no-default-features", "--features", self.features, "--profile", PROFILE, "--root"])
            .arg(&root)
            .env("CARGO_PROFILE_DEV_DEBUG", "none")
            .env("CARGO_TARGET_DIR", work.path().join("target"))
            // Not where it was called: another workspace's settings are no business of this one.
            .current_dir(work.path());
        run_watched(&format!("cargo install of {}", self.name), &mut cargo, |line| {
            task.note(line.trim().to_lowercase());
        })?;
        let built = root.join("bin").join(self.name);
        fs::copy(&built, out.join(self.name)).map_err(Error::file("copy", &built)).map(drop)
    }
}
