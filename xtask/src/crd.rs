//! The CustomResourceDefinitions, as kustomize takes them.

use serde_json::Value;

use crate::NOTICE;
use crate::error::{Error, Result};
use crate::output::Output;

/// The file of the definition, wherever it goes.
pub const FILE: &str = "memcached.c5c3.io_memcacheds.yaml";

pub fn outputs() -> Result<Vec<Output>> {
    Ok(vec![Output::new(format!("config/crd/{FILE}"), format!("{NOTICE}{}", text()?))])
}

/// The definition as YAML.
pub fn text() -> Result<String> {
    let crd = memcached_api::crd::memcached().map_err(Error::generate(FILE))?;
    serde_saphyr::to_string(&crd).map_err(Error::generate(FILE))
}

/// The schema of the stored version.
pub fn schema() -> Result<Value> {
    let crd = memcached_api::crd::memcached().map_err(Error::generate(FILE))?;
    let stored = crd.spec.versions.iter().find(|version| version.storage);
    let schema = stored.and_then(|version| version.schema.as_ref()?.open_api_v3_schema.as_ref());
    serde_json::to_value(schema).map_err(Error::generate(FILE))
}
