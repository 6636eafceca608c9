//! Certificates that somebody else keeps in a directory, for example cert-manager in a mounted Secret: served, and
//! registered with the `ca.crt` beside them. A new authority is trusted before a certificate of its is served.

use std::fs;
use std::io;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum_server::tls_rustls::RustlsConfig;
use jiff::Timestamp;
use kube::Client;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{RootCertStore, ServerConfig};
use tokio::sync::mpsc::unbounded_channel;

use super::registration::Registrations;
use super::state::State;
use super::trust::Trust;
use super::turn::{self, CertificateError, Turn};
use super::x509::{self, Certificate};
use super::{Mounted, Serving};
use crate::admin::{TlsError, server_config};
use crate::lease::Leadership;
use crate::shutdown::Shutdown;
use crate::task::Tasks;
use crate::telemetry::Chain;

/// How often the files are read: the kubelet swaps symlinks, which file notifications miss.
const INTERVAL: Duration = Duration::from_secs(30);

/// What the files say.
#[derive(Clone)]
struct Files {
    chain: Vec<CertificateDer<'static>>,
    config: Arc<ServerConfig>,
    /// Until when the certificate is good.
    expiry: Timestamp,
    authorities: Vec<Certificate>,
}

impl Files {
    fn read(directory: &Path) -> Result<Self, TlsError> {
        let (certificate, key, authority) = (directory.join("tls.crt"), directory.join("tls.key"), ca(directory));
        let pem = |path: &Path| {
            let path = path.to_owned();
            |source| TlsError::Pem { path, source }
        };
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&read(&certificate)?).collect();
        let chain = chain.map_err(pem(&certificate))?;
        let parsed = PrivateKeyDer::from_pem_slice(&read(&key)?).map_err(pem(&key))?;
        let config = Arc::new(server_config(chain.clone(), parsed)?);
        let authorities = match read(&authority) {
            Ok(text) => Certificate::read_annotated(&String::from_utf8_lossy(&text))
                .ok_or(pem::Error::NoItemsFound)
                .map_err(pem(&authority))?,
            Err(TlsError::Read { source, .. }) if source.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(error),
        };
        let expiry = chain.first().and_then(x509::expiry).unwrap_or(Timestamp::MIN);
        Ok(Self { chain, config, expiry, authorities })
    }

    /// Whether a caller that knows these authorities accepts the certificate under that name.
    fn verify(&self, host: &str) -> Result<(), rustls::Error> {
        let mut roots = RootCertStore::empty();
        for authority in &self.authorities {
            roots.add(authority.der.clone())?;
        }
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let verifier = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), provider);
        let verifier = verifier.build().map_err(|error| rustls::Error::General(error.to_string()))?;
        let name = ServerName::try_from(host).map_err(|error| rustls::Error::General(error.to_string()))?;
        let (leaf, rest) = self.chain.split_first().ok_or(rustls::Error::NoCertificatesPresented)?;
        verifier.verify_server_cert(leaf, rest, &name, &[], UnixTime::now()).map(drop)
    }
}

fn ca(directory: &Path) -> std::path::PathBuf {
    directory.join("ca.crt")
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read { path: path.to_owned(), source })
}

/// What serves with the files of a directory.
pub(super) struct Mount {
    config: Mounted,
    leadership: Leadership,
    registrations: Registrations,
    trust: Trust,
    /// What was last read and is good.
    found: Files,
    served: Files,
    /// Authorities that are no longer in `ca.crt`, and since when: other replicas may serve with them for a while.
    previous: Vec<(Certificate, Timestamp)>,
    tls: RustlsConfig,
    state: State,
}

impl Mount {
    pub(super) fn start(
        config: Mounted,
        client: Client,
        leadership: Leadership,
        tasks: &Tasks,
        shutdown: Shutdown,
    ) -> Result<Serving, TlsError> {
        let found = Files::read(&config.directory)?;
        let tls = RustlsConfig::from_config(Arc::clone(&found.config));
        let serving = Serving { tls: tls.clone(), is_ready: Arc::default() };
        let mut state = State::new(Arc::clone(&serving.is_ready), config.times.reach);
        let (all, linger) = (config.registrations.clone(), config.times.linger);
        let registrations = Registrations::new(client, &config.manager, all, linger);
        if registrations.is_empty() {
            state.set_ready(Timestamp::now());
        }
        let (sender, mut wake) = unbounded_channel();
        let follow = registrations.clone().follow(sender);
        let (trust, served, previous, watched) = (Trust::default(), found.clone(), Vec::new(), leadership.clone());
        let mut mount = Self { config, leadership, registrations, trust, found, served, previous, tls, state };
        let end = shutdown.clone();
        tasks.spawn_until("webhook certificate", shutdown, async move {
            tokio::select! {
                () = turn::run(&mut mount, &watched, &mut wake) => {}
                () = follow => {}
                () = end.requested() => {}
            }
        });
        Ok(serving)
    }

