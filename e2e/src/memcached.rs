//! A few words of memcached's text protocol over a real socket.

use std::net::SocketAddr;
use std::time::Duration;

use testbed::{Error, Node, Result};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(10);

/// A connection to a server.
pub struct Connection {
    stream: BufReader<TcpStream>,
}

impl Connection {
    /// Opens a socket from the host to a pod or Service address.
    pub async fn open(node: &Node, address: SocketAddr) -> Result<Self> {
        Ok(Self { stream: BufReader::new(node.connect(address).await?) })
    }

    /// Stores a value.
    pub async fn set(&mut self, key: &str, value: &str) -> Result<()> {
        self.send(&format!("set {key} 0 0 {}\r\n{value}\r\n", value.len())).await?;
        match self.line().await?.as_str() {
            "STORED" => Ok(()),
            other => Err(Error::Other(format!("set {key}: {other}"))),
        }
    }

    /// The value of a key, if there is one.
    pub async fn get(&mut self, key: &str) -> Result<Option<String>> {
        self.send(&format!("get {key}\r\n")).await?;
        let mut value = None;
        loop {
            let line = self.line().await?;
            match line.split(' ').next() {
                Some("END") => return Ok(value),
                Some("VALUE") => value = Some(self.line().await?),
                _ => return Err(Error::Other(format!("get {key}: {line}"))),
            }
        }
    }

    /// The server's version.
    pub async fn version(&mut self) -> Result<String> {
        self.send("version\r\n").await?;
        Ok(self.line().await?.trim_start_matches("VERSION ").to_owned())
    }

    async fn send(&mut self, text: &str) -> Result<()> {
        self.stream.write_all(text.as_bytes()).await.map_err(|e| Error::Other(format!("failed to send: {e}")))
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        let read = tokio::time::timeout(PATIENCE, self.stream.read_line(&mut line)).await;
        match read {
            Ok(Ok(0)) => Err(Error::Other("the server closed the connection".into())),
            Ok(Ok(_)) => Ok(line.trim_end().to_owned()),
            Ok(Err(error)) => Err(Error::Other(format!("failed to receive: {error}"))),
            Err(_) => Err(Error::Other("the server does not answer".into())),
        }
    }
}
