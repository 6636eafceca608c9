//! TLS: whom we trust, whom the server trusts, and doors of the wrong kind.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use memcached_wire::{Connection, Endpoint, Error, ErrorClass, Identity, Result, Stream, Tls};
use testbed::pki::{Pki, User};
use testbed::{Server, wait};

use super::{SHORT_TIMEOUT, endpoint};

/// Two authorities: ours, and somebody else's.
struct Authorities {
    _dir: tempfile::TempDir,
    ours: Pki,
    other: Pki,
}

impl Authorities {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let ours = Pki::create(dir.path().join("ours")).unwrap();
        let other = Pki::create(dir.path().join("other")).unwrap();
        Self { _dir: dir, ours, other }
    }

    fn server_files(&self) -> (PathBuf, PathBuf) {
        self.ours.server("server", &["cache.test"], &["127.0.0.1".parse().unwrap()]).unwrap()
    }

    /// Trusts our authority, and shows a certificate that this one signed.
    fn tls_shown_by(&self, authority: &Pki) -> Tls {
        let (certificate, key) = authority.client("client", &User::new("ann")).unwrap();
        let (certificates, key) = (read(&certificate), read(&key));
        let identity = Identity { certificates: &certificates, key: &key };
        Tls::new(&read(&self.ours.ca()), Some(identity)).unwrap()
    }
}

fn read(path: &Path) -> Vec<u8> {
    fs::read(path).unwrap()
}

fn trusting(authority: &Pki) -> Tls {
    Tls::new(&read(&authority.ca()), None).unwrap()
}

/// A server that speaks TLS with these files, and more arguments.
async fn start(files: &(PathBuf, PathBuf), more: &[&str]) -> Server {
    let chain = format!("ssl_chain_cert={}", files.0.display());
    let key = format!("ssl_key={}", files.1.display());
    Server::start(&[&["-Z", "-o", &chain, "-o", &key], more].concat()).await.unwrap()
}

async fn start_mutual(authorities: &Authorities) -> Server {
    let ca = format!("ssl_ca_cert={}", authorities.ours.ca().display());
    start(&authorities.server_files(), &["-o", &ca, "-o", "ssl_verify_mode=2"]).await
}

async fn connect(server: &Server, tls: Tls) -> Result<Connection<Stream>> {
    endpoint(server.address()).with_tls(tls).connect().await
}

/// Under TLS 1.3 a server refuses a client's certificate only after the client believes that all is well.
async fn talk(server: &Server, tls: Tls) -> Result<String> {
    connect(server, tls).await?.version().await
}

#[tokio::test]
async fn a_server_that_our_authority_vouches_for_is_trusted() {
    let authorities = Authorities::new();
    let server = start(&authorities.server_files(), &[]).await;
    talk(&server, trusting(&authorities.ours)).await.unwrap();
}

#[tokio::test]
async fn the_name_in_the_certificate_counts() {
    let authorities = Authorities::new();
    let server = start(&authorities.server_files(), &[]).await;
    let named = |name| trusting(&authorities.ours).with_server_name(name).unwrap();
    talk(&server, named("cache.test")).await.unwrap();
    let error = talk(&server, named("other.test")).await.unwrap_err();
    assert!(matches!(&error, Error::Tls(rustls::Error::InvalidCertificate(_))), "{error}");
}

#[tokio::test]
async fn a_server_of_another_authority_is_not_trusted() {
    let authorities = Authorities::new();
    let server = start(&authorities.server_files(), &[]).await;
    let error = connect(&server, trusting(&authorities.other)).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Untrusted, "{error}");
}

#[tokio::test]
async fn an_expired_certificate_is_not_trusted() {
    let authorities = Authorities::new();
    let server = start(&authorities.ours.expired_server("expired").unwrap(), &[]).await;
    let error = connect(&server, trusting(&authorities.ours)).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Untrusted, "{error}");
    assert!(error.to_string().contains("xpired"), "{error}");
}

#[tokio::test]
async fn a_client_whose_certificate_our_authority_signed_gets_in() {
    let authorities = Authorities::new();
    let server = start_mutual(&authorities).await;
    talk(&server, authorities.tls_shown_by(&authorities.ours)).await.unwrap();
}

#[tokio::test]
async fn a_client_without_a_certificate_or_with_an_untrusted_one_stays_out() {
    let authorities = Authorities::new();
    let server = start_mutual(&authorities).await;
    for tls in [trusting(&authorities.ours), authorities.tls_shown_by(&authorities.other)] {
        let error = talk(&server, tls).await.unwrap_err();
        assert!(matches!(error.class(), ErrorClass::Untrusted | ErrorClass::Closed), "{error}");
    }
    talk(&server, authorities.tls_shown_by(&authorities.ours)).await.expect("the server goes on");
}

#[tokio::test]
async fn plaintext_at_a_door_for_tls_is_refused() {
    let authorities = Authorities::new();
    let server = start(&authorities.server_files(), &[]).await;
    let error = endpoint(server.address()).connect().await.unwrap().version().await.unwrap_err();
    assert!(matches!(error.class(), ErrorClass::Closed | ErrorClass::Protocol), "{error}");
}

#[tokio::test]
async fn tls_at_a_door_for_plaintext_ends() {
    let authorities = Authorities::new();
    let server = Server::start(&[]).await.unwrap();
    // The server takes the greeting for the beginning of a line and waits for its end.
    let hasty = endpoint(server.address()).with_tls(trusting(&authorities.ours)).with_deadline(SHORT_TIMEOUT);
    let error = hasty.connect().await.unwrap_err();
    assert!(matches!(error.class(), ErrorClass::Timeout | ErrorClass::Untrusted | ErrorClass::Closed), "{error}");
}

#[tokio::test]
async fn a_renewed_certificate_is_shown_without_a_restart() {
    let authorities = Authorities::new();
    let files = authorities.ours.expired_server("renewed").unwrap();
    let listener = |address: SocketAddr| Endpoint::new(address.to_string()).with_deadline(super::DEADLINE);
    let chain = format!("ssl_chain_cert={}", files.0.display());
    let key = format!("ssl_key={}", files.1.display());
    let server = Server::listening(&["", "notls:"], &["-Z", "-o", &chain, "-o", &key]).await.unwrap();
    assert_eq!(talk(&server, trusting(&authorities.ours)).await.unwrap_err().class(), ErrorClass::Untrusted);
    authorities.ours.server("renewed", &[], &["127.0.0.1".parse().unwrap()]).unwrap();
    let mut inside = listener(server.addresses()[1]).connect().await.unwrap();
    inside.refresh_certs().await.unwrap();
    wait::until("the new certificate", 300, async || {
        talk(&server, trusting(&authorities.ours)).await.map_err(|e| e.to_string())
    })
    .await
    .unwrap();
    inside.version().await.expect("its connections stay");
}

#[tokio::test]
async fn tls_and_a_login_go_together() {
    let authorities = Authorities::new();
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), "ann:secret\n").unwrap();
    let server = start(&authorities.server_files(), &["-Y", file.path().to_str().unwrap()]).await;
    let secure = endpoint(server.address()).with_tls(trusting(&authorities.ours));
    assert!(matches!(secure.connect().await.unwrap().version().await.unwrap_err(), Error::LoginRequired));
    let credentials = memcached_wire::Credentials::new("ann", "secret").unwrap();
    secure.with_credentials(credentials).connect().await.unwrap().version().await.unwrap();
}