    /// Reads the files again; what is not good never replaces what is.
    fn refresh(&mut self, now: Timestamp) {
        match Files::read(&self.config.directory) {
            Ok(files) if self.is_good(&files, now) => self.found = files,
            Ok(_) => tracing::warn!(host = self.config.host, "kept the old certificate: ca.crt refuses the new one"),
            Err(error) => tracing::warn!(error = %Chain(&error), "kept the old certificate"),
        }
        let (found, served) = (&self.found.authorities, &self.served.authorities);
        self.previous.retain(|(previous, missed)| {
            let is_late = missed.checked_add(self.config.times.overlap).is_ok_and(|end| now >= end);
            !found.contains(previous) && (!is_late || served.contains(previous))
        });
        for authority in served.iter().filter(|authority| !found.contains(authority)) {
            if !self.previous.iter().any(|(previous, _)| previous == authority) {
                self.previous.push((authority.clone(), now));
            }
        }
    }

    /// Whether these would be accepted by whoever calls; once the old ones have expired, anything is better.
    fn is_good(&self, files: &Files, now: Timestamp) -> bool {
        let is_ours_to_tell = !self.registrations.is_empty() && !files.authorities.is_empty();
        !is_ours_to_tell || now >= self.served.expiry || files.verify(&self.config.host).is_ok()
    }

    /// Registers the webhooks, if the API server would accept the certificate; says when to come again.
    async fn register(&self, now: Timestamp) -> Result<Timestamp, CertificateError> {
        if self.registrations.is_empty() || !self.leadership.is_leader() {
            return Ok(Timestamp::MAX);
        }
        if self.found.authorities.is_empty() {
            return Err(CertificateError::NoAuthority(ca(&self.config.directory)));
        }
        let host = &self.config.host;
        self.found.verify(host).map_err(|source| CertificateError::Untrusted { host: host.clone(), source })?;
        let previous = self.previous.iter().map(|(authority, _)| authority);
        let bundle: String = self.found.authorities.iter().chain(previous).map(|one| one.pem.as_str()).collect();
        self.registrations.publish(&bundle, self.state.is_callable(now), &self.leadership).await
    }

    /// Serves with what was found, if whoever calls trusts it; else says when.
    fn serve(&mut self, now: Timestamp) -> Timestamp {
        if self.served.chain == self.found.chain {
            return Timestamp::MAX;
        }
        let settled = self.trusted_since().and_then(|since| since.checked_add(self.config.times.settle).ok());
        // An expired certificate is not worth waiting any longer.
        let at = settled.unwrap_or(Timestamp::MAX).min(self.served.expiry);
        if now < at && !self.is_same_authority() {
            return at;
        }
        self.tls.reload_from_config(Arc::clone(&self.found.config));
        self.served = self.found.clone();
        tracing::info!(directory = %self.config.directory.display(), "reloaded the certificate");
        Timestamp::MAX
    }

    /// Whether nobody has to be told of the new certificate.
    fn is_same_authority(&self) -> bool {
        self.registrations.is_empty() || self.served.authorities == self.found.authorities
    }

    /// Since when everybody who calls trusts all authorities that were found.
    fn trusted_since(&self) -> Option<Timestamp> {
        let since: Option<Vec<_>> = self.found.authorities.iter().map(|one| self.trust.since(&one.der)).collect();
        since?.into_iter().max()
    }
}

impl Turn for Mount {
    async fn turn(&mut self, now: Timestamp) -> Result<Timestamp, CertificateError> {
        self.refresh(now);
        let registered = self.register(now).await;
        // Writing may have taken a while, and trust counts from its end.
        let (asked, now) = (now, Timestamp::now());
        let authorities = self.found.authorities.iter().map(|authority| &authority.der);
        self.trust.observe(now, authorities, |authority| self.registrations.trust(authority));
        let swap = self.serve(now);
        if self.registrations.is_known() && (self.found.authorities.is_empty() || self.trusted_since().is_some()) {
            self.state.set_ready(now);
        }
        let next = now.checked_add(INTERVAL).unwrap_or(Timestamp::MAX);
        // As it was when that was asked: what became callable meanwhile has not been registered.
        let register = self.state.callable_at(asked).unwrap_or(Timestamp::MAX);
        Ok(next.min(swap).min(register).min(registered?))
    }
}
