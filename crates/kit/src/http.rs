//! Asks a pod something over HTTP: one short question, one short answer, and never a long wait.

use std::net::IpAddr;
use std::time::Duration;

use http_body_util::{BodyExt, Empty, Limited};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;

/// How long an answer may take.
const TIMEOUT: Duration = Duration::from_secs(2);

/// How long an answer may be, in bytes.
const LONGEST: usize = 256 * 1024;

/// Asks; clones share what they know.
#[derive(Debug, Clone)]
pub struct HttpClient {
    client: Client<HttpConnector, Empty<&'static [u8]>>,
}

impl Default for HttpClient {
    fn default() -> Self {
        let mut connector = HttpConnector::new();
        connector.set_connect_timeout(Some(TIMEOUT));
        // Connections are not kept: a pod is asked while something changes, and then not for weeks.
        Self { client: Client::builder(TokioExecutor::new()).pool_max_idle_per_host(0).build(connector) }
    }
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum GetError {
    /// The address makes no URL.
    #[error("no address")]
    Address(#[from] http::uri::InvalidUri),
    /// Nobody answers there, or not for long.
    #[error("no answer: {0}")]
    Connection(#[from] hyper_util::client::legacy::Error),
    /// The answer is cut off, or too long.
    #[error("the answer cannot be read: {0}")]
    Body(Box<dyn std::error::Error + Send + Sync>),
    /// The answer says no.
    #[error("the answer is {0}")]
    Status(http::StatusCode),
    /// It takes too long.
    #[error("no answer within {} s", TIMEOUT.as_secs())]
    Timeout,
}

impl HttpClient {
    /// What an address answers at a path.
    pub async fn get(&self, address: IpAddr, port: u16, path: &str) -> Result<Vec<u8>, GetError> {
        let host = match address {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        };
        let uri = format!("http://{host}:{port}{path}").parse()?;
        let answer = async {
            let response = self.client.get(uri).await?;
            let status = response.status();
            if !status.is_success() {
                return Err(GetError::Status(status));
            }
            let body = Limited::new(response.into_body(), LONGEST).collect().await.map_err(GetError::Body)?;
            Ok(body.to_bytes().to_vec())
        };
        tokio::time::timeout(TIMEOUT, answer).await.unwrap_or(Err(GetError::Timeout))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};

    use super::*;

    async fn asked(answer: &'static [u8]) -> Result<Vec<u8>, GetError> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut question = [0; 1024];
            let length = stream.read(&mut question).unwrap();
            stream.write_all(answer).unwrap();
            String::from_utf8_lossy(&question[..length]).into_owned()
        });
        let answer = HttpClient::default().get(Ipv4Addr::LOCALHOST.into(), port, "/status").await;
        assert!(server.join().unwrap().starts_with("GET /status HTTP/1.1"));
        answer
    }

    #[tokio::test]
    async fn an_answer_is_read_and_a_refusal_is_told() {
        let good = asked(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").await;
        assert_eq!(good.unwrap(), b"{}");
        let refused = asked(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n").await;
        assert!(matches!(refused, Err(GetError::Status(status)) if status == 503));
        let endless = asked(b"HTTP/1.1 200 OK\r\ncontent-length: 999999999\r\n\r\n").await;
        assert!(matches!(endless, Err(GetError::Body(_))));
    }

    #[tokio::test]
    async fn nobody_there_is_an_error_and_no_wait() {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        drop(listener);
        let answer = HttpClient::default().get(Ipv4Addr::LOCALHOST.into(), port, "/status").await;
        assert!(matches!(answer, Err(GetError::Connection(_))));
    }
}
