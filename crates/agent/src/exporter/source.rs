//! Where memcached is and how to get in, from files that may change: they are read at every new connection.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use memcached_wire::{Connection, Credentials, Endpoint, Identity, Limits, Stream, Tls};

use crate::args::Target;

/// Statistics of any memcached fit many times; nothing else is asked for.
const LIMITS: Limits = Limits { line: 8 << 10, value: 0, reply: 1 << 20 };

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// A file is not there, or not ours to read.
    #[error("failed to read {}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file does not hold what it should.
    #[error("failed to use {}", path.display())]
    Content {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        source: memcached_wire::Error,
    },
    /// memcached is not there, or does not let us in.
    #[error(transparent)]
    Connect(#[from] memcached_wire::Error),
}

impl SourceError {
    /// Whether somebody has answered, if only to send us away: whoever hangs does not.
    pub fn is_sign_of_life(&self) -> bool {
        use memcached_wire::Error;
        match self {
            // That is our own trouble, and tells nothing about memcached.
            Self::File { .. } | Self::Content { .. } => true,
            Self::Connect(error) => !matches!(error, Error::Connect { .. } | Error::Timeout { .. }),
        }
    }

    /// Whether memcached is up, and we are not let in.
    pub fn is_refusal(&self) -> bool {
        use memcached_wire::Error;
        let Self::Connect(error) = self else { return false };
        matches!(error, Error::LoginRefused | Error::LoginRequired | Error::Tls(_))
    }
}

/// A memcached, and the files that it takes to get in.
#[derive(Debug)]
pub struct Source {
    endpoint: Endpoint,
    credentials: Option<PathBuf>,
    tls: Option<TlsFiles>,
    /// What it took to get in last.
    proven: Mutex<Option<Endpoint>>,
}

#[derive(Debug)]
struct TlsFiles {
    authorities: PathBuf,
    identity: Option<(PathBuf, PathBuf)>,
    server_name: Option<String>,
}

impl Source {
    /// As the command line says.
    pub fn of(target: &Target) -> Self {
        let files = |authorities: &PathBuf| TlsFiles {
            authorities: authorities.clone(),
            identity: target.tls_cert_file.clone().zip(target.tls_key_file.clone()),
            server_name: target.tls_server_name.clone(),
        };
        Self {
            endpoint: Endpoint::new(&target.memcached).with_limits(LIMITS).with_deadline(target.timeout),
            credentials: target.credentials_file.clone(),
            tls: target.tls_ca_file.as_ref().map(files),
            proven: Mutex::default(),
        }
    }

    /// A new connection, with what the files say now.
    pub async fn connect(&self) -> Result<Connection<Stream>, SourceError> {
        let mut endpoint = self.secured()?;
        if let Some(path) = &self.credentials {
            let text = String::from_utf8_lossy(&read(path)?).into_owned();
            let content = |source| SourceError::Content { path: path.clone(), source };
            endpoint = endpoint.with_credentials(Credentials::first_of(&text).map_err(content)?);
        }
        let connection = endpoint.connect().await?;
        *self.proven.lock().unwrap_or_else(PoisonError::into_inner) = Some(endpoint);
        Ok(connection)
    }

    /// The same; where the files are not what memcached has read, with those that it has let us in with before.
    pub async fn connect_anyhow(&self) -> Result<Connection<Stream>, SourceError> {
        let error = match self.connect().await {
            Err(error) if error.is_sign_of_life() => error,
            outcome => return outcome,
        };
        let proven = self.proven.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match proven {
            Some(endpoint) => endpoint.connect().await.map_err(|_| error),
            None => Err(error),
        }
    }

    /// A new connection of somebody else.
    pub async fn connect_as(&self, credentials: Credentials) -> Result<Connection<Stream>, SourceError> {
        Ok(self.secured()?.with_credentials(credentials).connect().await?)
    }

    fn secured(&self) -> Result<Endpoint, SourceError> {
        let endpoint = self.endpoint.clone();
        Ok(match &self.tls {
            Some(files) => endpoint.with_tls(files.load()?),
            None => endpoint,
        })
    }

    /// Where it is.
    pub fn address(&self) -> &str {
        self.endpoint.address()
    }
}

impl TlsFiles {
    fn load(&self) -> Result<Tls, SourceError> {
        let authorities = read(&self.authorities)?;
        let identity = match &self.identity {
            None => None,
            Some((certificate, key)) => Some((read(certificate)?, read(key)?)),
        };
        let shown = identity.as_ref().map(|(certificates, key)| Identity { certificates, key });
        // Which of the files is wrong, the error itself says.
        let path = self.identity.as_ref().map_or(&self.authorities, |(certificate, _)| certificate);
        let content = |source| SourceError::Content { path: path.clone(), source };
        let tls = Tls::new(&authorities, shown).map_err(content)?;
        match &self.server_name {
            None => Ok(tls),
            Some(name) => Ok(tls.with_server_name(name)?),
        }
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    fs::read(path).map_err(|source| SourceError::File { path: path.to_owned(), source })
}
