//! The offline subcommands: the definition of the kind, and what a declaration would become.

use std::error::Error;
use std::io::Read;
use std::{fs, io};

use memcached_api::Memcached;
use memcached_core::{Settings, build, revision, secret, validate_with};

use crate::args::Explain;

/// Prints the CustomResourceDefinition.
pub fn print_crd() -> Result<(), Box<dyn Error>> {
    print!("{}", serde_saphyr::to_string(&memcached_api::crd::memcached()?)?);
    Ok(())
}

/// Prints the children of a declaration, or why there are none.
pub fn explain(explain: &Explain, settings: &Settings) -> Result<(), Box<dyn Error>> {
    let path = &explain.filename;
    let text = if path.as_os_str() == "-" {
        let mut text = String::new();
        io::stdin().read_to_string(&mut text)?;
        text
    } else {
        fs::read_to_string(path).map_err(|error| format!("failed to read {}: {error}", path.display()))?
    };
    let mut cache: Memcached =
        serde_saphyr::from_str(&text).map_err(|error| format!("{} is no Memcached: {error}", path.display()))?;
    cache.metadata.namespace.get_or_insert_with(|| "default".into());
    let validated = validate_with(&cache, settings).map_err(|violations| {
        let lines: Vec<String> = violations.iter().map(|violation| format!("\n  {violation}")).collect();
        format!("the declaration cannot work:{}", lines.concat())
    })?;
    let in_force = revision::decide(&validated, None, &[], None);
    let resources = build::build(&validated, &in_force.template, validated.fixed_replicas());
    for child in &resources.wanted {
        println!(
            "---
{}",
            serde_saphyr::to_string(&child.object)?.trim_end()
        );
    }
    for (name, keys) in secret::mounted(&validated) {
        println!("# needs Secret {name} with the keys {}", keys.join(", "));
    }
    Ok(())
}
