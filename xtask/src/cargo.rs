//! What cargo knows about this workspace.

use std::process::Command;

use serde_json::Value;

use crate::error::{Error, Result};
use crate::repository::Repository;

/// Everything about all packages, or only what a target needs.
pub fn metadata(repository: &Repository, target: Option<&str>) -> Result<Value> {
    let mut arguments = vec!["metadata", "--format-version=1"];
    arguments.extend(target.into_iter().flat_map(|target| ["--filter-platform", target]));
    let text = run(repository, &arguments)?;
    serde_json::from_str(&text).map_err(Error::generate("cargo metadata"))
}

/// What is linked into a package when it is built alone, a line each.
pub fn tree(repository: &Repository, package: &str) -> Result<String> {
    run(repository, &["tree", "--edges", "normal", "--prefix", "none", "--package", package])
}

fn run(repository: &Repository, arguments: &[&str]) -> Result<String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let what = || format!("what `cargo {}` says", arguments.join(" "));
    let mut command = Command::new(cargo);
    let output = command.args(arguments).arg("--locked").current_dir(repository.path(".")).output();
    let output = output.map_err(Error::generate(what()))?;
    if !output.status.success() {
        return Err(Error::Generate { what: what(), why: String::from_utf8_lossy(&output.stderr).into_owned() });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// A text in an object; empty if there is none.
pub fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}

/// The items of a list; none if there is none.
pub fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    value.pointer(pointer).and_then(Value::as_array).into_iter().flatten()
}
