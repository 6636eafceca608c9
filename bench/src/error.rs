//! What can go wrong while measuring, each as one sentence.
//! Some of it is a result in itself: an operator that does not converge is written down, not forgotten.

use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why something could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The control plane or a program could not be started.
    #[error(transparent)]
    Testbed(#[from] testbed::Error),
    /// Talking to the API server failed.
    #[error("the API server did not do what was asked: {0}")]
    Api(#[from] kube::Error),
    /// A request could not be written down.
    #[error("failed to make a request: {0}")]
    Request(#[from] http::Error),
    /// A file or directory could not be used.
    #[error("failed to {action} {}: {source}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A result of another version of this program.
    #[error("{} is no result that this version reads: {source}; delete it or run again with --again", path.display())]
    Format { path: PathBuf, source: serde_json::Error },
    /// The objects were not converged in time.
    #[error("did not converge within {seconds} s: {seen}")]
    NotConverged { seconds: u64, seen: String },
    /// The operator ended while it was measured.
    #[error("the operator ended by itself ({status}); its last words are in {}", log.display())]
    SubjectEnded { status: String, log: PathBuf },
    /// Anything else, already a sentence.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// For `map_err` on file operations.
    pub fn file(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::File { action, path, source }
    }

    /// Whether it says something about the operator that is measured, and not about the measurement.
    pub fn is_finding(&self) -> bool {
        matches!(self, Self::NotConverged { .. } | Self::SubjectEnded { .. })
    }
}
