//! Whether a file is still the one that was read. The kubelet swaps a symbolic link, so it is the file behind it that
//! counts; watches of the kernel would follow the old one.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// What tells one content of a path from another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint {
    device: u64,
    inode: u64,
    length: u64,
    modified: (i64, i64),
}

impl Fingerprint {
    /// That of the file behind a path; none if there is none.
    pub fn of(path: &Path) -> Option<Self> {
        let metadata = fs::metadata(path).ok()?;
        Some(Self {
            device: metadata.dev(),
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
        })
    }
}
