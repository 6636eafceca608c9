//! Ranges of addresses, as a NetworkPolicy has them.

use std::fmt;
use std::net::IpAddr;

use ipnet::IpNet;

/// A range of addresses, without the bits that do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Range(IpNet);

impl Range {
    /// `10.0.0.0/8`, and also `10.1.2.3/8`, which means the same. None if it is no range.
    pub fn of(text: &str) -> Option<Self> {
        let (address, length) = text.split_once('/')?;
        // Not IpNet's own parser: std's is as strict as Go's is about leading zeros.
        let address: IpAddr = address.parse().ok()?;
        // An IPv4 address in disguise, which Kubernetes does not take.
        if matches!(address, IpAddr::V6(address) if address.to_ipv4_mapped().is_some()) {
            return None;
        }
        // "08" and "+8" are numbers, but no lengths.
        let is_plain = length.bytes().all(|byte| byte.is_ascii_digit()) && (length == "0" || !length.starts_with('0'));
        let length = length.parse().ok().filter(|_| is_plain)?;
        IpNet::new(address, length).ok().map(|range| Self(range.trunc()))
    }

    /// Whether every address of its family is in the range.
    pub fn is_everything(&self) -> bool {
        self.0.prefix_len() == 0
    }

    /// Whether another range is a part of this one, and not all of it.
    pub fn is_more_than(&self, other: &Self) -> bool {
        self != other && self.0.contains(&other.0)
    }
}

/// As every version of Kubernetes takes it: newer ones refuse an address with more bits than count.
impl fmt::Display for Range {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
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
    fn what_kubernetes_does_not_take_is_no_range() {
        for bad in [
            "",
            "10.0.0.0",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/08",
            "10.0.0.0/+8",
            "010.0.0.0/8",
            "10.0.0.0/",
            "::ffff:10.0.0.0/104",
            "10.0.0.0/8 ",
            "10.0.0.0/300",
        ] {
            assert_eq!(Range::of(bad), None, "{bad}");
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
