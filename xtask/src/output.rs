//! Generated files: written, or compared with what is there.

use std::fs;

use crate::error::{Error, Result};
use crate::repository::Repository;

/// A generated file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    pub path: String,
    pub content: String,
}

impl Output {
    pub fn new(path: impl Into<String>, content: impl Into<String>) -> Self {
        Self { path: path.into(), content: content.into() }
    }

    fn is_current(&self, repository: &Repository) -> bool {
        fs::read_to_string(repository.path(&self.path)).is_ok_and(|current| current == self.content)
    }
}

/// Writes what is not current.
pub fn write(repository: &Repository, outputs: &[Output]) -> Result<()> {
    for output in outputs.iter().filter(|output| !output.is_current(repository)) {
        let path = repository.path(&output.path);
        let parent = path.parent().map_or(Ok(()), fs::create_dir_all);
        parent.and_then(|()| fs::write(&path, &output.content)).map_err(|source| Error::Write { path, source })?;
        println!("wrote {}", output.path);
    }
    Ok(())
}

/// What is not current.
pub fn drifted(repository: &Repository, outputs: &[Output]) -> Vec<String> {
    outputs.iter().filter(|output| !output.is_current(repository)).map(|output| output.path.clone()).collect()
}
