//! Where the testbed keeps what it builds and what it runs: one directory of the user's.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result, Size};

/// Names another directory than the default.
pub const VARIABLE: &str = "TESTBED_HOME";

/// The testbed's directory: `artifacts/` (built things), `clusters/` (running things), `locks/`.
#[derive(Debug, Clone)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The directory that `TESTBED_HOME` names, else one in the user's cache directory.
    pub fn locate() -> Result<Self> {
        let variable = |name| env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
        let root = variable(VARIABLE)
            .or_else(|| variable("XDG_CACHE_HOME").map(|d| d.join("memcached-operator-testbed")))
            .or_else(|| variable("HOME").map(|d| d.join(".cache/memcached-operator-testbed")))
            .ok_or_else(|| Error::CacheDirectory {
                path: PathBuf::new(),
                why: "neither TESTBED_HOME, XDG_CACHE_HOME nor HOME is set".into(),
            })?;
        Self::at(root)
    }

    /// A testbed directory at `root`, created if it is not there.
    pub fn at(root: impl Into<PathBuf>) -> Result<Self> {
        let root = root.into();
        let unusable = |why: String| Error::CacheDirectory { path: root.clone(), why };
        if !root.is_absolute() {
            return Err(unusable("it is not an absolute path".into()));
        }
        for part in ["artifacts", "clusters", "locks"] {
            fs::create_dir_all(root.join(part)).map_err(|e| unusable(e.to_string()))?;
        }
        // A directory can exist and still refuse us (read-only mount, another user's).
        tempfile::tempfile_in(root.join("locks")).map_err(|e| unusable(e.to_string()))?;
        Ok(Self { root })
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where built things live, one directory each.
    pub fn artifacts(&self) -> PathBuf {
        self.root.join("artifacts")
    }

    /// Where running clusters keep their state, one directory each.
    pub fn clusters(&self) -> PathBuf {
        self.root.join("clusters")
    }

    /// The file that processes lock to agree on `what`.
    pub fn lock_file(&self, what: &str) -> PathBuf {
        self.root.join("locks").join(what)
    }

    /// Refuses to begin what the disk cannot hold.
    pub fn check_space(&self, what: &str, need: Size) -> Result<()> {
        check_space_at(&self.root, what, need, VARIABLE)
    }
}

/// Refuses to begin what the file system below `path` cannot hold; `variable` would move it.
pub fn check_space_at(path: &Path, what: &str, need: Size, variable: &'static str) -> Result<()> {
    let existing = path.ancestors().find(|p| p.exists()).unwrap_or(path);
    let stat =
        rustix::fs::statvfs(existing).map_err(|e| Error::file("measure the free space of", existing)(e.into()))?;
    let free = Size(stat.f_bavail.saturating_mul(stat.f_frsize));
    if free < need {
        return Err(Error::NoSpace { path: path.to_path_buf(), what: what.into(), free, need, variable });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_relative_path_is_refused() {
        let error = Home::at("somewhere").unwrap_err().to_string();
        assert!(error.contains("not an absolute path") && error.contains("TESTBED_HOME"), "{error}");
    }

    #[test]
    fn a_file_in_the_way_is_refused() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let error = Home::at(file.path()).unwrap_err().to_string();
        assert!(error.starts_with("cannot use"), "{error}");
    }

    #[test]
    fn more_than_the_disk_holds_is_refused_with_both_figures() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        home.check_space("a note", Size(1)).unwrap();
        let error = home.check_space("kubelet", Size(u64::MAX)).unwrap_err().to_string();
        assert!(error.contains("kubelet needs") && error.contains("free below"), "{error}");
    }
}
