//! A few words with memcached in a pod, over a real socket.

use std::net::SocketAddr;
use std::time::Duration;

use memcached_wire::{Expiry, Key, Limits};
use testbed::{Error, Node, Result};
use tokio::net::TcpStream;

const DEADLINE: Duration = Duration::from_secs(10);

/// A connection to a server.
pub struct Connection(memcached_wire::Connection<TcpStream>);

impl Connection {
    /// Opens a socket from the host to a pod or Service address.
    pub async fn open(node: &Node, address: SocketAddr) -> Result<Self> {
        let stream = node.connect(address).await?;
        Ok(Self(memcached_wire::Connection::new(stream, Limits::default(), DEADLINE)))
    }

    /// Stores a value.
    pub async fn set(&mut self, key: &str, value: &str) -> Result<()> {
        told(self.0.set(&told(Key::new(key))?, value.as_bytes(), 0, Expiry::NEVER).await)
    }

    /// The value of a key, if there is one.
    pub async fn get(&mut self, key: &str) -> Result<Option<String>> {
        let value = told(self.0.get(&told(Key::new(key))?).await)?;
        Ok(value.map(|value| String::from_utf8_lossy(&value.data).into_owned()))
    }

    /// The server's version.
    pub async fn version(&mut self) -> Result<String> {
        told(self.0.version().await)
    }
}

fn told<T>(result: memcached_wire::Result<T>) -> Result<T> {
    result.map_err(|error| Error::Other(error.to_string()))
}
