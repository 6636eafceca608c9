//! The few requests of memcached's binary protocol that it takes to log in by SASL and to use a key.

use std::time::Duration;

use testbed::{Error, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// How long an answer may take on a busy machine.
const DEADLINE: Duration = Duration::from_secs(20);

const REQUEST: u8 = 0x80;
const RESPONSE: u8 = 0x81;
const GET: u8 = 0x00;
const SET: u8 = 0x01;
const SASL_AUTH: u8 = 0x21;

/// A connection over any stream.
pub struct Binary<S> {
    stream: S,
}

impl<S: AsyncReadExt + AsyncWriteExt + Unpin> Binary<S> {
    /// Takes a stream that is open already.
    pub fn new(stream: S) -> Self {
        Self { stream }
    }

    /// Logs in with the mechanism PLAIN.
    pub async fn login(&mut self, user: &str, password: &str) -> Result<()> {
        let token = format!("\0{user}\0{password}");
        self.ask(SASL_AUTH, b"", b"PLAIN", token.as_bytes()).await.map(drop)
    }

    /// Stores a value.
    pub async fn set(&mut self, key: &str, value: &str) -> Result<()> {
        // Flags and expiry.
        self.ask(SET, &[0; 8], key.as_bytes(), value.as_bytes()).await.map(drop)
    }

    /// The value of a key.
    pub async fn get(&mut self, key: &str) -> Result<String> {
        let body = self.ask(GET, b"", key.as_bytes(), b"").await?;
        // Flags come first.
        Ok(String::from_utf8_lossy(body.get(4..).unwrap_or_default()).into_owned())
    }

    async fn ask(&mut self, operation: u8, extras: &[u8], key: &[u8], value: &[u8]) -> Result<Vec<u8>> {
        let length = |part: usize| u32::try_from(part).unwrap_or(u32::MAX);
        let mut request = vec![REQUEST, operation];
        request.extend(u16::try_from(key.len()).unwrap_or(u16::MAX).to_be_bytes());
        request.extend([u8::try_from(extras.len()).unwrap_or(u8::MAX), 0, 0, 0]);
        request.extend(length(extras.len() + key.len() + value.len()).to_be_bytes());
        request.extend([0; 12]);
        request.extend([extras, key, value].concat());
        match tokio::time::timeout(DEADLINE, self.exchange(&request)).await {
            Ok(Ok((0, body))) => Ok(body),
            Ok(Ok((status, body))) => {
                Err(Error::Other(format!("status {status:#x}: {}", String::from_utf8_lossy(&body))))
            }
            Ok(Err(error)) => Err(Error::Other(error.to_string())),
            Err(_) => Err(Error::Other("no answer".into())),
        }
    }

    async fn exchange(&mut self, request: &[u8]) -> std::io::Result<(u16, Vec<u8>)> {
        self.stream.write_all(request).await?;
        let mut header = [0; 24];
        self.stream.read_exact(&mut header).await?;
        let [magic, _, _, _, _, _, high, low, a, b, c, d, ..] = header;
        if magic != RESPONSE {
            return Err(std::io::Error::other("no answer of the binary protocol"));
        }
        let mut body = vec![0; usize::try_from(u32::from_be_bytes([a, b, c, d])).unwrap_or_default().min(1 << 20)];
        self.stream.read_exact(&mut body).await?;
        Ok((u16::from_be_bytes([high, low]), body))
    }
}
