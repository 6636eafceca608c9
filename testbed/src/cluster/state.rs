//! A cluster's directory: what it is, how it is, and who owns it.
//!
//! The owner holds a lock on the directory for as long as the cluster lives. The kernel drops the
//! lock with the process, so a directory without a locked owner is the rest of a crash.

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};

use super::cgroup;
use super::network::{self, Network};
use crate::error::{Error, Result};
use crate::home::Home;

/// What kind of cluster it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, clap::ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// etcd, API server, controller manager: no containers run. Needs no root.
    ControlPlane,
    /// A whole node that runs containers, in namespaces of its own. Needs root.
    Node,
}

impl std::fmt::Display for Shape {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::ControlPlane => "control plane",
            Self::Node => "node",
        })
    }
}

/// What a cluster is; written once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Description {
    pub name: String,
    pub shape: Shape,
    /// The process to ask for the cluster's end.
    pub owner: u32,
    /// Seconds since 1970.
    pub started: u64,
    /// The addresses of a node.
    pub network: Option<Network>,
}

/// How a cluster is; written whenever that changes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Status {
    pub phase: Phase,
    /// What is being waited for while it starts.
    pub step: String,
    pub components: Vec<Component>,
}

/// How far a cluster is.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    #[default]
    Starting,
    Ready,
    Failed(String),
}

impl Phase {
    /// A cluster that was ready is not any more when a part of it has ended.
    #[must_use]
    pub fn with(self, components: &[Component]) -> Self {
        let ended = components.iter().find_map(|component| Some((&component.name, component.exited.as_ref()?)));
        match (self, ended) {
            (Self::Ready, Some((name, how))) => {
                Self::Failed(format!("{name} ended ({how}): see `testbed logs {name}`, then `testbed down`"))
            }
            (phase, _) => phase,
        }
    }
}

/// A process of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Component {
    pub name: String,
    /// How it ended, if it did.
    pub exited: Option<String>,
}

/// A cluster's directory, whether we own it or only look at it.
#[derive(Debug, Clone)]
pub struct State {
    pub dir: PathBuf,
    pub description: Description,
}

/// Ownership of a cluster's directory; the directory goes when this goes.
#[derive(Debug)]
pub struct Owned {
    pub state: State,
    // Held, never read: the lock is what tells others that we live.
    _lock: File,
}

impl State {
    /// The cluster of that name, if one is running.
    pub fn find(home: &Home, name: &str) -> Result<Option<Self>> {
        check_name(name)?;
        let dir = home.clusters().join(name);
        Ok(if is_owned(&dir) { Self::read(dir) } else { None })
    }

    /// All running clusters.
    pub fn list(home: &Home) -> Result<Vec<Self>> {
        let dirs = directories(&home.clusters())?;
        Ok(dirs.into_iter().filter(|dir| is_owned(dir)).filter_map(Self::read).collect())
    }

    fn read(dir: PathBuf) -> Option<Self> {
        let text = fs::read(dir.join("cluster.json")).ok()?;
        let description = serde_json::from_slice(&text).ok()?;
        Some(Self { dir, description })
    }

    /// How it is.
    pub fn status(&self) -> Status {
        fs::read(self.dir.join("status.json"))
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default()
    }

    /// Writes down how it is; readers see the old or the new, never half.
    pub fn set_status(&self, status: &Status) -> Result<()> {
        write_json(&self.dir.join("status.json"), status)
    }

    /// The log of a component.
    pub fn log_file(&self, component: &str) -> PathBuf {
        self.dir.join("logs").join(format!("{component}.log"))
    }
}

impl Owned {
    /// A new cluster's directory; the rests of crashed ones are removed on the way.
    pub fn create(home: &Home, name: &str, shape: Shape) -> Result<Self> {
        check_name(name)?;
        let _all = lock_all(home)?;
        sweep_locked(home)?;
        let dir = home.clusters().join(name);
        if dir.exists() {
            let running = State::read(dir).map_or_else(|| "cluster".into(), |s| s.description.shape.to_string());
            let name = name.to_owned();
            return Err(Error::OtherShape { name, running });
        }
        let network = match shape {
            Shape::ControlPlane => None,
            Shape::Node => Some(network::free(&used_networks(home)?)?),
        };
        for part in ["logs", "kubeconfigs"] {
            let part = dir.join(part);
            fs::create_dir_all(&part).map_err(Error::file("create", &part))?;
        }
        let lock = dir.join("owner.lock");
        let file = File::create(&lock).map_err(Error::file("create", &lock))?;
        file.lock().map_err(Error::file("lock", &lock))?;
        let description = Description {
            name: name.to_owned(),
            shape,
            owner: std::process::id(),
            started: SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs()),
            network,
        };
        write_json(&dir.join("cluster.json"), &description)?;
        let state = State { dir, description };
        Ok(Self { state, _lock: file })
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        // What cannot be removed now is found by the next command, which can say so.
        remove(&self.state.dir).ok();
    }
}

