//! Durations as Prometheus and the kinds of its operator write them.

/// A duration such as `1m30s`, the longest unit first; none if it is not one, or of no length.
pub fn milliseconds(text: &str) -> Option<u64> {
    const DAY: u64 = 86_400_000;
    let units = [("y", 365 * DAY), ("w", 7 * DAY), ("d", DAY), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let mut rest = text;
    let mut total: u64 = 0;
    for (unit, length) in units {
        let Some(end) = rest.find(|c: char| !c.is_ascii_digit()) else { break };
        let (number, behind) = rest.split_at_checked(end)?;
        let Some(behind) = behind.strip_prefix(unit).filter(|behind| unit != "m" || !behind.starts_with('s')) else {
            continue;
        };
        total = number.parse::<u64>().ok()?.checked_mul(length)?.checked_add(total)?;
        rest = behind;
    }
    (total > 0 && rest.is_empty()).then_some(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers() {
        for (text, expected) in [
            ("30s", 30_000),
            ("1m30s", 90_000),
            ("90000ms", 90_000),
            ("1d12h", 129_600_000),
            ("1w", 604_800_000),
            ("1y", 31_536_000_000),
        ] {
            assert_eq!(milliseconds(text), Some(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_none() {
        for text in ["", "30", "s", "0s", "30s1m", "1s1s", "1x", "-1s", "1.5s", "99999999999999999999s"] {
            assert_eq!(milliseconds(text), None, "{text:?}");
        }
    }
}
