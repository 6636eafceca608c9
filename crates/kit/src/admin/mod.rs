//! The servers beside the work: health and readiness for the kubelet, metrics for those who may see them.
//! They listen before they are handed out, so that a taken port is an error and not a log line.

mod access;
mod health;
mod scrape;
mod tls;

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::str::FromStr;
use std::time::Duration;

use axum::Router;
use axum_server::Handle;
use axum_server::tls_rustls::RustlsConfig;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::task::JoinHandle;

pub use access::{Access, AccessError, Permission};
pub use health::{Readiness, serve_health};
pub use scrape::{Protection, serve_metrics};
pub use tls::{CertificateSource, TlsError};
pub(crate) use tls::{blank_config, server_config};

use crate::shutdown::Shutdown;

/// How long requests that are under way at the shutdown may take.
const GRACE: Duration = Duration::from_secs(5);

/// How long a client may take to send the head of a request.
const HEADER_TIMEOUT: Duration = Duration::from_secs(10);

/// Where a server listens.
///
/// ```
/// use operator_kit::admin::BindAddress;
///
/// assert_eq!("0".parse(), Ok(BindAddress::Off));
/// assert_eq!(":8443".parse(), Ok(BindAddress::Every(8443)));
/// assert_eq!("127.0.0.1:8443".parse(), Ok(BindAddress::One("127.0.0.1:8443".to_owned())));
/// assert!("8443".parse::<BindAddress>().is_err());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BindAddress {
    /// Nowhere: `0`.
    Off,
    /// At a port of every address, IPv6 and IPv4: `:8443`.
    Every(u16),
    /// At one address: `127.0.0.1:8443`, `[::1]:8443`, `localhost:8443`.
    One(String),
}

/// This is no address to listen at.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither \"0\" (off) nor \"host:port\" nor \":port\"")]
pub struct InvalidAddress(String);

impl FromStr for BindAddress {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let invalid = || InvalidAddress(text.to_owned());
        if text == "0" {
            return Ok(Self::Off);
        }
        let (host, port) = text.rsplit_once(':').ok_or_else(invalid)?;
        let port = port.parse().map_err(|_| invalid())?;
        Ok(if host.is_empty() { Self::Every(port) } else { Self::One(text.to_owned()) })
    }
}

impl BindAddress {
    pub(crate) fn listen(&self) -> Result<Option<TcpListener>, AdminError> {
        let listener = match self {
            Self::Off => return Ok(None),
            // The IPv6 socket takes IPv4 as well; the other is for machines without IPv6.
            Self::Every(port) => {
                let every: [SocketAddr; 2] =
                    [(Ipv6Addr::UNSPECIFIED, *port).into(), (Ipv4Addr::UNSPECIFIED, *port).into()];
                TcpListener::bind(every.as_slice())
            }
            Self::One(address) => TcpListener::bind(address),
        };
        listener.map(Some).map_err(|source| AdminError::Listen { address: self.clone(), source })
    }
}

/// Why a server did not start, or ended early.
#[derive(Debug, thiserror::Error)]
pub enum AdminError {
    /// The address is taken, or not ours.
    #[error("failed to listen at {address:?}")]
    Listen {
        /// Where it should have been.
        address: BindAddress,
        /// What the system said.
        source: io::Error,
    },
    /// There is no certificate to serve with.
    #[error("failed to prepare the certificate")]
    Certificate(#[from] TlsError),
    /// The server ended without being told to.
    #[error("failed to go on serving")]
    Serve(#[source] io::Error),
}

/// A server that is listening; it ends with its shutdown token.
#[derive(Debug)]
pub struct Server {
    address: SocketAddr,
    task: JoinHandle<io::Result<()>>,
}

impl Server {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Says whether it still serves.
    pub(crate) fn liveness(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let task = self.task.abort_handle();
        move || !task.is_finished()
    }

    /// Waits for its end.
    pub async fn ended(self) -> Result<(), AdminError> {
        self.task.await.unwrap_or_else(|stopped| Err(io::Error::other(stopped))).map_err(AdminError::Serve)
    }
}

/// Serves until the shutdown.
pub(crate) fn start(
    listener: TcpListener,
    tls: Option<RustlsConfig>,
    app: Router,
    shutdown: Shutdown,
) -> io::Result<Server> {
    listener.set_nonblocking(true)?;
    let address = listener.local_addr()?;
    let handle = Handle::new();
    let app = app.into_make_service();
    tokio::spawn({
        let handle = handle.clone();
        async move {
            shutdown.requested().await;
            handle.graceful_shutdown(Some(GRACE));
        }
    });
    let task = if let Some(tls) = tls {
        let mut server = axum_server::from_tcp_rustls(listener, tls)?.handle(handle);
        limit(server.http_builder());
        tokio::spawn(server.serve(app))
    } else {
        let mut server = axum_server::from_tcp(listener)?.handle(handle);
        limit(server.http_builder());
        tokio::spawn(server.serve(app))
    };
    Ok(Server { address, task })
}

/// A client that connects and says nothing is not waited for; hyper needs a timer to notice.
fn limit(builder: &mut Builder<TokioExecutor>) {
    builder.http1().timer(TokioTimer::new()).header_read_timeout(HEADER_TIMEOUT);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_those_that_operators_are_used_to() {
        for one in ["0.0.0.0:8080", "[::1]:8080", "localhost:0"] {
            assert_eq!(one.parse(), Ok(BindAddress::One(one.to_owned())));
        }
        for wrong in ["", "1", "off", "host", "host:", "host:port", ":99999", ":-1"] {
            assert_eq!(wrong.parse::<BindAddress>(), Err(InvalidAddress(wrong.to_owned())));
        }
    }

    #[test]
    fn off_listens_nowhere_and_a_taken_port_is_an_error() {
        assert!(BindAddress::Off.listen().unwrap().is_none());
        let first = BindAddress::Every(0).listen().unwrap().unwrap();
        let taken = BindAddress::Every(first.local_addr().unwrap().port());
        assert!(matches!(taken.listen(), Err(AdminError::Listen { .. })));
    }
}
