//! Meta commands: one letter flags in, one letter flags out.

use std::fmt::Display;

use bytes::Bytes;

use crate::error::{Error, ProtocolViolation, Result};
use crate::key::MetaKey;

/// A meta command.
///
/// ```
/// use memcached_wire::{Key, Meta};
///
/// // Store it for a minute, unless it is there already.
/// let command = Meta::set(Key::new("greeting")?, "hello").with('T', 60).with('M', 'E');
/// # let _ = command;
/// # Ok::<(), memcached_wire::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    verb: &'static str,
    key: MetaKey,
    flags: Vec<(char, String)>,
    data: Option<Vec<u8>>,
}

impl Meta {
    /// `mg`: asks for what the flags say, the value with `v`.
    pub fn get(key: impl Into<MetaKey>) -> Self {
        Self { verb: "mg", key: key.into(), flags: Vec::new(), data: None }
    }

    /// `ms`: stores a value.
    pub fn set(key: impl Into<MetaKey>, value: impl Into<Vec<u8>>) -> Self {
        Self { data: Some(value.into()), verb: "ms", ..Self::get(key) }
    }

    /// `md`: deletes a key, or marks it stale.
    pub fn delete(key: impl Into<MetaKey>) -> Self {
        Self { verb: "md", ..Self::get(key) }
    }

    /// Adds a flag.
    #[must_use]
    pub fn flag(self, flag: char) -> Self {
        self.with(flag, "")
    }

    /// Adds a flag with its token.
    #[must_use]
    pub fn with(mut self, flag: char, token: impl Display) -> Self {
        self.flags.push((flag, token.to_string()));
        self
    }

    pub(crate) fn carries_value(&self) -> bool {
        self.data.is_some()
    }

    pub(crate) fn encode(&self) -> Result<Vec<u8>> {
        let mut bytes = [self.verb.as_bytes(), b" ", self.key.wire()].concat();
        if let Some(data) = &self.data {
            bytes.extend(format!(" {}", data.len()).as_bytes());
        }
        for (flag, token) in &self.flags {
            check(*flag, token)?;
            bytes.extend(format!(" {flag}{token}").as_bytes());
        }
        if self.key.is_encoded() {
            bytes.extend(b" b");
        }
        bytes.extend(b"\r\n");
        if let Some(data) = &self.data {
            bytes.extend(data);
            bytes.extend(b"\r\n");
        }
        Ok(bytes)
    }
}

fn check(flag: char, token: &str) -> Result<()> {
    if !flag.is_ascii_alphabetic() || !token.bytes().all(|byte| byte.is_ascii_graphic()) || token.len() > 250 {
        return Err(Error::Invalid(format!("{flag:?} with {token:?} is no flag")));
    }
    match flag {
        // Without an answer nobody would know when the next one begins.
        'q' => Err(Error::Invalid("the flag q would take the answer away".into())),
        'b' => Err(Error::Invalid("the flag b goes with the key by itself".into())),
        _ => Ok(()),
    }
}

/// What became of a meta command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetaStatus {
    /// `HD`: done.
    Done,
    /// `VA`: done, and here is the value.
    Value,
    /// `EN`: there is no such key to get.
    Miss,
    /// `NF`: there is no such key to change.
    NotFound,
    /// `NS`: not stored, for the key is there (or is not).
    NotStored,
    /// `EX`: somebody else has changed it.
    Exists,
}

/// The answer to a meta command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MetaReply {
    /// What became of it.
    pub status: MetaStatus,
    /// The value, if it was asked for and is there.
    pub data: Option<Bytes>,
    flags: Vec<(char, String)>,
}

impl MetaReply {
    /// The token that came with a flag.
    pub fn flag(&self, flag: char) -> Option<&str> {
        self.flags.iter().find(|(known, _)| *known == flag).map(|(_, token)| token.as_str())
    }

    pub(crate) fn parse(line: &[u8], data: Option<Bytes>) -> Result<Self, ProtocolViolation> {
        let text = String::from_utf8_lossy(line);
        let mut words = text.split(' ').filter(|word| !word.is_empty());
        let status = match (words.next(), &data) {
            (Some("VA"), Some(_)) => {
                words.next();
                MetaStatus::Value
            }
            (Some("HD"), None) => MetaStatus::Done,
            (Some("EN"), None) => MetaStatus::Miss,
            (Some("NF"), None) => MetaStatus::NotFound,
            (Some("NS"), None) => MetaStatus::NotStored,
            (Some("EX"), None) => MetaStatus::Exists,
            _ => return Err(ProtocolViolation::unexpected(line)),
        };
        let split = |word: &str| {
            let mut letters = word.chars();
            letters.next().map(|flag| (flag, letters.as_str().to_owned()))
        };
        Ok(Self { status, data, flags: words.filter_map(split).collect() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::key::Key;

    fn encoded(command: &Meta) -> String {
        String::from_utf8_lossy(&command.encode().unwrap()).into_owned()
    }

    #[test]
    fn commands_are_what_the_protocol_says() {
        let key = || Key::new("k").unwrap();
        assert_eq!(encoded(&Meta::get(key()).flag('v').flag('t')), "mg k v t\r\n");
        assert_eq!(encoded(&Meta::set(key(), "hi").with('T', 60).with('M', 'E')), "ms k 2 T60 ME\r\nhi\r\n");
        assert_eq!(encoded(&Meta::delete(MetaKey::new([0, 1, 2]).unwrap())), "md AAEC b\r\n");
    }

    #[test]
    fn flags_that_would_break_the_conversation_are_refused() {
        for (flag, token) in [('q', ""), ('b', ""), ('T', "1 v"), ('O', "x\r\nflush_all"), (' ', ""), ('\n', "")] {
            let command = Meta::get(Key::new("k").unwrap()).with(flag, token);
            assert!(matches!(command.encode(), Err(Error::Invalid(_))), "{flag:?} {token:?}");
        }
    }

    #[test]
    fn answers_carry_flags() {
        let reply = MetaReply::parse(b"VA 3 ka f5 t-1", Some("abc".into())).unwrap();
        assert_eq!((reply.flag('k'), reply.flag('t'), reply.flag('x')), (Some("a"), Some("-1"), None));
        assert!(MetaReply::parse(b"VA 3", None).is_err());
        assert!(MetaReply::parse(b"", None).is_err());
    }
}
