//! The samples, as the bundle shows them.

use serde_json::Value;

use crate::error::Result;
use crate::manifest;
use crate::repository::Repository;

const DIRECTORY: &str = "samples";

/// The caches among the samples.
pub fn caches(repository: &Repository) -> Result<Vec<Value>> {
    let mut caches = Vec::new();
    for file in repository.list(DIRECTORY, ".yaml")? {
        let manifests = manifest::read(repository, &file)?;
        caches.extend(manifests.into_iter().filter(|m| m.kind() == "Memcached").map(|m| m.object));
    }
    Ok(caches)
}
