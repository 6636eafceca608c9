//! When an item goes. memcached takes a number up to 30 days as a duration and a larger one as a date: here they
//! are two things.

use std::time::Duration;

use crate::error::{Error, Result};

const LONGEST_DURATION: u64 = 30 * 24 * 60 * 60;
/// Anything negative is over at once.
const OVER: i64 = -1;

/// When an item goes.
///
/// ```
/// use std::time::Duration;
/// use memcached_wire::Expiry;
///
/// assert!(Expiry::after(Duration::from_secs(60)).is_ok());
/// assert!(Expiry::after(Duration::from_secs(31 * 24 * 60 * 60)).is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expiry(i64);

impl Expiry {
    /// When there is no room for it any more.
    pub const NEVER: Self = Self(0);

    /// After so many seconds, at most 30 days.
    pub fn after(duration: Duration) -> Result<Self> {
        match duration.as_secs() {
            0 => Ok(Self(OVER)),
            seconds if seconds > LONGEST_DURATION => {
                Err(Error::Invalid("more than 30 days ahead memcached wants a date: use Expiry::at".into()))
            }
            seconds => Ok(Self(seconds.cast_signed())),
        }
    }

    /// At this time, in seconds since 1970.
    pub fn at(unix_seconds: u64) -> Self {
        match i64::try_from(unix_seconds) {
            Ok(seconds) if unix_seconds > LONGEST_DURATION => Self(seconds),
            Ok(_) => Self(OVER),
            Err(_) => Self(i64::MAX),
        }
    }

    /// The number that memcached takes.
    pub(crate) fn number(self) -> i64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn now_is_not_never() {
        assert!(Expiry::after(Duration::ZERO).unwrap().number() < 0);
        assert!(Expiry::at(0).number() < 0);
        assert_eq!(Expiry::NEVER.number(), 0);
    }

    #[test]
    fn thirty_days_are_the_last_duration() {
        assert_eq!(Expiry::after(Duration::from_secs(2_592_000)).unwrap().number(), 2_592_000);
        assert!(Expiry::after(Duration::from_secs(2_592_001)).is_err());
        assert!(Expiry::at(2_592_000).number() < 0, "long past, not in a month");
        assert_eq!(Expiry::at(1_900_000_000).number(), 1_900_000_000);
    }
}
