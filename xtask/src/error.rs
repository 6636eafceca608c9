//! What can go wrong.

use std::path::PathBuf;

/// Why files could not be generated, or are not as they should be.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to read {}: {source}", path.display())]
    Read { path: PathBuf, source: std::io::Error },
    #[error("failed to write {}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
    #[error("failed to generate {what}: {why}")]
    Generate { what: String, why: String },
    #[error("not current: {}; run `make generate`", files.join(", "))]
    Drift { files: Vec<String> },
    #[error("wrong:\n  {}", complaints.join("\n  "))]
    Wrong { complaints: Vec<String> },
}

impl Error {
    /// For `map_err`: what could not be generated because of this error.
    pub fn generate<E: ToString>(what: impl Into<String>) -> impl FnOnce(E) -> Self {
        let what = what.into();
        move |why| Self::Generate { what, why: why.to_string() }
    }
}

pub type Result<T, E = Error> = std::result::Result<T, E>;
