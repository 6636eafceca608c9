//! The client against the real server over real sockets, and against servers that are not what they seem.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

mod command;
mod failure;
mod impostor;
mod login;
mod tls;

use std::net::SocketAddr;
use std::time::Duration;

use memcached_wire::{Connection, Endpoint, Key, Limits, Stream};
use testbed::Server;
use tokio::net::TcpStream;

/// Longer than a busy machine takes; no test waits for it in vain.
const DEADLINE: Duration = Duration::from_secs(300);
/// For those who will never answer.
const SHORT_TIMEOUT: Duration = Duration::from_millis(300);

fn endpoint(address: SocketAddr) -> Endpoint {
    Endpoint::new(address.to_string()).with_deadline(DEADLINE)
}

async fn connect(server: &Server) -> Connection<Stream> {
    endpoint(server.address()).connect().await.unwrap()
}

/// Connects in its own time, and then waits for no answer.
async fn hasty(address: SocketAddr) -> Connection<TcpStream> {
    Connection::new(TcpStream::connect(address).await.unwrap(), Limits::default(), SHORT_TIMEOUT)
}

fn key(text: &str) -> Key {
    Key::new(text).unwrap()
}
