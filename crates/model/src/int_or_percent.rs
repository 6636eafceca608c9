//! Numbers that may also be percentages: `minAvailable`, `maxUnavailable`, `maxSurge`.

use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;

/// A percentage from 0% to 100%; none if it is no such.
pub fn percentage(text: &str) -> Option<i32> {
    let digits = text.strip_suffix('%')?;
    let is_plain = (1..=3).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    let is_short = digits.len() < 3 || digits == "100";
    digits.parse().ok().filter(|_| is_plain && is_short)
}

/// Whether it is a number from 0 on, or a percentage.
pub fn is_count_or_percentage(number: &IntOrString) -> bool {
    match number {
        IntOrString::Int(number) => *number >= 0,
        IntOrString::String(text) => percentage(text).is_some(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentages_are_whole_and_no_more_than_all() {
        for (text, expected) in [("0%", 0), ("34%", 34), ("100%", 100)] {
            assert_eq!(percentage(text), Some(expected), "{text}");
        }
        for bad in ["", "%", "34", "101%", "1.5%", "-1%", "+1%", "0100%"] {
            assert_eq!(percentage(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_text_of_digits_is_no_count() {
        assert!(is_count_or_percentage(&IntOrString::Int(0)));
        assert!(is_count_or_percentage(&IntOrString::String("50%".into())));
        assert!(!is_count_or_percentage(&IntOrString::Int(-1)));
        assert!(!is_count_or_percentage(&IntOrString::String("2".into())));
    }
}
