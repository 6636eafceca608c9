//! Writes container images as OCI archives, without a daemon, a registry or root.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use crate::error::{Error, Result};
use crate::store::hex;

/// What the image says about itself.
#[derive(Debug, Clone)]
pub struct Config {
    names: Vec<String>,
    entrypoint: Vec<String>,
    user: String,
    labels: BTreeMap<String, String>,
    architecture: String,
}

impl Config {
    /// An image with these full names (`docker.io/library/memcached:1.6`).
    pub fn new(names: &[&str]) -> Self {
        Self {
            names: names.iter().map(ToString::to_string).collect(),
            entrypoint: Vec::new(),
            user: "65532".into(),
            labels: BTreeMap::new(),
            architecture: std::env::consts::ARCH.into(),
        }
    }

    /// The program and its fixed arguments.
    #[must_use]
    pub fn entrypoint(mut self, words: &[&str]) -> Self {
        self.entrypoint = words.iter().map(ToString::to_string).collect();
        self
    }

    /// The numeric user it runs as.
    #[must_use]
    pub fn user(mut self, user: &str) -> Self {
        user.clone_into(&mut self.user);
        self
    }

    /// What is said about it, for example `org.opencontainers.image.title`.
    #[must_use]
    pub fn labels(mut self, labels: &[(String, String)]) -> Self {
        self.labels.extend(labels.iter().cloned());
        self
    }

    /// What its programs are built for (`x86_64`, `aarch64`), if that is not this machine's own.
    #[must_use]
    pub fn architecture(mut self, architecture: Option<&str>) -> Self {
        self.architecture = architecture.map_or(self.architecture, str::to_owned);
        self
    }

    fn document(&self, layer_digest: &str) -> Value {
        let architecture = match self.architecture.as_str() {
            "x86_64" => "amd64",
            "aarch64" => "arm64",
            other => other,
        };
        json!({
            "architecture": architecture,
            "os": "linux",
            "config": {
                "User": self.user,
                "Env": ["PATH=/usr/bin:/bin"],
                "Entrypoint": self.entrypoint,
                "Labels": self.labels,
            },
            "rootfs": {"type": "layers", "diff_ids": [layer_digest]},
            "history": [{"created_by": "testbed"}],
        })
    }
}

/// Turns static binaries into an image of nothing else, for example the operator's; the first is what it starts,
/// unless the configuration says otherwise.
pub fn image_of_binaries(binaries: &[impl AsRef<Path>], config: Config, archive: &Path) -> Result<()> {
    let parent = archive.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
    let mut layer = Layer::create(parent)?;
    let mut programs = Vec::new();
    for binary in binaries.iter().map(AsRef::as_ref) {
        let program = binary
            .file_name()
            .and_then(|n| n.to_str())
            .ok_or_else(|| Error::Other(format!("{} is not a program", binary.display())))?;
        layer.file(program, 0o755, binary)?;
        programs.push(format!("/{program}"));
    }
    let first = programs.first().ok_or_else(|| Error::Other("an image of no program".into()))?;
    let config = if config.entrypoint.is_empty() { config.entrypoint(&[first]) } else { config };
    layer.into_archive(&config, archive)
}

/// Unpacks the wanted files of an archive made here, links included, into `out`.
pub fn unpack(archive: impl Read, out: &Path, is_wanted: impl Fn(&Path) -> bool) -> io::Result<()> {
    let mut layers: Vec<String> = Vec::new();
    for entry in tar::Archive::new(archive).entries()? {
        let entry = entry?;
        let path = entry.path()?.to_string_lossy().into_owned();
        if path == "manifest.json" {
            // It is written before what it names.
            let manifest: Value = serde_json::from_reader(entry)?;
            layers = serde_json::from_value(manifest.pointer("/0/Layers").cloned().unwrap_or_default())?;
        } else if layers.contains(&path) {
            unpack_layer(entry, out, &is_wanted)?;
        }
    }
    Ok(())
}

fn unpack_layer(layer: impl Read, out: &Path, is_wanted: impl Fn(&Path) -> bool) -> io::Result<()> {
    for entry in tar::Archive::new(layer).entries()? {
        let mut entry = entry?;
        if is_wanted(&entry.path()?) {
            entry.unpack_in(out)?;
        }
    }
    Ok(())
}

/// The files of an image; the same files always make the same bytes.
pub struct Layer {
    tar: tar::Builder<Hashed>,
    // Keeps the temporary file alive, and removes it.
    path: tempfile::TempPath,
}

