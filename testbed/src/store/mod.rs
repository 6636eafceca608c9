//! The cache of built things: built once, checked on every use, never half-done.

mod seal;

pub(crate) use seal::hex;

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use crate::artifact::Artifact;
use crate::error::{Error, Result};
use crate::home::Home;
use crate::progress::{Progress, Task};

/// Finds or makes artifacts below a [`Home`].
#[derive(Debug, Clone)]
pub struct Store {
    home: Home,
    progress: Progress,
}

/// How thoroughly a cached artifact is compared with its seal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Check {
    /// Size and modification time; the content only of files whose time differs.
    Quick,
    /// The content of every file.
    Full,
}

impl Store {
    /// A store in `home` that reports to `progress`.
    pub fn new(home: Home, progress: Progress) -> Self {
        Self { home, progress }
    }

    /// The same store, reporting to another progress display.
    #[must_use]
    pub fn showing(self, progress: Progress) -> Self {
        Self { progress, ..self }
    }

    /// Where the store is.
    pub fn home(&self) -> &Home {
        &self.home
    }

    /// How this store shows its work.
    pub fn progress(&self) -> Progress {
        self.progress
    }

    /// The directory of an artifact, whether it is there or not.
    pub fn path(&self, artifact: &Artifact) -> PathBuf {
        self.home.artifacts().join(artifact.directory())
    }

    /// Whether an artifact is there, whole and unchanged.
    pub fn is_intact(&self, artifact: &Artifact, check: Check) -> bool {
        seal::is_intact(&self.path(artifact), check)
    }

    /// The directory of an artifact, built first if it is missing or damaged.
    pub fn ensure(&self, artifact: &Artifact) -> Result<PathBuf> {
        self.ensure_checked(artifact, Check::Quick)
    }

    /// Like [`Store::ensure`], with the given care.
    pub fn ensure_checked(&self, artifact: &Artifact, check: Check) -> Result<PathBuf> {
        let path = self.path(artifact);
        if seal::is_intact(&path, check) {
            return Ok(path);
        }
        // Needs come first and have tasks of their own.
        for need in artifact.needs() {
            self.ensure_checked(&need, check)?;
        }
        let task = self.progress.begin(&artifact.label());
        let _lock = self.lock(artifact, &task)?;
        if seal::is_intact(&path, check) {
            task.done("built by another process");
            return Ok(path);
        }
        let damaged = path.exists();
        self.build(artifact, &path, &task)?;
        task.done(if damaged { "was damaged, rebuilt" } else { "built" });
        Ok(path)
    }

    fn lock(&self, artifact: &Artifact, task: &Task) -> Result<File> {
        let path = self.home.lock_file(&format!("{}.lock", artifact.directory()));
        let file = File::create(&path).map_err(Error::file("create", &path))?;
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) => task.note("waiting for another process that builds it"),
            Err(TryLockError::Error(e)) => return Err(Error::file("lock", &path)(e)),
        }
        file.lock().map_err(Error::file("lock", &path))?;
        Ok(file)
    }

    fn staging(path: &Path) -> PathBuf {
        let mut name = path.as_os_str().to_owned();
        name.push(".building");
        name.into()
    }

    /// Builds beside the final place and moves there last; the caller holds the lock.
    fn build(&self, artifact: &Artifact, path: &Path, task: &Task) -> Result<()> {
        self.home.check_space(&artifact.label(), artifact.space())?;
        // Whatever a killed build left: the lock says that nobody is using it.
        let staging = Staging::replace(Self::staging(path))?;
        artifact.build(self, &staging.0, task)?;
        seal::seal(&staging.0)?;
        if path.exists() {
            fs::remove_dir_all(path).map_err(Error::file("remove", path))?;
        }
        fs::rename(&staging.0, path).map_err(Error::file("create", path))
    }
}

/// A directory for work in progress that is gone after failure and success alike.
struct Staging(PathBuf);

