//! The samples, where kustomize and the bundle find them.

use serde_json::Value;

use crate::NOTICE;
use crate::error::Result;
use crate::manifest;
use crate::output::Output;
use crate::repository::Repository;

const DIRECTORY: &str = "samples";

pub fn outputs(repository: &Repository) -> Result<Vec<Output>> {
    let mut outputs = Vec::new();
    let mut list = format!("{NOTICE}# kubectl apply -k config/samples\nresources:\n");
    for file in repository.list(DIRECTORY, ".yaml")? {
        let name = file.trim_start_matches("samples/");
        outputs.push(Output::new(format!("config/samples/{name}"), format!("{NOTICE}{}", repository.read(&file)?)));
        list.extend(["- ", name, "\n"]);
    }
    outputs.push(Output::new("config/samples/kustomization.yaml", list));
    Ok(outputs)
}

/// The caches among the samples.
pub fn caches(repository: &Repository) -> Result<Vec<Value>> {
    let mut caches = Vec::new();
    for file in repository.list(DIRECTORY, ".yaml")? {
        let manifests = manifest::read(repository, &file)?;
        caches.extend(manifests.into_iter().filter(|m| m.kind() == "Memcached").map(|m| m.object));
    }
    Ok(caches)
}