impl Layer {
    /// An empty layer, written to a temporary file in `dir`.
    pub fn create(dir: &Path) -> Result<Self> {
        let file = tempfile::NamedTempFile::new_in(dir).map_err(Error::file("create a file in", dir))?;
        let (file, path) = file.into_parts();
        Ok(Self { tar: tar::Builder::new(Hashed { file, hash: Sha256::new(), size: 0 }), path })
    }

    /// Adds a file with the content of another.
    pub fn file(&mut self, path: &str, mode: u32, from: &Path) -> Result<()> {
        let content = fs::read(from).map_err(Error::file("read", from))?;
        self.bytes(path, mode, &content)
    }

    /// Adds a small text file.
    pub fn text(&mut self, path: &str, content: &str) -> Result<()> {
        self.bytes(path, 0o644, content.as_bytes())
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) -> Result<()> {
        let mut header = header(0o777, 0);
        header.set_entry_type(tar::EntryType::Symlink);
        self.tar.append_link(&mut header, path, target).map_err(Error::file("write", &self.path))
    }

    /// Adds the files of another tar file that are wanted, links included.
    pub fn take_from(&mut self, tar: impl Read, is_wanted: impl Fn(&Path) -> bool) -> Result<()> {
        self.copy_wanted(tar, is_wanted).map_err(Error::file("write", &self.path))
    }

    fn copy_wanted(&mut self, tar: impl Read, is_wanted: impl Fn(&Path) -> bool) -> io::Result<()> {
        for entry in tar::Archive::new(tar).entries()? {
            let entry = entry?;
            let path = entry.path()?.into_owned();
            let kind = entry.header().entry_type();
            if kind.is_dir() || !is_wanted(&path) {
                continue;
            }
            let mut header = header(entry.header().mode()?, entry.size());
            header.set_entry_type(kind);
            match entry.link_name()? {
                Some(target) => self.tar.append_link(&mut header, &path, target)?,
                None => self.tar.append_data(&mut header, &path, entry)?,
            }
        }
        Ok(())
    }

    fn bytes(&mut self, path: &str, mode: u32, content: &[u8]) -> Result<()> {
        let mut header = header(mode, content.len() as u64);
        self.tar.append_data(&mut header, path, content).map_err(Error::file("write", &self.path))
    }

    /// Writes the image: an OCI layout, with the file that older `docker load` looks for.
    pub fn into_archive(self, config: &Config, archive: &Path) -> Result<()> {
        let Self { tar, path } = self;
        let layer = tar.into_inner().map_err(Error::file("write", &path))?;
        write_archive(&layer.finish(), &path, config, archive).map_err(Error::file("write", archive))
    }
}

fn write_archive(layer: &Blob, layer_file: &Path, config: &Config, archive: &Path) -> io::Result<()> {
    let config_text = serde_json::to_vec(&config.document(&layer.digest()))?;
    let config_blob = Blob::of(&config_text);
    let manifest = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": config_blob.descriptor("application/vnd.oci.image.config.v1+json"),
        "layers": [layer.descriptor("application/vnd.oci.image.layer.v1.tar")],
    }))?;
    let manifest_blob = Blob::of(&manifest);
    let entries: Vec<Value> = config
        .names
        .iter()
        .map(|name| {
            json!({
                "mediaType": "application/vnd.oci.image.manifest.v1+json",
                "digest": manifest_blob.digest(),
                "size": manifest_blob.size,
                "annotations": {"io.containerd.image.name": name, "org.opencontainers.image.ref.name": name},
            })
        })
        .collect();
    let index = serde_json::to_vec(&json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.index.v1+json",
        "manifests": entries,
    }))?;
    let docker = serde_json::to_vec(&json!([{
        "Config": config_blob.path(),
        "RepoTags": config.names,
        "Layers": [layer.path()],
    }]))?;

    let mut tar = tar::Builder::new(File::create(archive)?);
    let mut add = |path: &str, content: &[u8]| tar.append_data(&mut header(0o644, content.len() as u64), path, content);
    add("oci-layout", br#"{"imageLayoutVersion":"1.0.0"}"#)?;
    add("index.json", &index)?;
    add("manifest.json", &docker)?;
    add(&manifest_blob.path(), &manifest)?;
    add(&config_blob.path(), &config_text)?;
    tar.append_data(&mut header(0o644, layer.size), layer.path(), File::open(layer_file)?)?;
    tar.into_inner()?.sync_all()
}

fn header(mode: u32, size: u64) -> tar::Header {
    let mut header = tar::Header::new_gnu();
    header.set_mode(mode);
    header.set_size(size);
    header
}

/// Content named by its hash.
struct Blob {
    hash: String,
    size: u64,
}

impl Blob {
    fn of(content: &[u8]) -> Self {
        Self { hash: hex(&Sha256::digest(content)), size: content.len() as u64 }
    }

