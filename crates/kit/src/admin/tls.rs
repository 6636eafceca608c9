//! The certificate that a server shows: made at the start, or read from files and read again when they change.
//! Files are looked at now and then: the kubelet swaps symlinks, which file notifications miss.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ResolvesServerCertUsingSni, WantsServerCert};
use rustls::{ConfigBuilder, ServerConfig};

use crate::shutdown::Shutdown;
use crate::telemetry::Chain;

/// How often files are read again.
const RELOAD_INTERVAL: Duration = Duration::from_secs(30);

/// Where a server's certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CertificateSource {
    /// Made at the start, signed by itself, for these names.
    SelfSigned {
        /// Host names and addresses it is for.
        names: Vec<String>,
    },
    /// In PEM files, which may be replaced at any time.
    Files {
        /// The certificate, followed by its chain.
        certificate: PathBuf,
        /// Its private key.
        key: PathBuf,
    },
}

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file cannot be read.
    #[error("failed to read {path}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file is not what it should be.
    #[error("failed to understand {path}")]
    Pem {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: pem::Error,
    },
    /// No certificate could be made.
    #[error("failed to make a certificate")]
    Make(#[from] rcgen::Error),
    /// Certificate and key do not fit, or are not supported.
    #[error("failed to use the certificate")]
    Use(#[from] rustls::Error),
}

impl CertificateSource {
    /// A configuration to serve with, kept up to date until the shutdown.
    pub(crate) fn serve(self, shutdown: Shutdown) -> Result<RustlsConfig, TlsError> {
        match self {
            Self::SelfSigned { names } => {
                let made = rcgen::generate_simple_self_signed(names)?;
                let key = PrivatePkcs8KeyDer::from(made.signing_key.serialize_der());
                Ok(RustlsConfig::from_config(Arc::new(server_config(vec![made.cert.der().clone()], key.into())?)))
            }
            Self::Files { certificate, key } => {
                let mut files = Files { certificate, key, text: None };
                let config = RustlsConfig::from_config(Arc::new(files.read()?));
                tokio::spawn({
                    let config = config.clone();
                    async move {
                        tokio::select! {
                            () = shutdown.requested() => {}
                            () = files.follow(&config) => {}
                        }
                    }
                });
                Ok(config)
            }
        }
    }
}

/// Two files, and what was last read from them.
struct Files {
    certificate: PathBuf,
    key: PathBuf,
    text: Option<(Vec<u8>, Vec<u8>)>,
}

impl Files {
    async fn follow(&mut self, config: &RustlsConfig) {
        loop {
            tokio::time::sleep(RELOAD_INTERVAL).await;
            self.refresh(config);
        }
    }

    /// Takes over what the files say now, if that is new and good; else what was good stays.
    fn refresh(&mut self, config: &RustlsConfig) -> bool {
        let before = self.text.clone();
        match self.read() {
            Ok(_) if self.text == before => false,
            Ok(new) => {
                config.reload_from_config(Arc::new(new));
                tracing::info!(certificate = %self.certificate.display(), "reloaded the certificate");
                true
            }
            Err(error) => {
                tracing::warn!(error = %Chain(&error), "kept the old certificate");
                false
            }
        }
    }

    fn read(&mut self) -> Result<ServerConfig, TlsError> {
        let read = |path: &PathBuf| fs::read(path).map_err(|source| TlsError::Read { path: path.clone(), source });
        let (certificate, key) = (read(&self.certificate)?, read(&self.key)?);
        let pem = |path: &PathBuf| {
            let path = path.clone();
            |source| TlsError::Pem { path, source }
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&certificate).collect();
        let parsed = PrivateKeyDer::from_pem_slice(&key).map_err(pem(&self.key))?;
        let config = server_config(chain.map_err(pem(&self.certificate))?, parsed)?;
        self.text = Some((certificate, key));
        Ok(config)
    }
}

/// A configuration that shows one certificate, over HTTP/1.1.
pub(crate) fn server_config(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
) -> Result<ServerConfig, rustls::Error> {
    Ok(over_http(builder()?.with_single_cert(chain, key)?))
}

/// A configuration that turns everybody away: for the time before there is a certificate.
pub(crate) fn blank_config() -> Result<ServerConfig, rustls::Error> {
    Ok(over_http(builder()?.with_cert_resolver(Arc::new(ResolvesServerCertUsingSni::new()))))
}

fn builder() -> Result<ConfigBuilder<ServerConfig, WantsServerCert>, rustls::Error> {
    // The provider is named, so that it does not matter what the process has installed as its default.
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    Ok(builder.with_safe_default_protocol_versions()?.with_no_client_auth())
}

fn over_http(mut config: ServerConfig) -> ServerConfig {
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    config
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Fixture {
        _dir: tempfile::TempDir,
        files: Files,
    }

    impl Fixture {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            let (certificate, key) = (dir.path().join("tls.crt"), dir.path().join("tls.key"));
            let fixture = Self { _dir: dir, files: Files { certificate, key, text: None } };
            fixture.replace();
            fixture
        }

        fn replace(&self) {
            let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
            fs::write(&self.files.certificate, made.cert.pem()).unwrap();
            fs::write(&self.files.key, made.signing_key.serialize_pem()).unwrap();
        }
    }

    #[test]
    fn new_files_are_taken_over_and_unchanged_ones_are_left_alone() {
        let mut fixture = Fixture::new();
        let config = RustlsConfig::from_config(Arc::new(fixture.files.read().unwrap()));
        assert!(!fixture.files.refresh(&config));
        fixture.replace();
        let before = config.get_inner();
        assert!(fixture.files.refresh(&config));
        assert!(!Arc::ptr_eq(&before, &config.get_inner()));
    }

    #[test]
    fn a_pair_that_does_not_fit_never_replaces_a_good_one() {
        let mut fixture = Fixture::new();
        let config = RustlsConfig::from_config(Arc::new(fixture.files.read().unwrap()));
        let before = config.get_inner();
        let good = fs::read(&fixture.files.certificate).unwrap();
        fixture.replace();
        fs::write(&fixture.files.certificate, good).unwrap();
        assert!(!fixture.files.refresh(&config), "half of a replacement");
        fs::write(&fixture.files.certificate, "nonsense").unwrap();
        assert!(!fixture.files.refresh(&config));
        assert!(Arc::ptr_eq(&before, &config.get_inner()));
        fixture.replace();
        assert!(fixture.files.refresh(&config), "it heals");
    }

    #[test]
    fn the_error_names_the_file() {
        let mut fixture = Fixture::new();
        fs::remove_file(&fixture.files.key).unwrap();
        let error = fixture.files.read().unwrap_err().to_string();
        assert!(error.contains("tls.key"), "{error}");
    }
}
