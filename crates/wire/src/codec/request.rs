//! Requests as bytes. Whatever goes in is checked before, so a request is always exactly one request.

use crate::credentials::Credentials;
use crate::error::Result;
use crate::expiry::Expiry;
use crate::key::Key;
use crate::meta::Meta;
use crate::stats::Report;

/// Something to send, and what to call it when it fails.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    purpose: &'static str,
    bytes: Vec<u8>,
    carries_value: bool,
}

impl Request {
    /// What is to be done, as in "failed to …".
    pub fn purpose(&self) -> &'static str {
        self.purpose
    }

    /// What is sent.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Whether a value follows the line: a server that refuses the line may take the value for the next one.
    pub fn carries_value(&self) -> bool {
        self.carries_value
    }

    /// `version`
    pub fn version() -> Self {
        Self::line("ask for the version", &[b"version"])
    }

    /// `stats`
    pub fn stats(report: Report) -> Self {
        match report.name() {
            None => Self::line("read statistics", &[b"stats"]),
            Some(name) => Self::line("read statistics", &[b"stats", name.as_bytes()]),
        }
    }

    /// The login of ASCII authentication: a `set` of any key, with the credentials as its value.
    pub fn login(credentials: &Credentials) -> Self {
        Self::with_value("log in", &[b"set", b"auth", b"0", b"0"], &credentials.token())
    }

    /// `get`
    pub fn get(key: &Key) -> Self {
        Self::line("get a value", &[b"get", key.as_bytes()])
    }

    /// `set`
    pub fn set(key: &Key, value: &[u8], flags: u32, expiry: Expiry) -> Self {
        let (flags, expiry) = (flags.to_string(), expiry.number().to_string());
        Self::with_value("store a value", &[b"set", key.as_bytes(), flags.as_bytes(), expiry.as_bytes()], value)
    }

    /// `delete`
    pub fn delete(key: &Key) -> Self {
        Self::line("delete a key", &[b"delete", key.as_bytes()])
    }

    /// `touch`
    pub fn touch(key: &Key, expiry: Expiry) -> Self {
        Self::line("touch a key", &[b"touch", key.as_bytes(), expiry.number().to_string().as_bytes()])
    }

    /// `flush_all`
    pub fn flush_all() -> Self {
        Self::line("empty the cache", &[b"flush_all"])
    }

    /// `cache_memlimit`
    pub fn cache_memlimit(megabytes: u32) -> Self {
        Self::line("change the memory limit", &[b"cache_memlimit", megabytes.to_string().as_bytes()])
    }

    /// `refresh_certs`
    pub fn refresh_certs() -> Self {
        Self::line("reload the certificates", &[b"refresh_certs"])
    }

    /// `verbosity`
    pub fn verbosity(level: u8) -> Self {
        Self::line("change the verbosity", &[b"verbosity", level.to_string().as_bytes()])
    }

    /// `lru_crawler metadump all`
    pub fn metadump() -> Self {
        Self::line("list the keys", &[b"lru_crawler", b"metadump", b"all"])
    }

    /// `me`
    pub fn debug(key: &Key) -> Self {
        Self::line("inspect a key", &[b"me", key.as_bytes()])
    }

    /// `mn`
    pub fn noop() -> Self {
        Self::line("ask for a sign of life", &[b"mn"])
    }

    /// A meta command.
    pub fn meta(command: &Meta) -> Result<Self> {
        let bytes = command.encode()?;
        Ok(Self { purpose: "run a meta command", bytes, carries_value: command.carries_value() })
    }

    /// Several meta commands, and `mn` whose answer says that all the others have come.
    pub fn batch(commands: &[Meta]) -> Result<Self> {
        let mut bytes = Vec::new();
        for command in commands {
            bytes.extend(command.encode()?);
        }
        bytes.extend(b"mn\r\n");
        let carries_value = commands.iter().any(Meta::carries_value);
        Ok(Self { purpose: "run meta commands", bytes, carries_value })
    }

    fn line(purpose: &'static str, words: &[&[u8]]) -> Self {
        let mut bytes = words.join(&b' ');
        bytes.extend(b"\r\n");
        Self { purpose, bytes, carries_value: false }
    }

    fn with_value(purpose: &'static str, words: &[&[u8]], value: &[u8]) -> Self {
        let mut bytes = words.join(&b' ');
        bytes.extend(format!(" {}\r\n", value.len()).as_bytes());
        bytes.extend(value);
        bytes.extend(b"\r\n");
        Self { purpose, bytes, carries_value: true }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn requests_are_what_the_protocol_says() {
        let key = Key::new("k").unwrap();
        let login = Credentials::new("ann", "se cret").unwrap();
        for (request, bytes) in [
            (Request::version(), "version\r\n"),
            (Request::stats(Report::General), "stats\r\n"),
            (Request::stats(Report::Slabs), "stats slabs\r\n"),
            (Request::login(&login), "set auth 0 0 11\r\nann se cret\r\n"),
            (Request::get(&key), "get k\r\n"),
            (Request::set(&key, b"a\r\nb", 7, Expiry::NEVER), "set k 7 0 4\r\na\r\nb\r\n"),
            (Request::touch(&key, Expiry::at(1_900_000_000)), "touch k 1900000000\r\n"),
            (Request::cache_memlimit(128), "cache_memlimit 128\r\n"),
            (Request::metadump(), "lru_crawler metadump all\r\n"),
        ] {
            assert_eq!(String::from_utf8_lossy(request.bytes()), bytes);
        }
    }

    proptest! {
        #[test]
        fn a_value_never_changes_the_line_before_it(value in proptest::collection::vec(any::<u8>(), 0..200)) {
            let request = Request::set(&Key::new("k").unwrap(), &value, 0, Expiry::NEVER);
            let end = request.bytes().iter().position(|&byte| byte == b'\n').unwrap() + 1;
            let (line, rest) = request.bytes().split_at(end);
            let expected = format!("set k 0 0 {}\r\n", value.len());
            prop_assert_eq!(line, expected.as_bytes());
            prop_assert_eq!(rest, [&value[..], b"\r\n"].concat());
        }
    }
}
