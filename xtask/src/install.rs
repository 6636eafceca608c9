//! dist/install.yaml: what `kubectl kustomize config/default` makes, in one file and with its comments.

use serde_json::Value;

use crate::NOTICE;
use crate::error::{Error, Result};
use crate::output::Output;
use crate::repository::Repository;

pub fn outputs(repository: &Repository) -> Result<Vec<Output>> {
    let mut texts = Vec::new();
    collect(repository, "config/default", &mut texts)?;
    let header = "# The operator for the whole cluster: kubectl apply --server-side -f install.yaml\n";
    Ok(vec![Output::new("dist/install.yaml", format!("{NOTICE}{header}{}", texts.join("---\n")))])
}

/// The files that a kustomization lists, in its order. Nothing here is transformed, so a text is what comes out; a test
/// on a cluster compares it with what kubectl makes of it.
fn collect(repository: &Repository, directory: &str, texts: &mut Vec<String>) -> Result<()> {
    let file = format!("{directory}/kustomization.yaml");
    let kustomization: Value = serde_saphyr::from_str(&repository.read(&file)?).map_err(Error::generate(&file))?;
    let resources = kustomization.get("resources").and_then(Value::as_array);
    for resource in resources.into_iter().flatten().filter_map(Value::as_str) {
        if let Some(sibling) = resource.strip_prefix("../") {
            collect(repository, &format!("config/{sibling}"), texts)?;
        } else {
            let text = repository.read(&format!("{directory}/{resource}"))?;
            texts.push(text.trim_start_matches(NOTICE).to_owned());
        }
    }
    Ok(())
}
