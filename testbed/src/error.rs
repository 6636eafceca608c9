//! What can go wrong, each as one sentence that says what to do.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why the testbed could not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A file or directory could not be used.
    #[error("failed to {action} {}: {source}", path.display())]
    File { action: &'static str, path: PathBuf, source: io::Error },
    /// A program could not be started at all.
    #[error("failed to start {program}: {source}{}", hint_for(program, source))]
    Start { program: String, source: io::Error },
    /// A program ran and failed.
    #[error("{what} failed ({status}){}", tail_of(output))]
    Program { what: String, status: String, output: String },
    /// Programs of the host are missing and could not be installed.
    #[error("missing on this machine: {}; install with: {}", programs.join(", "), install)]
    MissingTools { programs: Vec<String>, install: String },
    /// The node shape needs privileges.
    #[error(
        "{what} needs root (namespaces, mounts and a network interface): run it with sudo; `testbed up --shape control-plane` needs none"
    )]
    NotRoot { what: &'static str },
    /// The disk is too full for what is to be built.
    #[error(
        "only {free} free below {}, but {what} needs {need}: free some space or point {variable} at a larger disk",
        path.display()
    )]
    NoSpace { path: PathBuf, what: String, free: Size, need: Size, variable: &'static str },
    /// The cache directory cannot be used.
    #[error("cannot use {} as the cache directory: {why}; point TESTBED_HOME at a directory you can write", path.display())]
    CacheDirectory { path: PathBuf, why: String },
    /// Somebody else listens where we were told to listen.
    #[error(
        "port {port} on 127.0.0.1 is in use by another program: choose another with --api-port, or leave it out to get a free one"
    )]
    PortInUse { port: u16 },
    /// A cluster's name is not usable as a name.
    #[error("{0:?} is not a name for a cluster: use 1 to 20 of a-z, 0-9 and '-', starting with a letter")]
    BadName(String),
    /// There is no such cluster.
    #[error("no cluster named {0:?} is running: start it with `testbed up --name {0}`")]
    NoCluster(String),
    /// The cluster runs in the other shape.
    #[error("cluster {name:?} is already running as a {running}: take it down first with `testbed down --name {name}`")]
    OtherShape { name: String, running: String },
    /// A cluster did not become ready.
    #[error("cluster {name:?} did not start: {why}")]
    NotReady { name: String, why: String },
    /// Talking to the API server failed.
    #[error("the API server did not do what was asked: {0}")]
    Api(#[from] kube::Error),
    /// A kubeconfig or certificate could not be made or read.
    #[error("failed to {action}: {why}")]
    Credentials { action: &'static str, why: String },
    /// Waited long enough.
    #[error("gave up after {seconds} s waiting for {what}; last seen: {seen}")]
    Timeout { what: String, seconds: u64, seen: String },
    /// The user pressed Ctrl-C or the process was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// Anything else, already a sentence.
    #[error("{0}")]
    Other(String),
}

impl Error {
    /// For `map_err` on file operations: `fs::read(p).map_err(Error::file("read", p))`.
    pub fn file(action: &'static str, path: impl AsRef<Path>) -> impl FnOnce(io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::File { action, path, source }
    }
}

/// A number of bytes, printed for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

impl Size {
    /// So many mebibytes.
    pub const fn mib(count: u64) -> Self {
        Self(count << 20)
    }
}

impl fmt::Display for Size {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tenths_of_gib = self.0.saturating_mul(10) >> 30;
        if tenths_of_gib >= 10 {
            write!(f, "{}.{} GiB", tenths_of_gib / 10, tenths_of_gib % 10)
        } else {
            write!(f, "{} MiB", self.0 >> 20)
        }
    }
}

/// Where to get a program that a fresh machine may lack.
fn hint_for(program: &str, source: &io::Error) -> &'static str {
    if source.kind() != io::ErrorKind::NotFound {
        return "";
    }
    match program {
        "go" => " (install Go 1.26 or later and put it on the PATH)",
        "apt-get" | "dpkg-deb" => " (the testbed installs from Debian's packages: it runs on Debian 12 or later)",
        "unshare" | "nsenter" | "setpriv" | "setsid" => " (it is part of Debian's package util-linux)",
        _ => "",
    }
}

/// The end of a program's output, indented below the sentence.
fn tail_of(output: &str) -> String {
    const LINES: usize = 15;
    let lines: Vec<&str> = output.lines().filter(|l| !l.trim().is_empty()).collect();
    let skipped = lines.len().saturating_sub(LINES);
    let tail: Vec<String> = lines.iter().skip(skipped).map(|l| format!("\n    {l}")).collect();
    if tail.is_empty() { String::new() } else { format!(":{}", tail.concat()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_read_as_people_say_them() {
        assert_eq!(Size::mib(80).to_string(), "80 MiB");
        assert_eq!(Size::mib(1536).to_string(), "1.5 GiB");
    }

    #[test]
    fn a_failed_program_shows_the_end_of_its_output_only() {
        let output = (1..=40).map(|n| format!("line {n}\n")).collect();
        let error = Error::Program { what: "go build".into(), status: "exit status: 1".into(), output };
        let text = error.to_string();
        assert!(text.starts_with("go build failed (exit status: 1):"));
        assert!(text.contains("line 40") && !text.contains("line 25\n"));
    }

    #[test]
    fn a_missing_go_says_which_go() {
        let error = Error::Start { program: "go".into(), source: io::ErrorKind::NotFound.into() };
        assert!(error.to_string().contains("install Go 1.26"));
    }
}
