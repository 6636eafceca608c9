//! The seal of a built directory: what every file in it was when the build ended.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::Check;
use crate::error::{Error, Result};

const FILE: &str = ".seal.json";

#[derive(Debug, Serialize, Deserialize)]
struct Seal {
    files: Vec<Sealed>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    path: PathBuf,
    size: u64,
    mode: u32,
    modified_ns: i128,
    sha256: String,
}

/// Records every file below `dir`.
pub fn seal(dir: &Path) -> Result<()> {
    let mut files = Vec::new();
    collect(dir, dir, &mut files)?;
    files.sort_by(|a, b| a.path.cmp(&b.path));
    let path = dir.join(FILE);
    let text = serde_json::to_vec_pretty(&Seal { files }).map_err(|e| Error::Other(e.to_string()))?;
    fs::write(&path, text).map_err(Error::file("write", &path))
}

/// Whether every sealed file is there as it was.
pub fn is_intact(dir: &Path, check: Check) -> bool {
    let Ok(text) = fs::read(dir.join(FILE)) else {
        return false;
    };
    let Ok(seal) = serde_json::from_slice::<Seal>(&text) else {
        return false;
    };
    seal.files.iter().all(|sealed| sealed.matches(dir, check).unwrap_or(false))
}

impl Sealed {
    fn of(root: &Path, path: &Path) -> io::Result<Self> {
        let metadata = fs::metadata(path)?;
        Ok(Self {
            path: path.strip_prefix(root).unwrap_or(path).to_path_buf(),
            size: metadata.len(),
            mode: metadata.permissions().mode(),
            modified_ns: modified_ns(&metadata),
            sha256: sha256(path)?,
        })
    }

    fn matches(&self, dir: &Path, check: Check) -> io::Result<bool> {
        let path = dir.join(&self.path);
        let metadata = fs::metadata(&path)?;
        if metadata.len() != self.size || metadata.permissions().mode() != self.mode {
            return Ok(false);
        }
        // Hashing a gigabyte on every start would cost a second; git's index makes the same bargain.
        if check == Check::Quick && modified_ns(&metadata) == self.modified_ns {
            return Ok(true);
        }
        Ok(sha256(&path)? == self.sha256)
    }
}

fn collect(root: &Path, dir: &Path, files: &mut Vec<Sealed>) -> Result<()> {
    for entry in fs::read_dir(dir).map_err(Error::file("read", dir))? {
        let path = entry.map_err(Error::file("read", dir))?.path();
        if path.is_dir() {
            collect(root, &path, files)?;
        } else {
            files.push(Sealed::of(root, &path).map_err(Error::file("read", &path))?);
        }
    }
    Ok(())
}

fn modified_ns(metadata: &fs::Metadata) -> i128 {
    i128::from(metadata.mtime()) * 1_000_000_000 + i128::from(metadata.mtime_nsec())
}

fn sha256(path: &Path) -> io::Result<String> {
    let mut hasher = Hashing(Sha256::new());
    io::copy(&mut File::open(path)?, &mut hasher)?;
    Ok(hex(&hasher.0.finalize()))
}

/// `io::copy` into a hash.
struct Hashing(Sha256);

impl io::Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
