//! Kubernetes objects in files: what they say, and the very text that says it, comments included.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::repository::Repository;

/// One object of a file.
#[derive(Debug, Clone)]
pub struct Manifest {
    pub text: String,
    pub object: Value,
}

/// The objects of a file.
pub fn read(repository: &Repository, file: &str) -> Result<Vec<Manifest>> {
    parse(file, &repository.read(file)?)
}

/// The objects in a text.
pub fn parse(what: &str, text: &str) -> Result<Vec<Manifest>> {
    let texts = text.split("\n---\n").map(|text| format!("{}\n", text.trim_end()));
    let manifest = |text: String| {
        let object = serde_saphyr::from_str(&text).map_err(Error::generate(what))?;
        Ok(Manifest { text, object })
    };
    texts.map(manifest).collect()
}

/// The one of that kind and name.
pub fn find<'a>(manifests: &'a [Manifest], kind: &str, name: &str) -> Result<&'a Manifest> {
    let found = manifests.iter().find(|manifest| manifest.kind() == kind && manifest.name() == name);
    found.ok_or_else(|| Error::Generate { what: format!("{kind} {name}"), why: "it is not there".into() })
}

impl Manifest {
    pub fn kind(&self) -> &str {
        self.string("/kind")
    }

    pub fn name(&self) -> &str {
        self.string("/metadata/name")
    }

    fn string(&self, pointer: &str) -> &str {
        self.object.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
    }

    /// The text of the last section, which begins with that key at the margin.
    pub fn last_section(&self, key: &str) -> Result<&str> {
        let (_, section) = self.text.split_once(&format!("\n{key}:\n")).ok_or_else(|| Error::Generate {
            what: format!("{} {}", self.kind(), self.name()),
            why: format!("it has no section {key}"),
        })?;
        Ok(section.trim_end())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: &str = "# First.\nkind: A\nmetadata:\n  name: one\nrules:\n# Why.\n- x: 1\n---\nkind: B\n";

    #[test]
    fn objects_keep_their_text_and_comments() {
        let all = parse("two", TWO).unwrap();
        assert_eq!(all.len(), 2);
        let first = find(&all, "A", "one").unwrap();
        assert!(first.text.starts_with("# First.\n"));
        assert_eq!(first.last_section("rules").unwrap(), "# Why.\n- x: 1");
        assert!(find(&all, "B", "two").is_err());
    }
}
