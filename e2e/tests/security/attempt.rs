//! One try to use a server: by which port, encrypted how, logged in as whom.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::binary::Binary;
use memcached_wire::{Credentials, Endpoint, Expiry, Key, Tls};
use tokio::net::TcpStream;

/// Enough for a busy machine that answers; a server that keeps silent costs as much each time.
const DEADLINE: Duration = Duration::from_secs(4);

/// How a client logs in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Login<'a> {
    Nobody,
    /// In the text protocol.
    Ascii(&'a str, &'a str),
    /// In the binary protocol, in plaintext.
    Sasl(&'a str, &'a str),
}

/// Whether a value can be written and read that way; if not, why.
pub async fn attempt(address: SocketAddr, tls: Option<Tls>, login: Login<'_>) -> Result<(), String> {
    let tried = async {
        match login {
            Login::Sasl(user, password) => binary(address, tls, Some((user, password))).await,
            Login::Ascii(user, password) => text(address, tls, Some((user, password))).await,
            Login::Nobody => text(address, tls, None).await,
        }
    };
    tokio::time::timeout(DEADLINE * 2, tried).await.unwrap_or_else(|_| Err("silence".into()))
}

/// The same without a login in the binary protocol.
pub async fn binary_without_login(address: SocketAddr, tls: Option<Tls>) -> Result<(), String> {
    tokio::time::timeout(DEADLINE * 2, binary(address, tls, None)).await.unwrap_or_else(|_| Err("silence".into()))
}

async fn text(address: SocketAddr, tls: Option<Tls>, login: Option<(&str, &str)>) -> Result<(), String> {
    let mut endpoint = Endpoint::new(address.to_string()).with_deadline(DEADLINE);
    if let Some(tls) = tls {
        endpoint = endpoint.with_tls(tls);
    }
    if let Some((user, password)) = login {
        endpoint = endpoint.with_credentials(Credentials::new(user, password).map_err(|e| e.to_string())?);
    }
    let mut connection = endpoint.connect().await.map_err(|e| e.to_string())?;
    let key = Key::new("tried").map_err(|e| e.to_string())?;
    connection.set(&key, b"yes", 0, Expiry::NEVER).await.map_err(|e| e.to_string())?;
    let value = connection.get(&key).await.map_err(|e| e.to_string())?.ok_or("the value is gone")?;
    if value.data == "yes" { Ok(()) } else { Err("another value".into()) }
}

async fn binary(address: SocketAddr, tls: Option<Tls>, login: Option<(&str, &str)>) -> Result<(), String> {
    let stream = TcpStream::connect(address).await.map_err(|e| e.to_string())?;
    match tls {
        None => binary_over(Binary::new(stream), login).await,
        Some(tls) => {
            let stream = tls.wrap(&address.ip().to_string(), stream).await.map_err(|e| e.to_string())?;
            binary_over(Binary::new(stream), login).await
        }
    }
}

async fn binary_over<S>(mut connection: Binary<S>, login: Option<(&str, &str)>) -> Result<(), String>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    if let Some((user, password)) = login {
        connection.login(user, password).await.map_err(|e| e.to_string())?;
    }
    connection.set("tried", "yes").await.map_err(|e| e.to_string())?;
    let value = connection.get("tried").await.map_err(|e| e.to_string())?;
    if value == "yes" { Ok(()) } else { Err("another value".into()) }
}
