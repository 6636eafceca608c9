//! Keys that memcached takes. A key with a space or a line break in it would be a second word, or a second command.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use crate::error::{Error, Result};

/// How long a key may be on the wire.
const LONGEST: usize = 250;

/// A key of 1 to 250 bytes without spaces and control characters.
///
/// ```
/// use memcached_wire::Key;
///
/// assert!(Key::new("user:42").is_ok());
/// assert!(Key::new("two words").is_err());
/// assert!(Key::new("").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(Vec<u8>);

impl Key {
    /// Checks a key.
    pub fn new(key: impl AsRef<[u8]>) -> Result<Self> {
        let key = key.as_ref();
        if key.is_empty() || key.len() > LONGEST {
            return Err(Error::Invalid(format!("a key has 1 to {LONGEST} bytes, this one {}", key.len())));
        }
        if !is_plain(key) {
            return Err(Error::Invalid("a key has no spaces and no control characters".into()));
        }
        Ok(Self(key.to_vec()))
    }

    /// Its bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({})", self.0.escape_ascii())
    }
}

/// A key for meta commands, which take any bytes: those that are no plain key travel as base64.
///
/// ```
/// use memcached_wire::MetaKey;
///
/// assert!(MetaKey::new([0, 1, 2]).is_ok());
/// assert!(MetaKey::new([0; 187]).is_err(), "in base64 it has 252");
/// ```
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct MetaKey {
    wire: Vec<u8>,
    encoded: bool,
}

impl MetaKey {
    /// Any bytes that fit.
    pub fn new(key: impl AsRef<[u8]>) -> Result<Self> {
        let key = key.as_ref();
        if let Ok(plain) = Key::new(key) {
            return Ok(plain.into());
        }
        let wire = BASE64.encode(key).into_bytes();
        if key.is_empty() || wire.len() > LONGEST || is_plain(key) {
            return Err(Error::Invalid(format!("a key has 1 to {LONGEST} bytes on the wire, this one {}", wire.len())));
        }
        Ok(Self { wire, encoded: true })
    }

    /// As it is sent.
    pub(crate) fn wire(&self) -> &[u8] {
        &self.wire
    }

    /// Whether the server has to be told that it is base64.
    pub(crate) fn is_encoded(&self) -> bool {
        self.encoded
    }
}

impl From<Key> for MetaKey {
    fn from(key: Key) -> Self {
        Self { wire: key.0, encoded: false }
    }
}

impl fmt::Debug for MetaKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MetaKey({}{})", self.wire.escape_ascii(), if self.encoded { ", base64" } else { "" })
    }
}

fn is_plain(key: &[u8]) -> bool {
    key.iter().all(|&byte| byte > b' ' && byte != 0x7f)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn no_key_breaks_out_of_its_word(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(key) = Key::new(&bytes) {
                prop_assert!(key.as_bytes().iter().all(|byte| !byte.is_ascii_whitespace() && !byte.is_ascii_control()));
                prop_assert!((1..=LONGEST).contains(&bytes.len()));
            }
            if let Ok(key) = MetaKey::new(&bytes) {
                prop_assert!(Key::new(key.wire()).is_ok());
                let back = if key.is_encoded() { BASE64.decode(key.wire()).unwrap() } else { key.wire().to_vec() };
                prop_assert_eq!(back, bytes);
            }
        }
    }

    #[test]
    fn the_limits_are_those_of_memcached() {
        assert!(Key::new("k".repeat(250)).is_ok());
        assert!(Key::new("k".repeat(251)).is_err());
        assert!(MetaKey::new("k".repeat(251)).is_err());
        assert!(MetaKey::new([b' '; 186]).is_ok());
        for bad in ["a b", "a\r\nflush_all", "a\0", "\t", "\x7f"] {
            assert!(Key::new(bad).is_err(), "{bad:?}");
        }
    }
}
