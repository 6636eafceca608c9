//! What people ask before they do something: the definitions of the kinds, what a declaration would become, and what it
//! would do to a cache that runs.

mod against;

use std::error::Error;
use std::fmt::Write as _;
use std::io::{Read, Write as _};
use std::path::Path;
use std::{fs, io};

use memcached_api::Memcached;
use memcached_core::memcached::rule::Violation;
use memcached_core::memcached::{PodDefaults, build, revision, secret, validate_with, warning};

use crate::args::Explain;

/// Prints the CustomResourceDefinitions.
pub fn print_crds() -> Result<(), Box<dyn Error>> {
    let definitions = memcached_api::crd::all()?;
    let texts = definitions.iter().map(serde_saphyr::to_string).collect::<Result<Vec<_>, _>>()?;
    say(&texts.join("---\n"))
}

/// Writes to standard output; a reader that has seen enough is no error.
fn say(text: &str) -> Result<(), Box<dyn Error>> {
    match io::stdout().write_all(text.as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Prints what a declaration would become, or what it would do to a cache that runs.
pub fn explain(explain: &Explain, settings: &PodDefaults) -> Result<(), Box<dyn Error>> {
    let mut cache = read(&explain.filename)?;
    if let Some(running) = &explain.against {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        return say(&runtime.block_on(against::explain(cache, running, settings))?);
    }
    cache.metadata.namespace.get_or_insert_with(|| "default".into());
    say(&children(&cache, settings)?)
}

/// A Memcached from a file.
fn read(path: &Path) -> Result<Memcached, Box<dyn Error>> {
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        text
    } else {
        fs::read_to_string(path).map_err(|error| format!("failed to read {}: {error}", path.display()))?
    };
    Ok(serde_saphyr::from_str(&text).map_err(|error| format!("{} is no Memcached: {error}", path.display()))?)
}

fn refused(violations: &[Violation]) -> String {
    let lines: Vec<String> = violations.iter().map(|violation| format!("\n  {violation}")).collect();
    format!("the declaration cannot work:{}", lines.concat())
}

/// The children of a declaration.
fn children(cache: &Memcached, settings: &PodDefaults) -> Result<String, Box<dyn Error>> {
    let validated = validate_with(cache, settings).map_err(|violations| refused(&violations))?;
    let in_force = revision::decide(&validated, None, &[], None);
    let resources = build::build_children(&validated, &in_force.template, validated.fixed_replicas());
    let mut text = String::new();
    for object in resources.values() {
        writeln!(text, "---\n{}", serde_saphyr::to_string(object)?.trim_end())?;
    }
    for (name, keys) in secret::mounted(&validated) {
        writeln!(text, "# needs Secret {name} with the keys {}", keys.join(", "))?;
    }
    for warning in warning::warnings(&validated) {
        writeln!(text, "# warning: {warning}")?;
    }
    Ok(text)
}
