//! What our crates depend on: each only on what it may, and on nothing that it does not use.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::cargo;
use crate::error::{Error, Result};
use crate::repository::Repository;

/// What does IO; a crate without it is pure.
const IO: &[&str] = &["hyper", "kube", "kube-client", "kube-runtime", "mio", "rustls", "tokio", "tower"];
const KUBERNETES: &[&str] = &["k8s-openapi", "kube", "kube-client", "kube-core", "kube-runtime"];
const MEMCACHED: &[&str] = &["memcached-api", "memcached-core", "memcached-wire"];
/// Neither IO nor a product.
const IO_AND_PRODUCT: &[&str] = &[
    "hyper",
    "kube",
    "kube-client",
    "kube-runtime",
    "memcached-api",
    "memcached-core",
    "memcached-wire",
    "mio",
    "rustls",
    "tokio",
    "tower",
];

/// Every crate below crates/, and what it must not depend on, directly or not.
const FORBIDDEN: &[(&str, &[&str])] = &[
    ("memcached-agent", KUBERNETES),
    ("memcached-api", IO),
    ("memcached-core", IO),
    ("memcached-operator", &["testbed"]),
    ("memcached-wire", KUBERNETES),
    ("operator-kit", MEMCACHED),
    ("operator-model", IO_AND_PRODUCT),
];

pub fn audit(repository: &Repository) -> Result<Vec<String>> {
    let metadata = cargo::metadata(repository, None)?;
    let mut complaints = Vec::new();
    for member in cargo::list(&metadata, "/packages").filter(|package| package["source"].is_null()) {
        let name = cargo::text(member, "name");
        let manifest = Path::new(cargo::text(member, "manifest_path"));
        let forbidden = FORBIDDEN.iter().find(|(listed, _)| *listed == name).map(|(_, forbidden)| *forbidden);
        match forbidden {
            // Asked of this crate alone: in the whole workspace others add features to what it depends on.
            Some(forbidden) => complaints.extend(check_reach(name, forbidden, &cargo::tree(repository, name)?)),
            None if manifest.starts_with(repository.path("crates")) => {
                complaints.push(format!("{name}: say in {} what it must not depend on", file!()));
            }
            None => {}
        }
        let directory = manifest.parent().unwrap_or(Path::new("."));
        complaints.extend(check_use(member, &Sources::read(directory)?));
    }
    Ok(complaints)
}

/// The forbidden crates among those that a crate depends on, one a line.
fn check_reach(name: &str, forbidden: &[&str], tree: &str) -> Vec<String> {
    let reached = forbidden.iter().filter(|crate_| tree.lines().any(|line| line.split(' ').next() == Some(crate_)));
    reached.map(|crate_| format!("{name} depends on {crate_}: cargo tree --package {name} --invert {crate_}")).collect()
}

/// The text of a crate's source files.
#[derive(Debug, Default)]
struct Sources {
    /// What is built for everybody.
    src: String,
    /// What is built for tests and examples only.
    tests: String,
}

impl Sources {
    fn read(directory: &Path) -> Result<Self> {
        let mut sources = Self { src: text_below(&directory.join("src"))?, tests: String::new() };
        for tests in ["tests", "examples", "benches"] {
            sources.tests += &text_below(&directory.join(tests))?;
        }
        sources.tests += &sources.src;
        Ok(sources)
    }
}

fn text_below(directory: &Path) -> Result<String> {
    if !directory.is_dir() {
        return Ok(String::new());
    }
    let failed = |source| Error::Read { path: directory.into(), source };
    let mut text = String::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() {
            text += &text_below(&path)?;
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            text += &fs::read_to_string(&path).map_err(failed)?;
        }
    }
    Ok(text)
}

/// The dependencies of a crate that none of its files names.
fn check_use(member: &Value, sources: &Sources) -> Vec<String> {
    let mut used: BTreeMap<&str, bool> = BTreeMap::new();
    for dependency in cargo::list(member, "/dependencies") {
        let name = dependency["rename"].as_str().unwrap_or_else(|| cargo::text(dependency, "name"));
        let text = if dependency["kind"].is_null() { &sources.src } else { &sources.tests };
        // With other features for tests it is listed twice.
        *used.entry(name).or_default() |= names(text, &name.replace('-', "_"));
    }
    let unused = used.into_iter().filter(|(_, is_used)| !is_used);
    unused.map(|(name, _)| format!("{} does not use {name}", cargo::text(member, "name"))).collect()
}

/// Whether a text has a path that begins with a crate.
fn names(text: &str, crate_: &str) -> bool {
    text.match_indices(crate_).any(|(at, _)| {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let begins = !text.get(..at).unwrap_or_default().ends_with(is_word);
        let rest = text.get(at + crate_.len()..).unwrap_or_default();
        let is_imported = text.get(..at).unwrap_or_default().ends_with("use ") && rest.starts_with([';', ' ']);
        begins && (rest.starts_with("::") || is_imported)
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_forbidden_crate_is_found_however_deep() {
        let tree = "memcached-core v0.1.0 (/x)\nkube-client v5.0.0\ntokio v1.0.0 (*)\n";
        assert_eq!(check_reach("memcached-core", IO, tree).len(), 2);
        assert_eq!(check_reach("memcached-core", &["kube"], tree), [""; 0]);
    }

    #[test]
    fn the_kit_would_not_pass_as_pure() {
        let tree = cargo::tree(&Repository::here(), "operator-kit").unwrap();
        let found = check_reach("operator-kit", IO, &tree).join("\n");
        assert!(found.contains("kube-client") && found.contains("tokio"), "{found}");
    }

    #[test]
    fn a_dependency_that_nothing_names_is_found() {
        let member = json!({"name": "x", "dependencies": [
            {"name": "serde", "kind": null}, {"name": "serde-saphyr", "kind": null}, {"name": "tempfile", "kind": null},
            {"name": "insta", "kind": "dev"}, {"name": "old", "rename": "new", "kind": null},
        ]});
        let src = "use serde_saphyr::x;\nuse new as other;\n#[derive(my_serde::Serialize)]".to_owned();
        let tests = format!("{src}insta::assert_yaml_snapshot!(tempfile::tempdir())");
        assert_eq!(check_use(&member, &Sources { src, tests }), ["x does not use serde", "x does not use tempfile"]);
    }
}
