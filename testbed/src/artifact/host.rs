//! Programs that the host itself must have: found, installed after saying so, or asked for.

use std::collections::BTreeSet;
use std::process::Command;

use crate::error::{Error, Result};
use crate::program::{find, run};
use crate::progress::Progress;

/// Makes sure that the programs are there; each comes with the Debian package that has it.
pub fn ensure_tools(tools: &[(&str, &str)], progress: Progress) -> Result<()> {
    let missing: Vec<&(&str, &str)> = tools.iter().filter(|(program, _)| find(program).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let packages: BTreeSet<&str> = missing.iter().map(|(_, package)| *package).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    if !rustix::process::geteuid().is_root() || find("apt-get").is_none() {
        return Err(Error::MissingTools {
            programs: missing.iter().map(|(program, _)| (*program).to_owned()).collect(),
            install: format!("apt-get install --no-install-recommends {}", packages.join(" ")),
        });
    }
    progress.say(&format!("Installing {} from Debian: small tools that start no service.", packages.join(", ")));
    let task = progress.begin("Debian packages");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.arg("-oDPkg::Lock::Timeout=300").args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command
    };
    task.note("reading package lists");
    run("apt-get update", &mut apt(&["update", "-qq"]))?;
    task.note("installing");
    let mut install = apt(&["install", "-y", "-qq", "--no-install-recommends"]);
    run("apt-get install", install.args(&packages))?;
    task.done("installed");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_left_alone() {
        ensure_tools(&[("sh", "dash"), ("mount", "mount")], Progress::detect()).unwrap();
    }
}
