//! Packages of Python, pinned, in a directory of their own: nothing is installed on the machine.

use std::path::Path;

use crate::error::Result;
use crate::program::{run, tool};
use crate::progress::Task;

const REQUIREMENTS: &str = include_str!("../../python/requirements.txt");

/// Programs that it takes, with their Debian packages.
pub const TOOLS: &[(&str, &str)] = &[("python3", "python3"), ("pip3", "python3-pip")];

/// Everything that decides what is fetched.
pub fn ingredients() -> Vec<Vec<u8>> {
    vec![REQUIREMENTS.into()]
}

/// Fetches the packages into `out`, for `PYTHONPATH`.
pub fn build(out: &Path, task: &Task) -> Result<()> {
    task.note("fetching packages");
    let mut pip = tool("pip3")?;
    pip.args(["install", "--quiet", "--disable-pip-version-check", "--no-compile", "--no-deps", "--target"]).arg(out);
    // Debian's pip refuses to touch the system's packages, and a directory of ours is none of them.
    pip.args(REQUIREMENTS.lines()).env("PIP_BREAK_SYSTEM_PACKAGES", "1");
    run("pip3 install", &mut pip).map(drop)
}