/// Removes what crashed clusters left: their directories and empty cgroups.
pub fn sweep(home: &Home) -> Result<()> {
    let _all = lock_all(home)?;
    sweep_locked(home)
}

fn sweep_locked(home: &Home) -> Result<()> {
    for dir in directories(&home.clusters())? {
        if !is_owned(&dir) {
            remove(&dir)?;
        }
    }
    Ok(())
}

/// The owner's lock goes a moment before its children do: they may still be writing.
fn remove(dir: &Path) -> Result<()> {
    let mut last = None;
    for _ in 0..200 {
        cgroup::remove(dir);
        match fs::remove_dir_all(dir) {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            Err(error) => last = Some(error),
        }
        thread::sleep(Duration::from_millis(50));
    }
    Err(Error::file("remove the rest of a cluster,", dir)(last.unwrap_or_else(|| ErrorKind::Other.into())))
}

/// In doubt it is: a directory that is taken for a rest is deleted.
fn is_owned(dir: &Path) -> bool {
    match File::open(dir.join("owner.lock")) {
        Err(error) => error.kind() != ErrorKind::NotFound,
        Ok(file) => file.try_lock_shared().is_err(),
    }
}

/// Creating and sweeping exclude each other, or a new directory could be taken for a rest.
fn lock_all(home: &Home) -> Result<File> {
    let path = home.lock_file("clusters.lock");
    let file = File::create(&path).map_err(Error::file("create", &path))?;
    file.lock().map_err(Error::file("lock", &path))?;
    Ok(file)
}

fn used_networks(home: &Home) -> Result<Vec<Network>> {
    Ok(State::list(home)?.into_iter().filter_map(|s| s.description.network).collect())
}

fn directories(dir: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(dir).map_err(Error::file("read", dir))?;
    let mut dirs: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    dirs.sort();
    Ok(dirs)
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<()> {
    let text = serde_json::to_vec_pretty(value).map_err(|e| Error::Other(e.to_string()))?;
    let fresh = path.with_extension("new");
    fs::write(&fresh, text).map_err(Error::file("write", &fresh))?;
    fs::rename(&fresh, path).map_err(Error::file("write", path))
}

/// Names become directories, cgroups and (shortened) interfaces.
fn check_name(name: &str) -> Result<()> {
    let starts_well = name.starts_with(|c: char| c.is_ascii_lowercase());
    let is_plain = name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if starts_well && is_plain && name.len() <= 20 {
        return Ok(());
    }
    Err(Error::BadName(name.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn home() -> (tempfile::TempDir, Home) {
        let dir = tempfile::tempdir().unwrap();
        let home = Home::at(dir.path()).unwrap();
        (dir, home)
    }

    #[test]
    fn a_directory_lives_as_long_as_its_owner() {
        let (_dir, home) = home();
        let owned = Owned::create(&home, "one", Shape::ControlPlane).unwrap();
        assert_eq!(State::list(&home).unwrap().len(), 1);
        let path = owned.state.dir.clone();
        drop(owned);
        assert!(!path.exists());
        assert!(State::find(&home, "one").unwrap().is_none());
    }

    #[test]
    fn the_rest_of_a_crash_is_swept_and_its_name_is_free() {
        let (_dir, home) = home();
        let rest = home.clusters().join("one");
        fs::create_dir_all(rest.join("etcd")).unwrap();
        fs::write(rest.join("owner.lock"), "").unwrap();
        let owned = Owned::create(&home, "one", Shape::ControlPlane).unwrap();
        assert!(!owned.state.dir.join("etcd").exists());
    }

    #[test]
    fn a_name_in_use_is_refused() {
        let (_dir, home) = home();
        let _owned = Owned::create(&home, "one", Shape::ControlPlane).unwrap();
        let error = Owned::create(&home, "one", Shape::Node).unwrap_err().to_string();
        assert!(error.contains("already running as a control plane"), "{error}");
    }

    #[test]
    fn names_that_cannot_be_directories_are_refused() {
        for bad in ["", "Upper", "../up", "1st", "a_b", "a-name-of-twenty-one-c"] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        check_name("test-1").unwrap();
    }

    #[test]
    fn status_reads_back_as_written() {
        let (_dir, home) = home();
        let owned = Owned::create(&home, "one", Shape::ControlPlane).unwrap();
        assert_eq!(owned.state.status().phase, Phase::Starting);
        let status = Status { phase: Phase::Failed("why".into()), ..Status::default() };
        owned.state.set_status(&status).unwrap();
        assert_eq!(owned.state.status().phase, status.phase);
    }
}
