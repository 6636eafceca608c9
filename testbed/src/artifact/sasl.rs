//! memcached with SASL and its password file, which the official image has and Debian's package lacks: built from
//! Debian's source package with the host's compiler, against the libraries of the image it goes into.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::error::{Error, Result};
use crate::program::{run, run_watched, tool};
use crate::progress::Task;

/// Programs that building it takes, with their Debian packages.
pub const TOOLS: &[(&str, &str)] = &[
    ("mmdebstrap", "mmdebstrap"),
    ("make", "make"),
    ("gcc", "gcc"),
    ("pkg-config", "pkgconf"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// What it is linked with, and the mechanism that tests log in with.
const LIBRARIES: &str = "--include=libc6-dev,libevent-dev,libssl-dev,libsasl2-dev,libsasl2-modules";

/// Fetches the source package from wherever the binary packages came from.
const FETCH: &str = r#"#!/bin/sh
set -eu
export APT_CONFIG=$MMDEBSTRAP_APT_CONFIG
sed 's/^deb /deb-src /' "$1/etc/apt/sources.list" > "$1/etc/apt/sources.list.d/source.list"
apt-get update -qq
mkdir "$1/source"
cd "$1/source"
apt-get source --download-only -qq memcached
"#;

/// Everything that decides what is built.
pub fn ingredients() -> String {
    format!("{LIBRARIES} {FETCH}")
}

/// Builds `out/memcached`, and leaves the tree with its libraries in `root` as a tar file.
pub fn build(suite: &str, version: &str, root: &Path, out: &Path, task: &Task) -> Result<()> {
    let hook = out.join("fetch");
    fs::write(&hook, FETCH).map_err(Error::file("write", &hook))?;
    fs::set_permissions(&hook, fs::Permissions::from_mode(0o755)).map_err(Error::file("change", &hook))?;
    let mut command = tool("mmdebstrap")?;
    command
        .args(["--variant=extract", LIBRARIES, "--aptopt=Acquire::Check-Valid-Until \"false\""])
        .arg(format!("--extract-hook={}", hook.display()))
        .args([suite.as_ref(), root.as_os_str()]);
    run_watched(&format!("mmdebstrap of memcached {version}'s source"), &mut command, |line| {
        task.note(line.trim_start_matches("I: ").to_owned());
    })?;
    let system = out.join("system");
    fs::create_dir(&system).map_err(Error::file("create", &system))?;
    let mut unpack = tool("tar")?;
    unpack.arg("--extract").arg("--file").arg(root).arg("--directory").arg(&system).arg("--exclude=./dev/*");
    run("unpacking the libraries", &mut unpack)?;
    for link in ["lib", "lib64"] {
        let path = system.join(link);
        if !path.exists() {
            std::os::unix::fs::symlink(format!("usr/{link}"), &path).map_err(Error::file("create", &path))?;
        }
    }
    compile(&system, suite, version, out, task)?;
    fs::remove_dir_all(&system).map_err(Error::file("remove", &system))?;
    fs::remove_file(&hook).map_err(Error::file("remove", &hook))
}

fn compile(system: &Path, suite: &str, version: &str, out: &Path, task: &Task) -> Result<()> {
    let source = system.join("source");
    let archive = source.join(format!("memcached_{version}.orig.tar.xz"));
    if !archive.exists() {
        let remedy = "change the version in testbed/src/artifact/image.rs to the one it has";
        return Err(Error::Other(format!("Debian {suite} no longer has the source of memcached {version}: {remedy}")));
    }
    let mut unpack = tool("tar")?;
    run("unpacking the source", unpack.arg("--extract").arg("--file").arg(archive).arg("--directory").arg(&source))?;
    let tree = source.join(format!("memcached-{version}"));
    let triplet = run("gcc", tool("gcc")?.arg("-print-multiarch"))?.trim().to_owned();
    let libraries = system.join("usr/lib").join(&triplet);
    task.note("configuring");
    let compiler = format!("gcc --sysroot={} -B{}", system.display(), libraries.display());
    let mut configure = tool("sh")?;
    configure
        .args(["./configure", "--enable-sasl", "--enable-sasl-pwdb", "--enable-tls", "--disable-docs"])
        .args(["--disable-dependency-tracking", &format!("--host={triplet}")])
        .env("CC", compiler)
        .env("PKG_CONFIG_LIBDIR", libraries.join("pkgconfig"))
        .current_dir(&tree);
    run("configuring memcached", &mut configure)?;
    task.note("compiling");
    run("compiling memcached", tool("make")?.args(["-j2", "memcached"]).current_dir(&tree))?;
    let (built, wanted) = (tree.join("memcached"), out.join("memcached"));
    fs::copy(&built, &wanted).map_err(Error::file("copy", &built)).map(drop)
}
