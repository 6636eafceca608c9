//! Copies the agent to where a container can run it whose image does not have it: there may be no shell and no `cp`.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The program's name.
const NAME: &str = "memcached-agent";

/// Why it is not there.
#[derive(Debug, thiserror::Error)]
#[error("failed to copy the agent to {}", path.display())]
pub struct InstallError {
    path: PathBuf,
    source: io::Error,
}

/// Copies this program into a directory. Whoever starts it meanwhile gets all of it.
pub fn run(directory: &Path) -> Result<(), InstallError> {
    let path = directory.join(NAME);
    let copy = || -> io::Result<()> {
        let part = directory.join(format!(".{NAME}"));
        // One that was interrupted cannot be written over.
        fs::remove_file(&part)
            .or_else(|error| if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
        fs::copy(std::env::current_exe()?, &part)?;
        fs::set_permissions(&part, fs::Permissions::from_mode(0o555))?;
        fs::rename(&part, &path)
    };
    copy().map_err(|source| InstallError { path: path.clone(), source })?;
    tracing::info!(path = %path.display(), "installed");
    Ok(())
}
