//! The files of this repository that people write.

use std::fs;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};

/// A checkout of this repository.
#[derive(Debug, Clone)]
pub struct Repository {
    root: PathBuf,
}

impl Repository {
    /// The one that this program was built in.
    pub fn here() -> Self {
        Self { root: Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_path_buf() }
    }

    /// Where a file is.
    pub fn path(&self, file: &str) -> PathBuf {
        self.root.join(file)
    }

    /// The text of a file.
    pub fn read(&self, file: &str) -> Result<String> {
        let path = self.path(file);
        fs::read_to_string(&path).map_err(|source| Error::Read { path, source })
    }

    /// The files in a directory whose names end so, sorted, with the directory in front.
    pub fn list(&self, directory: &str, ending: &str) -> Result<Vec<String>> {
        let path = self.path(directory);
        let failed = |source| Error::Read { path: path.clone(), source };
        let mut files = Vec::new();
        for entry in fs::read_dir(&path).map_err(failed)? {
            let name = entry.map_err(failed)?.file_name().to_string_lossy().into_owned();
            if name.ends_with(ending) {
                files.push(format!("{directory}/{name}"));
            }
        }
        files.sort();
        Ok(files)
    }
}
