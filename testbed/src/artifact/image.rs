//! Container images made from Debian's packages, named as users name them.

use std::fs::File;
use std::path::Path;

use crate::error::{Error, Result};
use crate::oci::{Config, Layer};
use crate::program::{run_watched, tool};
use crate::progress::Task;

use super::{Artifact, Recipe, sasl};

/// The file of an image in its artifact's directory.
pub const ARCHIVE: &str = "image.tar";

/// Raised when the way images are put together changes, so that they are made anew.
const GENERATION: &str = "1";

/// What is in an image.
#[derive(Debug, Clone)]
pub enum Image {
    /// Debian's memcached of a release, under the names of the official image.
    Memcached { suite: &'static str, version: &'static str, names: &'static [&'static str] },
    /// The same with SASL, built from its source package.
    MemcachedWithSasl { suite: &'static str, version: &'static str, name: &'static str },
    /// The container that holds a pod's namespaces open.
    Pause { name: &'static str },
    /// A shell and what goes with it.
    Busybox { name: &'static str },
    /// Stands where another image would: does nothing, and ends when told to.
    Placeholder { names: &'static [&'static str] },
}

/// What people call busybox by.
const APPLETS: [&str; 9] = ["sh", "sleep", "cat", "ls", "nc", "nslookup", "wget", "env", "id"];

/// The image that containerd starts for every pod.
pub const PAUSE: &str = "registry.k8s.io/pause:3.10";

/// The memcached that `memcached:1.6` is.
pub const MEMCACHED: &str = "1.6.45";

/// memcached as users name it: the newest that Debian has, and an older one to upgrade from.
pub fn memcached_images() -> Vec<Artifact> {
    vec![newest_memcached_image(), image("trixie", "1.6.38", &["docker.io/library/memcached:1.6.38"])]
}

/// The newest of them.
pub fn newest_memcached_image() -> Artifact {
    image("forky", MEMCACHED, &["docker.io/library/memcached:1.6", "docker.io/library/memcached:1.6.45"])
}

fn image(suite: &'static str, version: &'static str, names: &'static [&'static str]) -> Artifact {
    Artifact {
        name: "memcached-image".into(),
        version: version.into(),
        recipe: Recipe::Image(Image::Memcached { suite, version, names }),
    }
}

/// The image of a memcached that does SASL.
pub const SASL: &str = "docker.io/library/memcached:1.6.38-sasl";

/// memcached with SASL and its password file, as the official image has them.
pub fn sasl_image() -> Artifact {
    Artifact {
        name: "memcached-sasl-image".into(),
        version: "1.6.38".into(),
        recipe: Recipe::Image(Image::MemcachedWithSasl { suite: "trixie", version: "1.6.38", name: SASL }),
    }
}

/// The pause image.
pub fn pause_image() -> Artifact {
    Artifact { name: "pause-image".into(), version: "3.10".into(), recipe: Recipe::Image(Image::Pause { name: PAUSE }) }
}

/// A shell to look around with, under the name of the official image.
pub fn busybox_image() -> Artifact {
    let image = Image::Busybox { name: "docker.io/library/busybox:1.37" };
    Artifact { name: "busybox-image".into(), version: "1.37".into(), recipe: Recipe::Image(image) }
}

/// A stand-in for the stock exporter, under the names that the other operator's suite uses.
pub fn exporter_image() -> Artifact {
    let names = &["docker.io/prom/memcached-exporter:v0.15.4", "docker.io/prom/memcached-exporter:v0.14.0"];
    Artifact {
        name: "exporter-image".into(),
        version: "placeholder".into(),
        recipe: Recipe::Image(Image::Placeholder { names }),
    }
}

impl Image {
    /// Everything that decides what is in the image.
    pub fn ingredients(&self) -> Vec<Vec<u8>> {
        let more = match self {
            Self::MemcachedWithSasl { .. } => sasl::ingredients(),
            _ => String::new(),
        };
        vec![format!("{GENERATION} {self:?}{more}").into_bytes()]
    }

