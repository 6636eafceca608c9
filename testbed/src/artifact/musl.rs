//! A C compiler for static binaries: the machine's own with musl's headers, out of a Debian package that is not installed.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::home::Home;
use crate::progress::Task;

use super::debian;

/// What the compiler is called; Debian's own does the same and needs to be installed.
pub const PROGRAM: &str = "musl-gcc";
/// The headers' package.
const PACKAGE: &str = "musl-dev";

/// Compiles, as Rust's crates with C code ask for; rustc links, with the musl that it brings along.
const COMPILER: &str = r#"#!/bin/sh
exec gcc -nostdinc -isystem "$(dirname "$0")/include" -isystem "$(gcc -print-file-name=include)" "$@"
"#;

/// Everything that decides what is built, besides Debian's release.
pub fn ingredients() -> Vec<Vec<u8>> {
    [PACKAGE, COMPILER].map(|text| text.as_bytes().to_vec()).into()
}

/// Puts the compiler and the headers into `out`.
pub fn build(home: &Home, out: &Path, task: &Task) -> Result<()> {
    let scratch = tempfile::tempdir_in(out).map_err(Error::file("create a directory below", out))?;
    let unpacked = debian::unpack(PACKAGE, home, scratch.path(), task)?;
    let headers = find_headers(&unpacked.join("usr/include"))?;
    fs::rename(&headers, out.join("include")).map_err(Error::file("move", &headers))?;
    let compiler = out.join(PROGRAM);
    fs::write(&compiler, COMPILER).map_err(Error::file("write", &compiler))?;
    fs::set_permissions(&compiler, fs::Permissions::from_mode(0o755)).map_err(Error::file("change", &compiler))
}

/// They are in a directory that is named after the machine's architecture.
fn find_headers(include: &Path) -> Result<PathBuf> {
    let mut entries = include.read_dir().map_err(Error::file("read", include))?.filter_map(Result::ok);
    let found = entries.find(|entry| entry.file_name().to_string_lossy().ends_with("-linux-musl"));
    found.map(|entry| entry.path()).ok_or_else(|| Error::Other(format!("Debian's package {PACKAGE} has no headers")))
}
