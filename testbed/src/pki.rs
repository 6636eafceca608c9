//! The certificate authority of a cluster, and kubeconfigs for any user it vouches for.

use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::{fmt, io::Write};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    SanType,
};

use crate::error::{Error, Result};

/// A user of the API, as the audit log and RBAC will know it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct User {
    name: String,
    groups: Vec<String>,
}

impl User {
    /// A user in no group but the ones the API server adds.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), groups: Vec::new() }
    }

    /// A service account, with the groups that the API server gives to its tokens.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(format!("system:serviceaccount:{namespace}:{name}"))
            .group("system:serviceaccounts")
            .group(format!("system:serviceaccounts:{namespace}"))
    }

    /// The one who may do everything.
    pub fn admin() -> Self {
        Self::new("admin").group("system:masters")
    }

    /// Also a member of this group; a certificate carries two at most.
    #[must_use]
    pub fn group(mut self, group: impl Into<String>) -> Self {
        self.groups.push(group.into());
        self
    }

    /// The name in the audit log.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl fmt::Display for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// A cluster's authority, in a directory that every process of a test run can read.
#[derive(Debug, Clone)]
pub struct Pki {
    dir: PathBuf,
}

impl Pki {
    /// The authority in `dir`, for those who did not make it.
    pub fn open(dir: PathBuf) -> Result<Self> {
        let pki = Self { dir };
        fs::metadata(pki.ca()).map_err(Error::file("read", pki.ca()))?;
        Ok(pki)
    }

    /// The authority in `dir`; a new one if there is none yet.
    pub fn create(dir: PathBuf) -> Result<Self> {
        let pki = Self { dir };
        if !pki.ca().exists() {
            fs::create_dir_all(&pki.dir).map_err(Error::file("create", &pki.dir))?;
            let key = new_key()?;
            let mut params = CertificateParams::default();
            params.distinguished_name.push(DnType::CommonName, "testbed");
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
            let certificate = params.self_signed(&key).map_err(|e| certificate_error(&e))?;
            write_secret(&pki.dir.join("ca.key"), &key.serialize_pem())?;
            let tokens = new_key()?;
            write_secret(&pki.service_account_key(), &tokens.serialize_pem())?;
            write_secret(&pki.service_account_public_key(), &tokens.public_key_pem())?;
            write_secret(&pki.ca(), &certificate.pem())?;
        }
        Ok(pki)
    }

    /// The authority's certificate.
    pub fn ca(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    /// The authority's key.
    pub fn ca_key(&self) -> PathBuf {
        self.dir.join("ca.key")
    }

    /// The key that signs service account tokens.
    pub fn service_account_key(&self) -> PathBuf {
        self.dir.join("service-account.key")
    }

    /// The key that checks them.
    pub fn service_account_public_key(&self) -> PathBuf {
        self.dir.join("service-account.pub")
    }

    /// A serving certificate for these names and addresses, as files.
    pub fn server(&self, name: &str, dns: &[&str], addresses: &[IpAddr]) -> Result<(PathBuf, PathBuf)> {
        let names: Vec<String> = dns.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).map_err(|e| certificate_error(&e))?;
        let addresses = addresses.iter().copied().map(SanType::IpAddress);
        params.subject_alt_names.extend(addresses);
        params.distinguished_name.push(DnType::CommonName, name);
        let (certificate, key) = self.sign(params)?;
        self.keep(name, &certificate, &key)
    }

    /// The same for a server on 127.0.0.1 whose certificate has expired long ago.
    pub fn expired_server(&self, name: &str) -> Result<(PathBuf, PathBuf)> {
        let mut params = CertificateParams::default();
        params.subject_alt_names.push(SanType::IpAddress(Ipv4Addr::LOCALHOST.into()));
        params.distinguished_name.push(DnType::CommonName, name);
        params.not_before = rcgen::date_time_ymd(2001, 1, 1);
        params.not_after = rcgen::date_time_ymd(2002, 1, 1);
        let (certificate, key) = self.sign(params)?;
        self.keep(name, &certificate, &key)
    }

    /// A client certificate of a user, as files.
    pub fn client(&self, file: &str, user: &User) -> Result<(PathBuf, PathBuf)> {
        let (certificate, key) = self.client_pem(user)?;
        self.keep(file, &certificate, &key)
    }

