//! The listing of all keys, item by item as it comes: it is as long as the cache is full.

use tokio::io::{AsyncRead, AsyncWrite};

use crate::codec::Dump;
use crate::connection::Connection;
use crate::error::Result;

/// An item of the listing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// The key, any bytes.
    pub key: Vec<u8>,
    /// When it goes, in seconds since 1970; none if never.
    pub expires: Option<u64>,
    /// When it was last used, in seconds since 1970.
    pub last_access: u64,
    /// Whether it was used since it was stored.
    pub fetched: bool,
    /// Its slab class.
    pub class: u8,
    /// What it takes with everything around it, in bytes.
    pub size: u64,
}

impl Item {
    pub(crate) fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let field = |name: &str| line.split(' ').find_map(|word| word.strip_prefix(name)?.strip_prefix('='));
        Some(Self {
            key: percent_decoded(field("key")?)?,
            expires: field("exp")?.parse::<i64>().ok()?.try_into().ok(),
            last_access: field("la")?.parse().ok()?,
            fetched: field("fetch")? == "yes",
            class: field("cls")?.parse().ok()?,
            size: field("size")?.parse().ok()?,
        })
    }
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut bytes = text.bytes();
    let mut decoded = Vec::new();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let mut digit = || char::from(bytes.next()?).to_digit(16);
        let (high, low) = (digit()?, digit()?);
        decoded.push(u8::try_from(high * 16 + low).ok()?);
    }
    (!decoded.is_empty()).then_some(decoded)
}

/// A listing under way. Given up before its end, it takes its connection with it.
#[derive(Debug)]
pub struct Metadump<'a, S> {
    connection: &'a mut Connection<S>,
    collector: Dump,
    ended: bool,
}

impl<'a, S: AsyncRead + AsyncWrite + Unpin> Metadump<'a, S> {
    pub(crate) fn new(connection: &'a mut Connection<S>) -> Self {
        Self { connection, collector: Dump::default(), ended: false }
    }

    /// The next item; none after the last. Each may take as long as a request.
    pub async fn next(&mut self) -> Result<Option<Item>> {
        if self.ended {
            return Ok(None);
        }
        let item = self.connection.next_of("list the keys", &mut self.collector).await;
        if !matches!(item, Ok(Some(_))) {
            self.ended = true;
            self.connection.finish(&item, false);
        }
        item
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_item_is_read_whole() {
        let line = b"key=%00%20a exp=1794769035 la=17 cas=2 fetch=no cls=3 size=67 flags=5 ";
        let expires = Some(1_794_769_035);
        let item = Item { key: b"\0 a".to_vec(), expires, last_access: 17, fetched: false, class: 3, size: 67 };
        assert_eq!(Item::parse(line), Some(item));
        assert_eq!(Item::parse(b"key=a exp=-1 la=0 cas=2 fetch=no cls=3 size=67").unwrap().expires, None);
    }

    #[test]
    fn half_an_item_is_none() {
        for line in
            ["", "key=a", "key=%2 exp=-1 la=0 fetch=no cls=3 size=67", "key= exp=-1 la=0 fetch=no cls=3 size=67"]
        {
            assert_eq!(Item::parse(line.as_bytes()), None, "{line}");
        }
    }

    proptest! {
        #[test]
        fn every_key_survives_its_encoding(key in proptest::collection::vec(any::<u8>(), 1..250)) {
            let encoded: String = key.iter().map(|byte| format!("%{byte:02X}")).collect();
            prop_assert_eq!(percent_decoded(&encoded), Some(key));
        }
    }
}
