//! Certificates and passwords of a test, right ones and wrong ones, and the Secrets made of them.

use std::fs;
use std::path::{Path, PathBuf};

use e2e::stage::Stage;
use memcached_wire::{Identity, Tls};
use serde_json::json;
use testbed::User;
use testbed::pki::Pki;

/// The name in the servers' certificates.
pub const HOST: &str = "cache.example.org";
/// With a realm, as SASL wants it; the other mode does not mind.
pub const USER: &str = "app@shop";
pub const PASSWORD: &str = "secret";

/// What a client shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shown {
    Nothing,
    Ours,
    Untrusted,
    Expired,
}

pub struct Keyring {
    ours: Pki,
    untrusted: Pki,
    _files: tempfile::TempDir,
}

impl Keyring {
    /// Makes all of it, and the Secrets `certs` and `creds`.
    pub fn make(stage: &Stage) -> Self {
        let files = tempfile::tempdir().unwrap();
        let ours = Pki::create(files.path().join("ours")).unwrap();
        let untrusted = Pki::create(files.path().join("untrusted")).unwrap();
        let keyring = Self { ours, untrusted, _files: files };
        keyring.issue(stage);
        set_password(stage, PASSWORD);
        keyring
    }

    /// Issues another server certificate, in the Secret `certs`.
    pub fn issue(&self, stage: &Stage) {
        self.issue_as(stage, "certs");
    }

    /// The same in a Secret of another name.
    pub fn issue_as(&self, stage: &Stage, name: &str) {
        let (certificate, key) = self.ours.server("server", &[HOST], &[]).unwrap();
        stage
            .apply(&json!({
                "apiVersion": "v1", "kind": "Secret", "metadata": {"name": name},
                "stringData": {"tls.crt": read(&certificate), "tls.key": read(&key), "ca.crt": read(&self.ours.ca())},
            }))
            .unwrap();
    }

    fn pair(&self, shown: Shown) -> Option<(PathBuf, PathBuf)> {
        match shown {
            Shown::Nothing => None,
            Shown::Ours => Some(self.ours.client("client", &User::new("client")).unwrap()),
            Shown::Untrusted => Some(self.untrusted.client("client", &User::new("client")).unwrap()),
            Shown::Expired => Some(self.ours.expired_server("expired").unwrap()),
        }
    }

    /// The files of a client: the authority that it trusts, the certificate that it shows, and its key.
    pub fn files(&self, shown: Shown) -> (String, String, String) {
        let (certificate, key) = self.pair(shown).unwrap();
        (text(&self.ours.ca()), text(&certificate), text(&key))
    }

    /// A client that trusts our authority and shows that.
    pub fn tls(&self, shown: Shown) -> Tls {
        let authority = fs::read(self.ours.ca()).unwrap();
        let pair = self.pair(shown);
        let pair = pair.map(|(certificate, key)| (fs::read(certificate).unwrap(), fs::read(key).unwrap()));
        let identity = pair.as_ref().map(|(certificates, key)| Identity { certificates, key });
        Tls::new(&authority, identity).unwrap().with_server_name(HOST).unwrap()
    }

    /// A client that trusts somebody else.
    pub fn distrusting(&self) -> Tls {
        let authority = fs::read(self.untrusted.ca()).unwrap();
        Tls::new(&authority, None).unwrap().with_server_name(HOST).unwrap()
    }
}

/// The Secret `creds`, with a key beside the one that is mounted.
pub fn set_password(stage: &Stage, password: &str) {
    stage
        .apply(&json!({
            "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "creds"},
            "stringData": {"password-file": format!("{USER}:{password}\n")},
        }))
        .unwrap();
}

fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap()
}
