//! What can go wrong between a client and memcached, classed by what the caller can do about it.

use std::io;
use std::time::Duration;

/// The result of everything in this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Why an exchange with a server failed.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Nobody listens there, or the way there is closed.
    #[error("failed to connect to {address}")]
    Connect {
        /// Where it should be.
        address: String,
        /// What the system said.
        source: io::Error,
    },
    /// The two sides do not agree on TLS, or one does not trust the other.
    #[error("failed to speak TLS: {0}")]
    Tls(#[source] rustls::Error),
    /// The server wants a login first.
    #[error("failed to be let in: the server wants a login")]
    LoginRequired,
    /// The server does not take these credentials.
    #[error("failed to log in: the server refuses user or password")]
    LoginRefused,
    /// The server understood, and will not or cannot.
    #[error("failed to {request}: the server says {answer:?}")]
    Answered {
        /// What was asked.
        request: &'static str,
        /// Its words.
        answer: String,
    },
    /// What came is not memcached's protocol, or more of it than is allowed.
    #[error("failed to understand the server: {0}")]
    Protocol(#[from] ProtocolViolation),
    /// No answer in time.
    #[error("failed to {request} within {} ms", deadline.as_millis())]
    Timeout {
        /// What was asked.
        request: &'static str,
        /// How long was waited.
        deadline: Duration,
    },
    /// The connection is gone.
    #[error("failed to go on: the connection is closed")]
    Closed(#[source] Option<io::Error>),
    /// What was to be sent cannot be.
    #[error("failed to prepare a request: {0}")]
    Invalid(String),
}

/// How the other side broke the protocol, or the bounds that it was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProtocolViolation {
    /// A line does not end.
    #[error("a line of more than {limit} bytes")]
    LongLine {
        /// How long lines may be.
        limit: usize,
    },
    /// A value is announced that is larger than allowed.
    #[error("a value of {announced} bytes where {limit} are allowed")]
    LargeValue {
        /// Its size, as announced.
        announced: u64,
        /// How large values may be.
        limit: usize,
    },
    /// An answer goes on and on.
    #[error("an answer of more than {limit} bytes")]
    LargeReply {
        /// How large answers may be.
        limit: usize,
    },
    /// A value is not followed by the end of its line.
    #[error("a value without its end")]
    Unterminated,
    /// There is no such line in this place.
    #[error("unexpected {line:?}")]
    Unexpected {
        /// The beginning of it.
        line: String,
    },
    /// An answer that nobody asked for.
    #[error("an answer without a question")]
    Unsolicited,
}

impl ProtocolViolation {
    /// A line that does not belong there; only its beginning is kept, for it may be long and hostile.
    pub(crate) fn unexpected(line: &[u8]) -> Self {
        const SHOWN: usize = 80;
        let shown = line.get(..SHOWN).unwrap_or(line);
        Self::Unexpected { line: String::from_utf8_lossy(shown).into_owned() }
    }
}

/// What the caller can do about an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorClass {
    /// Nobody is there: try again later.
    Refused,
    /// Bring (other) credentials.
    Unauthenticated,
    /// Bring (other) certificates, or the other kind of connection.
    Untrusted,
    /// Ask for something else: the connection itself is fine.
    Answered,
    /// The other side is no memcached, or a broken one.
    Protocol,
    /// It may hang: try again on a new connection.
    Timeout,
    /// It was there: try again on a new connection.
    Closed,
    /// Correct the input.
    Invalid,
}

impl Error {
    /// What can be done about it.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Connect { .. } => ErrorClass::Refused,
            Self::Tls(_) => ErrorClass::Untrusted,
            Self::LoginRequired | Self::LoginRefused => ErrorClass::Unauthenticated,
            Self::Answered { .. } => ErrorClass::Answered,
            Self::Protocol(_) => ErrorClass::Protocol,
            Self::Timeout { .. } => ErrorClass::Timeout,
            Self::Closed(_) => ErrorClass::Closed,
            Self::Invalid(_) => ErrorClass::Invalid,
        }
    }

    /// An error of an open stream; TLS hides its own inside.
    pub(crate) fn of_stream(error: io::Error) -> Self {
        let tls = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
        match tls {
            Some(tls) => Self::Tls(tls.clone()),
            None => Self::Closed(Some(error)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_line_is_shown_in_part() {
        let text = ProtocolViolation::unexpected(&[b'x'; 5000]).to_string();
        assert!(text.len() < 100, "{text}");
    }

    #[test]
    fn an_error_of_tls_is_told_from_one_of_the_network() {
        let inside = io::Error::new(io::ErrorKind::InvalidData, rustls::Error::DecryptError);
        assert_eq!(Error::of_stream(inside).class(), ErrorClass::Untrusted);
        assert_eq!(Error::of_stream(io::ErrorKind::ConnectionReset.into()).class(), ErrorClass::Closed);
    }
}
