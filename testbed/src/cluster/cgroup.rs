//! The control groups of a node: all below one of our own, so that all of them can be removed.

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::store::hex;

/// The kubelet's cgroup root for the cluster in `dir`. Clusters of the same name in other homes have others.
pub fn root(dir: &Path) -> String {
    let name = dir.file_name().unwrap_or_default().to_string_lossy();
    let place: String = hex(&Sha256::digest(dir.as_os_str().as_encoded_bytes())).chars().take(8).collect();
    format!("/testbed-{name}-{place}")
}

/// Creates the root in every hierarchy.
pub fn create(dir: &Path) -> Result<()> {
    for path in roots(dir) {
        fs::create_dir_all(&path).map_err(Error::file("create", &path))?;
    }
    Ok(())
}

/// Removes the root and all below it, in every hierarchy; its processes must have been killed.
pub fn remove(dir: &Path) {
    for path in roots(dir) {
        // A killed process leaves its cgroup a moment after it is gone from sight.
        for _ in 0..100 {
            if !path.exists() || remove_tree(&path) {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// `rmdir` from the leaves up: the files in a cgroup cannot be removed and need not be.
fn remove_tree(dir: &Path) -> bool {
    let below = fs::read_dir(dir).into_iter().flatten().flatten();
    for entry in below.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())) {
        remove_tree(&entry.path());
    }
    fs::remove_dir(dir).is_ok()
}

/// The root's path in each hierarchy: one with version 2, one a controller with version 1.
fn roots(dir: &Path) -> Vec<PathBuf> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    mount_points(&mounts).map(|point| Path::new(point).join(root(dir).trim_start_matches('/'))).collect()
}

fn mount_points(mounts: &str) -> impl Iterator<Item = &str> {
    mounts.lines().filter_map(|line| {
        let mut words = line.split(' ').skip(1);
        let point = words.next()?;
        words.next()?.starts_with("cgroup").then_some(point)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_hierarchy_is_found() {
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n\
                      cgroup /sys/fs/cgroup/cpu cgroup rw,cpu 0 0\n\
                      cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
        let points: Vec<&str> = mount_points(mounts).collect();
        assert_eq!(points, ["/sys/fs/cgroup/cpu", "/sys/fs/cgroup/unified"]);
    }

    #[test]
    fn the_same_name_in_another_home_is_another_group() {
        let one = root(Path::new("/one/clusters/default"));
        assert!(one.starts_with("/testbed-default-"), "{one}");
        assert_ne!(one, root(Path::new("/two/clusters/default")));
    }

    #[test]
    fn a_tree_goes_from_the_leaves_up() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("root");
        fs::create_dir_all(root.join("pod/container")).unwrap();
        assert!(remove_tree(&root));
        assert!(!root.exists());
    }
}
