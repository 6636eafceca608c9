//! Files out of Debian packages, fetched and unpacked without installing: nothing starts a service
//! on somebody's machine, and nothing of it needs root.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::{Error, Result};
use crate::home::Home;
use crate::program::{run, tool};
use crate::progress::Task;

/// The wanted files of a package, by name, wherever the package puts them.
#[derive(Debug, Clone)]
pub struct Package {
    pub package: &'static str,
    pub files: &'static [&'static str],
}

impl Package {
    /// Everything that decides what is fetched, besides Debian's release.
    pub fn ingredients(&self) -> Vec<Vec<u8>> {
        std::iter::once(self.package).chain(self.files.iter().copied()).map(|text| text.as_bytes().to_vec()).collect()
    }

    /// Fetches the package and copies its wanted files to `out`.
    pub fn build(&self, home: &Home, out: &Path, task: &Task) -> Result<()> {
        let scratch = tempfile::tempdir_in(out).map_err(Error::file("create a directory below", out))?;
        let found = files_below(&unpack(self.package, home, scratch.path(), task)?)?;
        for name in self.files {
            let file = found
                .iter()
                .find(|path| path.file_name().is_some_and(|n| n == *name) && is_program(path))
                .ok_or_else(|| Error::Other(format!("Debian's package {} has no program {name}", self.package)))?;
            fs::copy(file, out.join(name)).map_err(Error::file("copy", file))?;
        }
        Ok(())
    }
}

/// Fetches a package and unpacks it below the empty directory `scratch`; where its files are then.
pub fn unpack(package: &str, home: &Home, scratch: &Path, task: &Task) -> Result<PathBuf> {
    task.note("reading Debian's package lists");
    let apt = Apt::prepare(home)?;
    task.note("fetching the package");
    apt.download(package, scratch)?;
    let unpacked = scratch.join("unpacked");
    for archive in files_below(scratch)? {
        run(&format!("unpacking {package}"), Command::new("dpkg-deb").arg("-x").arg(&archive).arg(&unpacked))?;
    }
    Ok(unpacked)
}

/// Programs live in bin, sbin or lib/cni; completions and documentation may have the same name.
fn is_program(path: &Path) -> bool {
    path.parent()
        .and_then(Path::file_name)
        .is_some_and(|dir| ["bin", "sbin", "cni"].iter().any(|wanted| dir == *wanted))
}

/// `apt-get` with package lists of our own: the system's stay as they are, and no root is needed.
struct Apt {
    options: Vec<String>,
    // All packages share the lists: one at a time.
    _lock: File,
}

impl Apt {
    fn prepare(home: &Home) -> Result<Self> {
        let state = home.root().join("apt");
        let lists = state.join("lists");
        let cache = state.join("cache");
        for dir in [lists.join("partial"), cache.join("archives/partial")] {
            fs::create_dir_all(&dir).map_err(Error::file("create", &dir))?;
        }
        let option = |name: &str, path: &Path| format!("-o{name}={}", path.display());
        let path = home.lock_file("apt.lock");
        let lock = File::create(&path).map_err(Error::file("create", &path))?;
        lock.lock().map_err(Error::file("lock", &path))?;
        let apt = Self {
            _lock: lock,
            options: vec![
                option("Dir::State::lists", &lists),
                option("Dir::Cache", &cache),
                // Below a home directory apt's own user could not read.
                "-oAPT::Sandbox::User=".into(),
                "-qq".into(),
            ],
        };
        run("apt-get update", tool("apt-get")?.args(&apt.options).arg("update"))?;
        Ok(apt)
    }

    fn download(&self, package: &str, into: &Path) -> Result<()> {
        run(
            &format!("apt-get download {package}"),
            tool("apt-get")?.args(&self.options).args(["download", package]).current_dir(into),
        )
        .map(drop)
    }
}

/// The release this machine runs, as its packages differ from those of others.
pub fn release() -> String {
    let text = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let value = |key: &str| {
        text.lines().find_map(|line| line.strip_prefix(key)).map(|value| value.trim_matches('"').to_owned())
    };
    value("VERSION_CODENAME=").unwrap_or_else(|| "unknown".into())
}

/// All regular files below a directory; links are not followed.
fn files_below(dir: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut pending = vec![dir.to_path_buf()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(&dir).map_err(Error::file("read", &dir))? {
            let entry = entry.map_err(Error::file("read", &dir))?;
            let kind = entry.file_type().map_err(Error::file("read", entry.path()))?;
            if kind.is_dir() {
                pending.push(entry.path());
            } else if kind.is_file() {
                files.push(entry.path());
            }
        }
    }
    Ok(files)
}
