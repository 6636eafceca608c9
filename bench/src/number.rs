//! Numbers on their way to figures and to text for people.
//! Counts become floating point here alone, so that nothing is cast with loss elsewhere.

/// A count as a floating point number; what is measured here never exceeds four thousand million.
pub fn float(count: impl TryInto<u32>) -> f64 {
    count.try_into().map_or(f64::INFINITY, f64::from)
}

/// An integer with separators: `10,000`.
pub fn grouped(count: usize) -> String {
    let digits = count.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with as many digits as say something: three of them.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size < 0.000_5 => "0".into(),
        size if size < 1.0 => format!("{value:.2}"),
        size if size < 9.995 => trimmed(&format!("{value:.2}")),
        size if size < 99.95 => trimmed(&format!("{value:.1}")),
        _ => format!("{value:.0}"),
    }
}

/// Without zeros that say nothing: `5.00` is 5.
fn trimmed(text: &str) -> String {
    let bare = text.trim_end_matches('0').trim_end_matches('.');
    if text.ends_with("00") || text.ends_with(".0") { bare.to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_separated() {
        assert_eq!([5, 300, 1000, 10_000, 1_234_567].map(grouped), ["5", "300", "1,000", "10,000", "1,234,567"]);
    }

    #[test]
    fn figures_have_three_digits_that_say_something() {
        let text = [0.0, 0.256, 5.0, 5.62, 9.5, 20.0, 20.24, 185.4, 3050.0].map(short);
        assert_eq!(text, ["0", "0.26", "5", "5.62", "9.50", "20", "20.2", "185", "3050"]);
    }

    #[test]
    fn a_count_keeps_its_value() {
        assert_eq!(short(float(4_000_usize)), "4000");
        assert!(float(u64::MAX).is_infinite());
    }
}
