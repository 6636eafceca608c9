//! TLS towards a server: whom to trust, and what to show.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::error::{Error, Result};

/// The certificate that a client shows, and its key, both in PEM.
#[derive(Clone, Copy)]
pub struct Identity<'a> {
    /// The certificate, and those that lead to its authority.
    pub certificates: &'a [u8],
    /// The key.
    pub key: &'a [u8],
}

/// How to speak TLS.
#[derive(Debug, Clone)]
pub struct Tls {
    config: Arc<ClientConfig>,
    server_name: Option<ServerName<'static>>,
}

impl Tls {
    /// Trusts servers whose certificate one of these authorities (PEM) has signed.
    pub fn new(authorities: &[u8], identity: Option<Identity<'_>>) -> Result<Self> {
        let mut roots = RootCertStore::empty();
        for certificate in certificates(authorities)? {
            roots.add(certificate).map_err(Error::Tls)?;
        }
        let builder = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(Error::Tls)?
            .with_root_certificates(roots);
        let config = match identity {
            None => builder.with_no_client_auth(),
            Some(Identity { certificates: chain, key }) => {
                let key = PrivateKeyDer::from_pem_slice(key).map_err(|e| Error::Invalid(format!("no key: {e}")))?;
                builder.with_client_auth_cert(certificates(chain)?, key).map_err(Error::Tls)?
            }
        };
        Ok(Self { config: Arc::new(config), server_name: None })
    }

    /// Expects this name in the server's certificate instead of the host that is connected to.
    pub fn with_server_name(self, name: &str) -> Result<Self> {
        Ok(Self { server_name: Some(server_name(name)?), ..self })
    }

    /// Shakes hands over a stream that is open already.
    pub async fn wrap(&self, host: &str, stream: TcpStream) -> Result<TlsStream<TcpStream>> {
        let name = match &self.server_name {
            Some(name) => name.clone(),
            None => server_name(host)?,
        };
        TlsConnector::from(self.config.clone()).connect(name, stream).await.map_err(Error::of_stream)
    }
}

fn server_name(name: &str) -> Result<ServerName<'static>> {
    // An IPv6 address has brackets before its port, and none in a certificate.
    let name = name.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(name.to_owned()).map_err(|_| Error::Invalid(format!("{name:?} is no name of a server")))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>> {
    let all: Vec<_> = CertificateDer::pem_slice_iter(pem)
        .collect::<Result<_, _>>()
        .map_err(|e| Error::Invalid(format!("no certificate: {e}")))?;
    if all.is_empty() {
        return Err(Error::Invalid("there is no certificate in this PEM".into()));
    }
    Ok(all)
}

/// The first certificate of a file in PEM, as it is sent.
pub fn first_certificate(pem: &[u8]) -> Result<Vec<u8>> {
    let first = certificates(pem)?.into_iter().next();
    first.map(|certificate| certificate.to_vec()).ok_or_else(|| Error::Invalid("there is no certificate".into()))
}

/// The certificate that whoever listens at `address` shows. It is not believed, and nothing is said to it.
pub async fn shown_certificate(address: &str) -> Result<Vec<u8>> {
    let onlooker = Arc::new(Onlooker { provider: rustls::crypto::ring::default_provider(), shown: Mutex::default() });
    let config = ClientConfig::builder_with_provider(Arc::new(onlooker.provider.clone()))
        .with_safe_default_protocol_versions()
        .map_err(Error::Tls)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::clone(&onlooker) as Arc<dyn ServerCertVerifier>)
        .with_no_client_auth();
    let look = async {
        let refused = |source| Error::Connect { address: address.to_owned(), source };
        let stream = TcpStream::connect(address).await.map_err(refused)?;
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        // One that wants a certificate of ours has shown its own before it refuses us.
        TlsConnector::from(Arc::new(config)).connect(server_name(host)?, stream).await.map_err(Error::of_stream)
    };
    let looked = timeout(LOOK, look).await;
    let shown = onlooker.shown.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (shown, looked) {
        (Some(shown), _) => Ok(shown),
        (None, Ok(Err(error))) => Err(error),
        (None, _) => Err(Error::Timeout { request: "handshake", deadline: LOOK }),
    }
}

/// How long a handshake may take.
const LOOK: Duration = Duration::from_secs(2);

/// Notes what it is shown.
#[derive(Debug)]
struct Onlooker {
    provider: CryptoProvider,
    shown: Mutex<Option<Vec<u8>>>,
}

impl ServerCertVerifier for Onlooker {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        *self.shown.lock().unwrap_or_else(PoisonError::into_inner) = Some(end_entity.to_vec());
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_certificate_is_refused() {
        for pem in [&b""[..], b"hello", b"-----BEGIN CERTIFICATE-----\nAA\n", &[0xff; 100]] {
            assert!(Tls::new(pem, None).is_err(), "{pem:?}");
        }
    }

    #[test]
    fn addresses_are_names_too() {
        for name in ["127.0.0.1", "[::1]", "cache.shop.svc"] {
            assert!(server_name(name).is_ok(), "{name}");
        }
        assert!(server_name("not a name").is_err());
    }
}