    fn digest(&self) -> String {
        format!("sha256:{}", self.hash)
    }

    fn path(&self) -> String {
        format!("blobs/sha256/{}", self.hash)
    }

    fn descriptor(&self, media_type: &str) -> Value {
        json!({"mediaType": media_type, "digest": self.digest(), "size": self.size})
    }
}

/// A file that hashes what is written to it.
struct Hashed {
    file: File,
    hash: Sha256,
    size: u64,
}

impl Hashed {
    fn finish(self) -> Blob {
        Blob { hash: hex(&self.hash.finalize()), size: self.size }
    }
}

impl Write for Hashed {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write_all(bytes)?;
        self.hash.update(bytes);
        self.size += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn archived(path: &Path) -> Vec<(PathBuf, Vec<u8>)> {
        let mut archive = tar::Archive::new(File::open(path).unwrap());
        let read = |entry: io::Result<tar::Entry<File>>| {
            let mut entry = entry.unwrap();
            let mut content = Vec::new();
            entry.read_to_end(&mut content).unwrap();
            (entry.path().unwrap().into_owned(), content)
        };
        archive.entries().unwrap().map(read).collect()
    }

    #[test]
    fn every_blob_has_the_digest_it_is_named_by() {
        let dir = tempfile::tempdir().unwrap();
        let binary = dir.path().join("memcached-operator");
        fs::write(&binary, "a static binary").unwrap();
        let archive = dir.path().join("out/image.tar");
        image_of_binaries(&[&binary], Config::new(&["example.org/operator:dev"]), &archive).unwrap();
        let entries = archived(&archive);
        let blobs: Vec<_> = entries.iter().filter(|(path, _)| path.starts_with("blobs")).collect();
        assert_eq!(blobs.len(), 3);
        for (path, content) in blobs {
            assert_eq!(path.to_str().unwrap(), Blob::of(content).path());
        }
        let index: Value = serde_json::from_slice(&entries[1].1).unwrap();
        assert_eq!(index["manifests"][0]["annotations"]["io.containerd.image.name"], "example.org/operator:dev");
    }

    #[test]
    fn several_binaries_share_an_image_and_the_first_is_started() {
        let dir = tempfile::tempdir().unwrap();
        let binaries = ["one", "two"].map(|name| dir.path().join(name));
        for binary in &binaries {
            fs::write(binary, "a static binary").unwrap();
        }
        let archive = dir.path().join("image.tar");
        let config = Config::new(&["example.org/both:dev"]).architecture(Some("aarch64"));
        let labels = [("org.opencontainers.image.title".to_owned(), "both".to_owned())];
        image_of_binaries(&binaries, config.labels(&labels), &archive).unwrap();
        let config: Value = serde_json::from_slice(&archived(&archive)[4].1).unwrap();
        assert_eq!(config["config"]["Entrypoint"], json!(["/one"]));
        assert_eq!(config["config"]["Labels"], json!({"org.opencontainers.image.title": "both"}));
        assert_eq!(config["architecture"], "arm64");
        let out = dir.path().join("out");
        fs::create_dir(&out).unwrap();
        unpack(File::open(&archive).unwrap(), &out, |path| path == Path::new("two")).unwrap();
        assert_eq!(fs::read_to_string(out.join("two")).unwrap(), "a static binary");
        assert!(!out.join("one").exists());
    }

    #[test]
    fn the_same_files_make_the_same_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let image = |name: &str| {
            let mut layer = Layer::create(dir.path()).unwrap();
            layer.text("etc/passwd", "x").unwrap();
            layer.link("bin", "usr/bin").unwrap();
            let path = dir.path().join(name);
            layer.into_archive(&Config::new(&["a:1", "a:2"]), &path).unwrap();
            fs::read(path).unwrap()
        };
        assert!(image("one") == image("two"));
    }

    #[test]
    fn unwanted_files_stay_out_and_links_come_along() {
        let dir = tempfile::tempdir().unwrap();
        let mut source = Layer::create(dir.path()).unwrap();
        source.text("keep/file", "kept").unwrap();
        source.text("drop/file", "dropped").unwrap();
        source.link("keep/link", "file").unwrap();
        let Layer { tar, path } = source;
        drop(tar.into_inner().unwrap());
        let mut layer = Layer::create(dir.path()).unwrap();
        layer.take_from(File::open(&path).unwrap(), |p| p.starts_with("keep")).unwrap();
        let Layer { tar, path } = layer;
        drop(tar.into_inner().unwrap());
        let names: Vec<_> = archived(&path).into_iter().map(|(path, _)| path).collect();
        assert_eq!(names, [PathBuf::from("keep/file"), PathBuf::from("keep/link")]);
    }
}
