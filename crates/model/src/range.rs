//! Ranges of addresses, as a NetworkPolicy has them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A range of addresses: the bits that all of them begin with, and how many these are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range {
    /// From the left, the rest 0.
    bits: u128,
    length: u32,
    is_v4: bool,
}

impl Range {
    /// `10.0.0.0/8`, and also `10.1.2.3/8`, which means the same. None if it is no range.
    pub fn of(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        let (bits, width, is_v4) = match address.parse().ok()? {
            IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32, true),
            // An IPv4 address in disguise, which Kubernetes does not take.
            IpAddr::V6(address) if address.to_ipv4_mapped().is_some() => return None,
            IpAddr::V6(address) => (address.to_bits(), 128, false),
        };
        // "08" and "+8" are numbers, but no lengths.
        let is_plain = length.bytes().all(|byte| byte.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
        let length = length.parse().ok().filter(|length| *length <= width && is_plain)?;
        Some(Self { bits: bits & mask(length), length, is_v4 })
    }

    /// Whether every address of its family is in the range.
    pub fn is_everything(&self) -> bool {
        self.length == 0
    }

    /// Whether another range is a part of this one, and not all of it.
    pub fn is_more_than(&self, other: &Self) -> bool {
        self.is_v4 == other.is_v4 && self.length < other.length && self.bits == other.bits & mask(self.length)
    }
}

fn mask(length: u32) -> u128 {
    u128::MAX.checked_shl(128 - length).unwrap_or(0)
}

/// As every version of Kubernetes takes it: newer ones refuse an address with more bits than count.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_v4 {
            let bits = u32::try_from(self.bits >> 96).unwrap_or_default();
            return write!(f, "{}/{}", Ipv4Addr::from_bits(bits), self.length);
        }
        write!(f, "{}/{}", Ipv6Addr::from_bits(self.bits), self.length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_written_without_the_bits_that_do_not_count() {
        for (given, written) in [
            ("10.1.2.3/8", "10.0.0.0/8"),
            ("10.0.0.0/0", "0.0.0.0/0"),
            ("192.0.2.1/32", "192.0.2.1/32"),
            ("2001:DB8::1/32", "2001:db8::/32"),
            ("::1/128", "::1/128"),
        ] {
            assert_eq!(Range::of(given).unwrap().to_string(), written);
        }
    }

    #[test]
    fn a_part_is_smaller_than_the_whole() {
        let is_more = |one: &str, other: &str| Range::of(one).unwrap().is_more_than(&Range::of(other).unwrap());
        assert!(is_more("10.0.0.0/8", "10.1.0.0/16") && is_more("::/0", "2001:db8::/32"));
        assert!(!is_more("10.0.0.0/8", "10.0.0.0/8") && !is_more("10.0.0.0/8", "11.0.0.0/16"));
        assert!(!is_more("0.0.0.0/0", "2001:db8::/32"));
    }
}
