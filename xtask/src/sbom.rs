//! What the programs in the image are made of, as CycloneDX: every crate that is linked into them, from `cargo metadata`.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde_json::{Value, json};

use crate::VERSION;
use crate::cargo::{self, list, text};
use crate::error::{Error, Result};
use crate::repository::Repository;

/// Writes the bill of materials of these packages, built for that target.
pub fn write(repository: &Repository, packages: &[String], target: &str, output: &Path) -> Result<()> {
    let metadata = cargo::metadata(repository, Some(target))?;
    let document = document(&metadata, packages, &checksums(repository)?)?;
    let text = serde_json::to_string_pretty(&document).map_err(Error::generate("the bill of materials"))?;
    let parent = output.parent().map_or(Ok(()), std::fs::create_dir_all);
    let written = parent.and_then(|()| std::fs::write(output, text + "\n"));
    written.map_err(|source| Error::Write { path: output.into(), source })
}

/// The checksums of crates, by name and version.
fn checksums(repository: &Repository) -> Result<BTreeMap<(String, String), String>> {
    let mut checksums = BTreeMap::new();
    for package in repository.read("Cargo.lock")?.split("[[package]]") {
        let value = |key: &str| {
            let line = package.lines().find_map(|line| line.strip_prefix(&format!("{key} = ")));
            line.map(|value| value.trim_matches('"').to_owned())
        };
        if let (Some(name), Some(version), Some(checksum)) = (value("name"), value("version"), value("checksum")) {
            checksums.insert((name, version), checksum);
        }
    }
    Ok(checksums)
}

fn document(metadata: &Value, packages: &[String], checksums: &BTreeMap<(String, String), String>) -> Result<Value> {
    let all: BTreeMap<&str, &Value> =
        list(metadata, "/packages").map(|package| (text(package, "id"), package)).collect();
    let nodes: BTreeMap<&str, &Value> = list(metadata, "/resolve/nodes").map(|node| (text(node, "id"), node)).collect();
    let roots: Vec<&str> = all
        .iter()
        .filter(|(_, package)| packages.iter().any(|name| name == text(package, "name")))
        .map(|(id, _)| *id)
        .collect();
    if roots.len() != packages.len() {
        let why = format!("{} of these packages exist: {}", roots.len(), packages.join(", "));
        return Err(Error::Generate { what: "the bill of materials".into(), why });
    }
    let linked = linked(&roots, &nodes);
    let component = |id: &&str| all.get(*id).map(|package| component(package, &roots, checksums));
    let depends = |id: &&str| {
        let on: Vec<String> =
            nodes.get(*id).map(|node| edges(node)).into_iter().flatten().map(|id| reference(&all, id)).collect();
        json!({"ref": reference(&all, id), "dependsOn": on})
    };
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {"type": "container", "bom-ref": "image", "name": "memcached-operator", "version": VERSION},
        },
        "components": linked.iter().filter_map(component).collect::<Vec<_>>(),
        "dependencies": linked.iter().map(depends).collect::<Vec<_>>(),
    }))
}

/// Everything that ends up in the programs.
fn linked<'a>(roots: &[&'a str], nodes: &BTreeMap<&str, &'a Value>) -> BTreeSet<&'a str> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&str> = roots.to_vec();
    while let Some(id) = next.pop() {
        if found.insert(id) {
            next.extend(nodes.get(id).map(|node| edges(node)).into_iter().flatten());
        }
    }
    found
}

/// The dependencies that are linked: neither those of tests nor those of build scripts.
fn edges(node: &Value) -> Vec<&str> {
    let is_linked = |edge: &&Value| list(edge, "/dep_kinds").any(|kind| kind.get("kind").is_some_and(Value::is_null));
    list(node, "/deps").filter(is_linked).map(|edge| text(edge, "pkg")).collect()
}

fn component(package: &Value, roots: &[&str], checksums: &BTreeMap<(String, String), String>) -> Value {
    let (name, version) = (text(package, "name"), text(package, "version"));
    let is_program = roots.contains(&text(package, "id"));
    let mut component = json!({
        "type": if is_program { "application" } else { "library" },
        "bom-ref": package_url(name, version),
        "name": name,
        "version": version,
        "purl": package_url(name, version),
    });
    if let Value::Object(fields) = &mut component {
        if let Some(licence) = package.get("license").and_then(Value::as_str) {
            // Crates of old separate alternatives by a slash.
            fields.insert("licenses".into(), json!([{"expression": licence.replace('/', " OR ")}]));
        }
        if let Some(checksum) = checksums.get(&(name.to_owned(), version.to_owned())) {
            fields.insert("hashes".into(), json!([{"alg": "SHA-256", "content": checksum}]));
        }
    }
    component
}

fn reference(all: &BTreeMap<&str, &Value>, id: &str) -> String {
    all.get(id).map(|package| package_url(text(package, "name"), text(package, "version"))).unwrap_or_default()
}

fn package_url(name: &str, version: &str) -> String {
    format!("pkg:cargo/{name}@{version}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_programs_and_what_is_linked_are_listed_but_not_what_tests_need() {
        let repository = Repository::here();
        let metadata = cargo::metadata(&repository, Some("x86_64-unknown-linux-musl")).unwrap();
        let packages = ["memcached-operator".to_owned(), "memcached-agent".to_owned()];
        let document = document(&metadata, &packages, &checksums(&repository).unwrap()).unwrap();
        let names: Vec<&str> = list(&document, "/components").map(|one| text(one, "name")).collect();
        for wanted in ["memcached-operator", "memcached-agent", "memcached-core", "kube-client", "rustls", "ring"] {
            assert!(names.contains(&wanted), "{wanted}");
        }
        for unwanted in ["testbed", "insta", "proptest", "xtask"] {
            assert!(!names.contains(&unwanted), "{unwanted}");
        }
        for component in list(&document, "/components").filter(|one| !text(one, "name").starts_with("memcached-")) {
            let is_ours = ["operator-kit", "operator-model"].contains(&text(component, "name"));
            assert!(
                is_ours || (component.get("hashes").is_some() && component.get("licenses").is_some()),
                "{component}"
            );
        }
    }

    #[test]
    fn a_package_that_does_not_exist_is_no_bill() {
        let error = document(&json!({}), &["nothing".to_owned()], &BTreeMap::new()).unwrap_err();
        assert!(error.to_string().contains("nothing"), "{error}");
    }
}
