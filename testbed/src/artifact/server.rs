//! The server out of an image, as files: tests run it as a process of their own, without containers.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::oci;
use crate::program::bound_to_parent;
use crate::progress::Task;

use super::image::{ARCHIVE, is_wanted};

/// Raised when the way it is unpacked changes, so that it is unpacked anew.
pub const GENERATION: &str = "2";
/// Without a file of this name the server does not start with `-S`.
const SASL_CONFIG: &str = "etc/sasl2/memcached.conf";

/// Unpacks the server and its libraries from the image in `image` to `out`.
pub fn build(image: &Path, out: &Path, task: &Task) -> Result<()> {
    task.note("unpacking the image");
    let archive = image.join(ARCHIVE);
    let file = File::open(&archive).map_err(Error::file("read", &archive))?;
    oci::unpack(file, out, is_wanted).map_err(Error::file("unpack", &archive))?;
    let config = out.join(SASL_CONFIG);
    let write = || {
        fs::create_dir_all(out.join("etc/sasl2"))?;
        fs::write(&config, "mech_list: plain\n")
    };
    write().map_err(Error::file("write", &config))
}

/// A command that runs the server unpacked in `dir`, bound to its parent.
///
/// The server's own loader starts it with its own libraries: the host's may be older or absent.
pub fn command(dir: &Path) -> Result<std::process::Command> {
    let (libraries, loader) = find_loader(&dir.join("usr/lib")).map_err(Error::file("read", dir))?;
    let mut command = bound_to_parent(loader);
    command.arg("--library-path").arg(&libraries).arg(dir.join("usr/bin/memcached"));
    // The host's settings and plugins are made for other versions of the same libraries.
    command.env("OPENSSL_CONF", "/dev/null");
    command.env("SASL_CONF_PATH", dir.join("etc/sasl2")).env("SASL_PATH", libraries.join("sasl2"));
    Ok(command)
}

/// The directory of the libraries and the loader in it; both are named after the machine's architecture.
fn find_loader(lib: &Path) -> io::Result<(PathBuf, PathBuf)> {
    for triplet in lib.read_dir()? {
        let triplet = triplet?.path();
        for file in triplet.read_dir()? {
            let file = file?;
            if file.file_name().to_string_lossy().starts_with("ld-linux") {
                return Ok((triplet, file.path()));
            }
        }
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "it has no dynamic loader"))
}