    /// Programs that building it takes, with their Debian packages.
    pub fn tools(&self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Memcached { .. } => &[("mmdebstrap", "mmdebstrap")],
            Self::MemcachedWithSasl { .. } => sasl::TOOLS,
            Self::Busybox { .. } | Self::Pause { .. } | Self::Placeholder { .. } => &[],
        }
    }

    /// Writes the image's archive to `out`; `busybox` is the directory of that artifact.
    pub fn build(&self, busybox: &Path, out: &Path, task: &Task) -> Result<()> {
        let busybox = busybox.join("busybox");
        let archive = out.join(ARCHIVE);
        match self {
            Self::Memcached { suite, version, names } => {
                let root = out.join("root.tar");
                unpack_debian(suite, version, &root, task)?;
                let layer = memcached_layer(&root, &busybox, out, task)?;
                let config = Config::new(names).entrypoint(&["/usr/bin/memcached"]).user("11211");
                layer.into_archive(&config, &archive)
            }
            Self::MemcachedWithSasl { suite, version, name } => {
                let root = out.join("root.tar");
                sasl::build(suite, version, &root, out, task)?;
                let mut layer = memcached_layer(&root, &busybox, out, task)?;
                let server = out.join("memcached");
                layer.file("usr/bin/memcached", 0o755, &server)?;
                std::fs::remove_file(&server).map_err(Error::file("remove", &server))?;
                let config = Config::new(&[name]).entrypoint(&["/usr/bin/memcached"]).user("11211");
                layer.into_archive(&config, &archive)
            }
            Self::Pause { name } => {
                let config = Config::new(&[name]).entrypoint(&["/busybox", "sleep", "2147483647"]);
                busybox_layer(&busybox, out)?.into_archive(&config, &archive)
            }
            Self::Busybox { name } => {
                let mut layer = Layer::create(out)?;
                layer.file("bin/busybox", 0o755, &busybox)?;
                for applet in APPLETS {
                    layer.link(&format!("bin/{applet}"), "busybox")?;
                }
                layer.into_archive(&Config::new(&[name]), &archive)
            }
            Self::Placeholder { names } => {
                // A container's first process ignores signals that it does not handle: pods would take 30 s to go.
                let script = "trap 'exit 0' TERM; /busybox sleep 2147483647 & wait";
                let config = Config::new(names).entrypoint(&["/busybox", "sh", "-c", script]);
                busybox_layer(&busybox, out)?.into_archive(&config, &archive)
            }
        }
    }
}

fn busybox_layer(busybox: &Path, out: &Path) -> Result<Layer> {
    let mut layer = Layer::create(out)?;
    layer.file("busybox", 0o755, busybox)?;
    Ok(layer)
}

fn memcached_layer(root: &Path, busybox: &Path, out: &Path, task: &Task) -> Result<Layer> {
    task.note("writing the image");
    let mut layer = Layer::create(out)?;
    // Only the loader, libraries and the server: the package's dependencies bring Perl and systemd.
    let file = File::open(root).map_err(Error::file("read", root))?;
    layer.take_from(file, is_wanted)?;
    for link in ["bin", "sbin", "lib", "lib64"] {
        layer.link(link, &format!("usr/{link}"))?;
    }
    layer.text("etc/passwd", "memcache:x:11211:11211::/:/bin/false\n")?;
    layer.text("etc/group", "memcache:x:11211:\n")?;
    layer.file("usr/bin/busybox", 0o755, busybox)?;
    // The official image has a shell and coreutils; preStop hooks run `sleep`, people run the rest.
    for applet in APPLETS {
        layer.link(&format!("usr/bin/{applet}"), "busybox")?;
    }
    std::fs::remove_file(root).map_err(Error::file("remove", root))?;
    Ok(layer)
}

/// Fetches memcached and what it depends on, and unpacks all of it into one tar file.
fn unpack_debian(suite: &str, version: &str, root: &Path, task: &Task) -> Result<()> {
    let mut command = tool("mmdebstrap")?;
    command
        .arg("--variant=extract")
        .arg(format!("--include=memcached={version}*"))
        // Releases that are not maintained any more stay usable.
        .arg("--aptopt=Acquire::Check-Valid-Until \"false\"")
        .arg(suite)
        .arg(root);
    run_watched(&format!("mmdebstrap of memcached {version}"), &mut command, |line| {
        task.note(line.trim_start_matches("I: ").to_owned());
    })
    .map(drop)
    .map_err(|error| match error {
        Error::Program { ref output, .. } if output.contains("was not found") => Error::Other(format!(
            "Debian {suite} no longer has memcached {version}: change the version in testbed/src/artifact/image.rs to the one it has"
        )),
        other => other,
    })
}

/// Whether a path of Debian's tree belongs into the image.
pub(super) fn is_wanted(path: &Path) -> bool {
    let path = path.strip_prefix(".").unwrap_or(path);
    let parts: Vec<&str> = path.iter().filter_map(|part| part.to_str()).collect();
    match parts.as_slice() {
        ["usr", "bin", "memcached"] | ["usr", "lib64", _] | ["usr", "lib", _, "sasl2", _] => true,
        ["usr", "lib", triplet, file] => triplet.contains("-linux-") && file.contains(".so"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_image_has_the_server_and_its_libraries_only() {
        for wanted in [
            "./usr/bin/memcached",
            "./usr/lib64/ld-linux-x86-64.so.2",
            "./usr/lib/x86_64-linux-gnu/libssl.so.3",
            "./usr/lib/aarch64-linux-gnu/sasl2/libsasldb.so.2",
        ] {
            assert!(is_wanted(Path::new(wanted)), "{wanted}");
        }
        for unwanted in ["./usr/bin/perl", "./usr/lib/x86_64-linux-gnu/perl/5.42/x.so", "./usr/share/doc/memcached"] {
            assert!(!is_wanted(Path::new(unwanted)), "{unwanted}");
        }
    }
}
