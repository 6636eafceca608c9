//! memcached's protocol: a codec that does no IO, and a connection over any stream, plain or TLS.
//!
//! Whatever the other side sends, an answer takes bounded time and memory. Keys, credentials and flags are checked
//! before they are sent, so that no input becomes a second command.
//!
//! ```no_run
//! # async fn example() -> memcached_wire::Result<()> {
//! use memcached_wire::{Endpoint, Expiry, Key};
//!
//! let mut connection = Endpoint::new("127.0.0.1:11211").connect().await?;
//! let key = Key::new("greeting")?;
//! connection.set(&key, b"hello", 0, Expiry::NEVER).await?;
//! assert_eq!(connection.get(&key).await?.unwrap().data, "hello");
//! # Ok(())
//! # }
//! ```

#![deny(missing_docs)]

pub mod codec;
mod command;
mod connection;
mod credentials;
mod endpoint;
mod error;
mod expiry;
mod key;
mod meta;
mod metadump;
mod stats;
mod tls;

pub use codec::{Limits, Value};
pub use connection::Connection;
pub use credentials::Credentials;
pub use endpoint::{Endpoint, Stream, Transport};
pub use error::{Error, ErrorClass, ProtocolViolation, Result};
pub use expiry::Expiry;
pub use key::{Key, MetaKey};
pub use meta::{Meta, MetaReply, MetaStatus};
pub use metadump::{Item, Metadump};
pub use stats::{Report, Stats};
pub use tls::{Identity, Tls, first_certificate, shown_certificate};
