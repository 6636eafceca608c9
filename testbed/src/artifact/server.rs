//! The server out of an image, as files: tests run it as a process of their own, without containers.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::oci;
use crate::program::bound_to_parent;
use crate::progress::Task;

use super::image::{ARCHIVE, is_wanted};

/// Raised when the way it is unpacked changes, so that it is unpacked anew.
pub const GENERATION: &str = "1";

/// Unpacks the server and its libraries from the image in `image` to `out`.
pub fn build(image: &Path, out: &Path, task: &Task) -> Result<()> {
    task.note("unpacking the image");
    let archive = image.join(ARCHIVE);
    let file = File::open(&archive).map_err(Error::file("read", &archive))?;
    oci::unpack(file, out, is_wanted).map_err(Error::file("unpack", &archive))
}

/// A command that runs the server unpacked in `dir`, bound to its parent.
///
/// The server's own loader starts it with its own libraries: the host's may be older or absent.
pub fn command(dir: &Path) -> Result<std::process::Command> {
    let (libraries, loader) = find_loader(&dir.join("usr/lib")).map_err(Error::file("read", dir))?;
    let mut command = bound_to_parent(loader);
    command.arg("--library-path").arg(libraries).arg(dir.join("usr/bin/memcached"));
    // The host's settings of OpenSSL are made for another version of it.
    command.env("OPENSSL_CONF", "/dev/null");
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
