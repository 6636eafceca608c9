//! The CustomResourceDefinitions, as kustomize takes them.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use serde_json::Value;

use crate::NOTICE;
use crate::error::{Error, Result};
use crate::output::Output;

const WHAT: &str = "the CustomResourceDefinitions";

/// The definition of a kind.
pub struct Definition {
    crd: CustomResourceDefinition,
}

/// One for each kind.
pub fn all() -> Result<Vec<Definition>> {
    let all = memcached_api::crd::all().map_err(Error::generate(WHAT))?;
    Ok(all.into_iter().map(|crd| Definition { crd }).collect())
}

pub fn outputs() -> Result<Vec<Output>> {
    let all = all()?;
    let files: String = all.iter().map(|definition| format!("- {}\n", definition.file())).collect();
    let list = Output::new("config/crd/kustomization.yaml", format!("{NOTICE}resources:\n{files}"));
    let definitions = all.iter().map(|definition| definition.output("config/crd"));
    definitions.chain([Ok(list)]).collect()
}

impl Definition {
    /// Its file below a directory.
    pub fn output(&self, directory: &str) -> Result<Output> {
        Ok(Output::new(format!("{directory}/{}", self.file()), format!("{NOTICE}{}", self.text()?)))
    }

    /// The name of its file, wherever it goes.
    pub fn file(&self) -> String {
        format!("{}_{}.yaml", self.crd.spec.group, self.crd.spec.names.plural)
    }

    pub fn name(&self) -> &str {
        self.crd.metadata.name.as_deref().unwrap_or_default()
    }

    pub fn kind(&self) -> &str {
        &self.crd.spec.names.kind
    }

    /// The stored version.
    pub fn version(&self) -> &str {
        self.crd.spec.versions.iter().find(|version| version.storage).map_or("", |version| &version.name)
    }

    /// It as YAML.
    pub fn text(&self) -> Result<String> {
        serde_saphyr::to_string(&self.crd).map_err(Error::generate(WHAT))
    }

    /// The schema of the stored version.
    pub fn schema(&self) -> Result<Value> {
        let stored = self.crd.spec.versions.iter().find(|version| version.storage);
        let schema = stored.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
        serde_json::to_value(schema).map_err(Error::generate(WHAT))
    }
}