impl Staging {
    fn replace(path: PathBuf) -> Result<Self> {
        if path.exists() {
            fs::remove_dir_all(&path).map_err(Error::file("remove", &path))?;
        }
        fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
        Ok(Self(path))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).ok();
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    fn store() -> (tempfile::TempDir, Store) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        (dir, Store::new(home, Progress::hidden()))
    }

    fn listed(store: &Store) -> Vec<String> {
        fs::read_dir(store.home().artifacts())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    #[test]
    fn what_is_there_is_not_built_again() {
        let (_dir, store) = store();
        let artifact = Artifact::script("twice", "echo built >>$OUT/log; echo x >$OUT/it");
        let path = store.ensure(&artifact).unwrap();
        store.ensure(&artifact).unwrap();
        assert_eq!(fs::read_to_string(path.join("log")).unwrap(), "built\n");
    }

    #[test]
    fn a_failed_build_leaves_nothing_behind() {
        let (_dir, store) = store();
        let artifact = Artifact::script("broken", "echo half >$OUT/it; echo no such header >&2; exit 1");
        let error = store.ensure(&artifact).unwrap_err().to_string();
        assert!(error.contains("no such header"), "{error}");
        assert_eq!(listed(&store), [""; 0]);
    }

    #[test]
    fn a_truncated_file_is_rebuilt() {
        let (_dir, store) = store();
        let artifact = Artifact::script("cut", "echo the whole content >$OUT/it");
        let file = store.ensure(&artifact).unwrap().join("it");
        File::options().write(true).open(&file).unwrap().set_len(3).unwrap();
        store.ensure(&artifact).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "the whole content\n");
    }

    #[test]
    fn a_changed_byte_is_rebuilt_even_if_the_size_is_the_same() {
        let (_dir, store) = store();
        let artifact = Artifact::script("flip", "echo content >$OUT/it");
        let file = store.ensure(&artifact).unwrap().join("it");
        fs::write(&file, "kontent\n").unwrap();
        store.ensure(&artifact).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "content\n");
    }

    #[test]
    fn only_a_full_check_sees_damage_behind_an_old_timestamp() {
        let (_dir, store) = store();
        let artifact = Artifact::script("old", "echo content >$OUT/it");
        let file = store.ensure(&artifact).unwrap().join("it");
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        fs::write(&file, "kontent\n").unwrap();
        File::options().write(true).open(&file).unwrap().set_modified(time).unwrap();
        assert!(store.is_intact(&artifact, Check::Quick));
        assert!(!store.is_intact(&artifact, Check::Full));
    }

    #[test]
    fn a_file_that_is_no_longer_executable_is_rebuilt() {
        let (_dir, store) = store();
        let artifact = Artifact::script("mode", "echo content >$OUT/it; chmod 755 $OUT/it");
        let file = store.ensure(&artifact).unwrap().join("it");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        store.ensure(&artifact).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o755);
    }

    #[test]
    fn two_that_want_the_same_build_it_once() {
        let (dir, store) = store();
        let counter = dir.path().join("count");
        let artifact = Artifact::script("race", &format!("echo x >>{}; sleep 0.3; echo x >$OUT/it", counter.display()));
        let failures = AtomicUsize::new(0);
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| store.ensure(&artifact).map_err(|_| failures.fetch_add(1, Ordering::SeqCst)));
            }
        });
        assert_eq!(failures.into_inner(), 0);
        assert_eq!(fs::read_to_string(counter).unwrap(), "x\n");
    }

    #[test]
    fn what_a_killed_build_left_is_removed() {
        let (_dir, store) = store();
        let artifact = Artifact::script("again", "ls $OUT >$OUT/seen");
        let stale = Store::staging(&store.path(&artifact));
        fs::create_dir_all(&stale).unwrap();
        fs::write(stale.join("junk"), "junk").unwrap();
        let path = store.ensure(&artifact).unwrap();
        assert_eq!(fs::read_to_string(path.join("seen")).unwrap(), "seen\n");
        assert_eq!(listed(&store).len(), 1);
    }
}
