//! Who still needs a shared cluster: a file that users lock together and the owner tries to lock alone.
//!
//! The kernel drops a lock with its process, so a user that crashes cannot keep a cluster alive.

use std::fs::File;

use crate::error::{Error, Result};
use crate::home::Home;

/// As long as somebody holds one, the cluster stays.
#[derive(Debug)]
pub struct Lease {
    _lock: File,
}

impl Lease {
    /// Joins the users; waits while the owner is on the way out.
    pub fn join(home: &Home, cluster: &str) -> Result<Self> {
        let (path, file) = open(home, cluster)?;
        file.lock_shared().map_err(Error::file("lock", path))?;
        Ok(Self { _lock: file })
    }

    /// For the owner: nobody uses the cluster, and nobody can join while this is held.
    pub fn end(home: &Home, cluster: &str) -> Result<Option<Self>> {
        let (_, file) = open(home, cluster)?;
        Ok(file.try_lock().is_ok().then_some(Self { _lock: file }))
    }
}

fn open(home: &Home, cluster: &str) -> Result<(std::path::PathBuf, File)> {
    let path = home.lock_file(&format!("{cluster}.lease"));
    let file = File::create(&path).map_err(Error::file("create", &path))?;
    Ok((path, file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cluster_ends_only_when_nobody_uses_it() {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        let one = Lease::join(&home, "shared").unwrap();
        let two = Lease::join(&home, "shared").unwrap();
        drop(one);
        assert!(Lease::end(&home, "shared").unwrap().is_none());
        drop(two);
        assert!(Lease::end(&home, "shared").unwrap().is_some());
    }
}
