//! Programs that the host itself must have: found, installed after saying so, or asked for.

use std::collections::BTreeSet;
use std::process::Command;

use crate::error::{Error, Result};
use crate::program::{find, run};
use crate::progress::Progress;

/// Makes sure that the programs are there; each comes with the Debian package that has it.
pub fn ensure_tools(tools: &[(&str, &str)], progress: Progress) -> Result<()> {
    let Some(missing) = Missing::of(tools) else { return Ok(()) };
    let may_install = rustix::process::geteuid().is_root() && find("apt-get").is_some();
    // Said before anything happens, so that nobody is surprised by what is on the machine afterwards.
    progress.say(&missing.announce(may_install)?);
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
    run("apt-get install", install.args(&missing.packages))?;
    task.done("installed");
    Ok(())
}

/// What the host lacks.
struct Missing<'a> {
    programs: BTreeSet<&'a str>,
    packages: BTreeSet<&'a str>,
}

impl<'a> Missing<'a> {
    /// None if nothing is.
    fn of(tools: &[(&'a str, &'a str)]) -> Option<Self> {
        let missing = || tools.iter().filter(|(program, _)| find(program).is_none());
        let programs: BTreeSet<&str> = missing().map(|(program, _)| *program).collect();
        let packages = missing().map(|(_, package)| *package).collect();
        (!programs.is_empty()).then_some(Self { programs, packages })
    }

    /// What is going to be installed and what for; an error where it may not be.
    fn announce(&self, may_install: bool) -> Result<String> {
        let list = |names: &BTreeSet<&str>, between: &str| names.iter().copied().collect::<Vec<_>>().join(between);
        if !may_install {
            return Err(Error::MissingTools {
                programs: self.programs.iter().map(|program| (*program).to_owned()).collect(),
                install: format!("apt-get install --no-install-recommends {}", list(&self.packages, " ")),
            });
        }
        Ok(format!(
            "This machine lacks {}. Installing from Debian, with apt-get: {}. They start no service.",
            list(&self.programs, ", "),
            list(&self.packages, ", ")
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_there_is_left_alone() {
        ensure_tools(&[("sh", "dash"), ("mount", "mount")], Progress::detect()).unwrap();
    }

    #[test]
    fn what_is_missing_is_announced_with_its_reason_or_asked_for() {
        let tools = [("sh", "dash"), ("no-such-tool", "some-package"), ("nor-this", "some-package")];
        let missing = Missing::of(&tools).unwrap();
        let announced = missing.announce(true).unwrap();
        assert!(
            announced.contains("lacks no-such-tool, nor-this") && announced.contains(": some-package."),
            "{announced}"
        );
        let refused = missing.announce(false).unwrap_err().to_string();
        assert!(refused.contains("apt-get install --no-install-recommends some-package"), "{refused}");
    }
}
