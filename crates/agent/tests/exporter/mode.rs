//! `memcached_up` is 1 in every mode that memcached can be run in, and 0 with the wrong credentials.

use std::fs;
use std::path::{Path, PathBuf};

use testbed::Server;
use testbed::pki::{Pki, User};

use super::harness::{Exporter, text};

struct Files {
    dir: tempfile::TempDir,
    ca: PathBuf,
    server: (PathBuf, PathBuf),
    client: (PathBuf, PathBuf),
    other_ca: PathBuf,
    untrusted: (PathBuf, PathBuf),
}

impl Files {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let pki = Pki::create(dir.path().join("ours")).unwrap();
        let other = Pki::create(dir.path().join("other")).unwrap();
        Self {
            ca: pki.ca(),
            server: pki.server("server", &["cache.test"], &[]).unwrap(),
            client: pki.client("client", &User::new("exporter")).unwrap(),
            other_ca: other.ca(),
            untrusted: other.client("client", &User::new("exporter")).unwrap(),
            dir,
        }
    }

    /// A TLS server whose certificate names no address.
    async fn serve(&self, more: &[&str]) -> Server {
        let chain = format!("ssl_chain_cert={}", text(&self.server.0));
        let key = format!("ssl_key={}", text(&self.server.1));
        Server::start(&[&["-Z", "-o", &chain, "-o", &key], more].concat()).await.unwrap()
    }

    async fn serve_mutual(&self, more: &[&str]) -> Server {
        let ca = format!("ssl_ca_cert={}", text(&self.ca));
        self.serve(&[&["-o", &ca, "-o", "ssl_verify_mode=2"], more].concat()).await
    }

    fn passwords(&self, content: &str) -> PathBuf {
        let path = self.dir.path().join("password-file");
        fs::write(&path, content).unwrap();
        path
    }
}

/// The flags for TLS to `cache.test`.
fn tls(ca: &Path) -> Vec<&str> {
    vec!["--tls", "--tls-ca-file", text(ca), "--tls-server-name", "cache.test"]
}

fn showing<'a>(identity: &'a (PathBuf, PathBuf), tls: &[&'a str]) -> Vec<&'a str> {
    [tls, &["--tls-cert-file", text(&identity.0), "--tls-key-file", text(&identity.1)]].concat()
}

#[tokio::test]
async fn in_plaintext_it_is_up() {
    let server = Server::start(&[]).await.unwrap();
    assert!(Exporter::of(server.address(), &[]).await.scrape().is_up());
}

#[tokio::test]
async fn behind_a_password_it_is_up_with_the_file_and_down_without() {
    let files = Files::new();
    let passwords = files.passwords("ann:secret\nbob:other\n");
    let server = Server::start(&["-Y", text(&passwords)]).await.unwrap();
    assert!(Exporter::of(server.address(), &["--credentials-file", text(&passwords)]).await.scrape().is_up());
    let untrusted = Exporter::of(server.address(), &[]).await;
    assert!(untrusted.scrape().is_down());
    untrusted.has_told("the server wants a login").await;
}

#[tokio::test]
async fn a_rotated_password_is_taken_at_the_next_connection() {
    let files = Files::new();
    let passwords = files.passwords("ann:old\n");
    let mut server = Server::start(&["-Y", text(&passwords)]).await.unwrap();
    let exporter = Exporter::of(server.address(), &["--credentials-file", text(&passwords)]).await;
    assert!(exporter.scrape().is_up());
    files.passwords("ann:new\n");
    server.restart().await.unwrap();
    assert!(exporter.scrape().is_up(), "{}", exporter.log());
    files.passwords("ann:right\n");
    server.restart().await.unwrap();
    files.passwords("ann:wrong\n");
    assert!(exporter.scrape().is_down());
    exporter.has_told("refuses user or password").await;
    fs::remove_file(&passwords).unwrap();
    assert!(exporter.scrape().is_down(), "a missing file is trouble, not the end");
    files.passwords("ann:right\n");
    assert!(exporter.scrape().is_up(), "{}", exporter.log());
    exporter.has_told("memcached is up again").await;
    let log = exporter.log();
    assert!(!log.contains("right") && !log.contains("wrong"), "passwords are not for logs: {log}");
}

#[tokio::test]
async fn behind_tls_it_is_up_with_the_right_authority_only() {
    let files = Files::new();
    let server = files.serve(&[]).await;
    assert!(Exporter::of(server.address(), &tls(&files.ca)).await.scrape().is_up());
    assert!(Exporter::of(server.address(), &tls(&files.other_ca)).await.scrape().is_down());
    assert!(Exporter::of(server.address(), &["--tls", "--tls-ca-file", text(&files.ca)]).await.scrape().is_down());
    assert!(Exporter::of(server.address(), &[]).await.scrape().is_down(), "plaintext at a door for TLS");
}

#[tokio::test]
async fn behind_client_certificates_it_is_up_with_one_and_down_without() {
    let files = Files::new();
    let server = files.serve_mutual(&[]).await;
    let tls = tls(&files.ca);
    assert!(Exporter::of(server.address(), &showing(&files.client, &tls)).await.scrape().is_up());
    assert!(Exporter::of(server.address(), &showing(&files.untrusted, &tls)).await.scrape().is_down());
    assert!(Exporter::of(server.address(), &tls).await.scrape().is_down());
}

#[tokio::test]
async fn behind_client_certificates_and_a_password_it_is_up_with_both() {
    let files = Files::new();
    let passwords = files.passwords("ann:secret\n");
    let server = files.serve_mutual(&["-Y", text(&passwords)]).await;
    let tls = tls(&files.ca);
    let certificate = showing(&files.client, &tls);
    let both = [&certificate[..], &["--credentials-file", text(&passwords)]].concat();
    assert!(Exporter::of(server.address(), &both).await.scrape().is_up());
    assert!(Exporter::of(server.address(), &certificate).await.scrape().is_down());
}

#[tokio::test]
async fn beside_binary_sasl_it_is_up_at_the_loopback_port_for_text() {
    let server = Server::listening(&["proto[ascii]:", ""], &["-S"]).await.unwrap();
    assert!(Exporter::of(server.addresses()[0], &[]).await.scrape().is_up());
    // To text a server with SASL does not even answer.
    assert!(Exporter::within("300ms", server.addresses()[1], &[]).await.scrape().is_down());
}

#[tokio::test]
async fn beside_tls_it_is_up_at_the_loopback_port_for_plaintext() {
    let files = Files::new();
    let chain = format!("ssl_chain_cert={}", text(&files.server.0));
    let key = format!("ssl_key={}", text(&files.server.1));
    let server = Server::listening(&["notls:", ""], &["-Z", "-o", &chain, "-o", &key]).await.unwrap();
    assert!(Exporter::of(server.addresses()[0], &[]).await.scrape().is_up());
    assert!(Exporter::of(server.addresses()[1], &tls(&files.ca)).await.scrape().is_up());
}