    /// A kubeconfig of a user for the API server at `url`, complete in itself.
    pub fn kubeconfig(&self, url: &str, user: &User) -> Result<String> {
        let ca = fs::read(self.ca()).map_err(Error::file("read", self.ca()))?;
        let (certificate, key) = self.client_pem(user)?;
        Ok(format!(
            "apiVersion: v1\nkind: Config\ncurrent-context: testbed\n\
             clusters:\n- name: testbed\n  cluster:\n    server: {url}\n    certificate-authority-data: {}\n\
             users:\n- name: {name:?}\n  user:\n    client-certificate-data: {}\n    client-key-data: {}\n\
             contexts:\n- name: testbed\n  context: {{cluster: testbed, user: {name:?}}}\n",
            BASE64.encode(ca),
            BASE64.encode(certificate),
            BASE64.encode(key),
            name = user.name,
        ))
    }

    fn client_pem(&self, user: &User) -> Result<(String, String)> {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, user.name.clone());
        // rcgen holds one value a kind of name; the second group goes in by the number of the same kind.
        let mut kinds = [DnType::OrganizationName, DnType::CustomDnType(vec![2, 5, 4, 10])].into_iter();
        for group in &user.groups {
            let kind = kinds.next().ok_or_else(|| Error::Credentials {
                action: "make a certificate",
                why: format!("{user} is in more than two groups"),
            })?;
            params.distinguished_name.push(kind, group.clone());
        }
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<(String, String)> {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let read = |path: &Path| fs::read_to_string(path).map_err(Error::file("read", path));
        let ca_key = KeyPair::from_pem(&read(&self.ca_key())?).map_err(|e| certificate_error(&e))?;
        // The issuer's name and constraints are all that signing takes from the certificate.
        let mut ca = CertificateParams::default();
        ca.distinguished_name.push(DnType::CommonName, "testbed");
        ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = new_key()?;
        let certificate = params.signed_by(&key, &Issuer::new(ca, ca_key)).map_err(|e| certificate_error(&e))?;
        Ok((certificate.pem(), key.serialize_pem()))
    }

    fn keep(&self, name: &str, certificate: &str, key: &str) -> Result<(PathBuf, PathBuf)> {
        let paths = (self.dir.join(format!("{name}.crt")), self.dir.join(format!("{name}.key")));
        write_secret(&paths.0, certificate)?;
        write_secret(&paths.1, key)?;
        Ok(paths)
    }
}

fn new_key() -> Result<KeyPair> {
    KeyPair::generate().map_err(|e| certificate_error(&e))
}

fn certificate_error(error: &rcgen::Error) -> Error {
    Error::Credentials { action: "make a certificate", why: error.to_string() }
}

/// Writes a file that only its owner can read. Whoever reads it meanwhile sees the old content or the new.
pub fn write_secret(path: &Path, content: &str) -> Result<()> {
    let write = || -> std::io::Result<()> {
        let mut file = tempfile::NamedTempFile::new_in(path.parent().unwrap_or(Path::new(".")))?;
        file.write_all(content.as_bytes())?;
        file.persist(path)?;
        Ok(())
    };
    write().map_err(Error::file("write", path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kubeconfig_is_one_that_clients_accept() {
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki::create(dir.path().join("pki")).unwrap();
        let user = User::service_account("default", "operator");
        let text = pki.kubeconfig("https://127.0.0.1:6443", &user).unwrap();
        let config = kube::config::Kubeconfig::from_yaml(&text).unwrap();
        assert_eq!(config.auth_infos[0].name, "system:serviceaccount:default:operator");
        assert_eq!(config.current_context.as_deref(), Some("testbed"));
    }

    #[test]
    fn opening_again_keeps_the_authority() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Pki::open(dir.path().join("pki")).is_err(), "a reader makes nothing");
        let ca = Pki::create(dir.path().join("pki")).unwrap().ca();
        let first = fs::read(&ca).unwrap();
        Pki::create(dir.path().join("pki")).unwrap();
        assert_eq!(first, fs::read(&ca).unwrap());
    }
}
