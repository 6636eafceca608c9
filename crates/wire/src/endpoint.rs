//! Where a server is and how to get in: address, TLS, login, all within one deadline.

use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::timeout;

use crate::codec::Limits;
use crate::connection::Connection;
use crate::credentials::Credentials;
use crate::error::{Error, Result};
use crate::tls::Tls;

const DEADLINE: Duration = Duration::from_secs(1);

/// Anything that carries a conversation.
pub trait Transport: AsyncRead + AsyncWrite + Unpin + Send {}

impl<T: AsyncRead + AsyncWrite + Unpin + Send> Transport for T {}

/// A stream, plain or TLS.
pub type Stream = Box<dyn Transport>;

/// A server, and what it takes to talk to it.
#[derive(Debug, Clone)]
pub struct Endpoint {
    address: String,
    tls: Option<Tls>,
    credentials: Option<Credentials>,
    limits: Limits,
    deadline: Duration,
}

impl Endpoint {
    /// The server at `host:port`, in plaintext and without a login; a second for each request.
    pub fn new(address: impl Into<String>) -> Self {
        let (tls, credentials) = (None, None);
        Self { address: address.into(), tls, credentials, limits: Limits::default(), deadline: DEADLINE }
    }

    /// Speaks TLS.
    #[must_use]
    pub fn with_tls(self, tls: Tls) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Logs in first.
    #[must_use]
    pub fn with_credentials(self, credentials: Credentials) -> Self {
        Self { credentials: Some(credentials), ..self }
    }

    /// Takes answers up to these bounds.
    #[must_use]
    pub fn with_limits(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Waits so long to get in, and so long for each answer.
    #[must_use]
    pub fn with_deadline(self, deadline: Duration) -> Self {
        Self { deadline, ..self }
    }

    /// Where it is.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Gets in: connects, shakes hands, logs in.
    pub async fn connect(&self) -> Result<Connection<Stream>> {
        let deadline = self.deadline;
        let connected = timeout(deadline, self.get_in()).await;
        connected.unwrap_or(Err(Error::Timeout { request: "connect", deadline }))
    }

    async fn get_in(&self) -> Result<Connection<Stream>> {
        let refused = |source| Error::Connect { address: self.address.clone(), source };
        let stream = TcpStream::connect(&self.address).await.map_err(refused)?;
        // Requests are small and each waits for its answer.
        stream.set_nodelay(true).map_err(refused)?;
        let stream: Stream = match &self.tls {
            None => Box::new(stream),
            Some(tls) => Box::new(tls.wrap(self.host(), stream).await?),
        };
        let mut connection = Connection::new(stream, self.limits, self.deadline);
        if let Some(credentials) = &self.credentials {
            connection.login(credentials).await?;
        }
        Ok(connection)
    }

    fn host(&self) -> &str {
        self.address.rsplit_once(':').map_or(&*self.address, |(host, _)| host)
    }
}
