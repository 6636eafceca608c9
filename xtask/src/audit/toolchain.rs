//! One version of Rust wherever something is built, and no build that changes `Cargo.lock`.

use crate::error::Result;
use crate::repository::Repository;

/// What of cargo resolves dependencies, and so could resolve other ones.
const RESOLVING: [&str; 12] =
    ["bench", "build", "check", "clippy", "deny", "doc", "install", "metadata", "run", "rustc", "test", "tree"];

/// Directories of scripts.
const SCRIPTS: [&str; 5] = [".ci", ".github/workflows", "demo", "monitoring", "packaging"];

pub fn audit(repository: &Repository) -> Result<Vec<String>> {
    let toolchain = repository.read("rust-toolchain.toml")?;
    let manifest = repository.read("Cargo.toml")?;
    let dockerfile = repository.read("Dockerfile")?;
    let workflow = repository.read(".github/workflows/ci.yaml")?;
    let mut complaints = check_versions(&toolchain, &manifest, &dockerfile, &workflow);
    let mut files = vec!["Dockerfile".to_owned(), "Makefile".to_owned()];
    for directory in SCRIPTS {
        files.extend(repository.list(directory, "")?);
    }
    for file in files.iter().filter(|file| repository.path(file).is_file()) {
        complaints.extend(check_locked(&repository.read(file)?).into_iter().map(|wrong| format!("{file}: {wrong}")));
    }
    Ok(complaints)
}

/// The version that rust-toolchain.toml pins is the one that images have, and not older than Cargo.toml asks for.
fn check_versions(toolchain: &str, manifest: &str, dockerfile: &str, workflow: &str) -> Vec<String> {
    let Some(pinned) = value(toolchain, "channel = ") else {
        return vec!["rust-toolchain.toml: channel is missing".into()];
    };
    let mut complaints = Vec::new();
    if version(pinned).is_none_or(|version| version.len() != 3) {
        complaints.push(format!("rust-toolchain.toml: {pinned} is not a full version"));
    }
    match value(manifest, "rust-version = ") {
        Some(oldest) if version(oldest) <= version(pinned) => {}
        oldest => {
            complaints.push(format!("Cargo.toml: rust-version is {}, {pinned} is pinned", oldest.unwrap_or("missing")));
        }
    }
    if value(dockerfile, "ARG RUST=") != Some(pinned) {
        complaints.push(format!("Dockerfile: RUST is not {pinned}, which rust-toolchain.toml pins"));
    }
    if !workflow.contains(&format!("image: rust:{pinned}-")) {
        complaints.push(format!(".github/workflows/ci.yaml: no container has Rust {pinned}, which is pinned"));
    }
    complaints
}

/// The value on the line that begins so.
fn value<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.trim().strip_prefix(key)).map(|value| value.trim().trim_matches('"'))
}

fn version(text: &str) -> Option<Vec<u32>> {
    text.split('.').map(|part| part.parse().ok()).collect()
}

/// The calls of cargo in a file that may write another `Cargo.lock`.
fn check_locked(text: &str) -> Vec<String> {
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().filter(|line| !line.trim_start().starts_with('#'));
    lines.filter(|line| !is_locked(line)).map(|line| format!("--locked is missing: {}", line.trim())).collect()
}

/// Whether every call of cargo on a line says `--locked` before the next command, or what it passes on, begins.
fn is_locked(line: &str) -> bool {
    let words: Vec<&str> = line.split_whitespace().collect();
    let is_cargo = |word: &str| matches!(word.trim_start_matches(['@', '-']), "cargo" | "$(CARGO)");
    let calls = words.iter().enumerate().filter(|(_, word)| is_cargo(word)).map(|(at, _)| words.iter().skip(at + 1));
    calls.into_iter().all(|call| {
        let mut call = call.take_while(|word| !matches!(**word, "--" | "&&" | "||" | ";" | "|"));
        let Some(command) = call.next() else { return true };
        !RESOLVING.contains(command) || call.any(|word| *word == "--locked")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_version_everywhere_passes_and_another_anywhere_does_not() {
        let check = |toolchain, manifest, dockerfile, workflow| {
            let toolchain = format!("[toolchain]\nchannel = \"{toolchain}\"\n");
            let manifest = format!("rust-version = \"{manifest}\"\n");
            let dockerfile = format!("ARG RUST={dockerfile}\n");
            check_versions(&toolchain, &manifest, &dockerfile, &format!("      image: rust:{workflow}-bookworm\n"))
        };
        assert_eq!(check("1.95.0", "1.89", "1.95.0", "1.95.0"), [""; 0]);
        for (toolchain, manifest, dockerfile, workflow, wrong) in [
            ("stable", "1.89", "stable", "stable", "not a full version"),
            ("1.95.0", "1.96", "1.95.0", "1.95.0", "rust-version is 1.96"),
            ("1.95.0", "1.89", "1.95", "1.95.0", "Dockerfile"),
            ("1.95.0", "1.89", "1.95.0", "1.94.0", "ci.yaml"),
        ] {
            let found = check(toolchain, manifest, dockerfile, workflow).join("\n");
            assert!(found.contains(wrong), "{wrong} is not in: {found}");
        }
        assert_eq!(check_versions("", "", "", ""), ["rust-toolchain.toml: channel is missing"]);
    }

    #[test]
    fn a_call_that_may_change_the_lock_file_is_found() {
        for good in
            ["cargo fmt --check", "\t@$(CARGO) build --locked --bin x", "RUN cargo build \\\n --locked", "# cargo run"]
        {
            assert_eq!(check_locked(good), [""; 0]);
        }
        for bad in [
            "cargo build",
            "\t$(CARGO) test --workspace -- --locked",
            "cargo fmt && cargo clippy --quiet",
            "cargo build && x --locked",
        ] {
            assert_eq!(check_locked(bad).len(), 1, "{bad}");
        }
    }
}
