//! Quantities of Kubernetes as plain numbers of bytes.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

/// Suffixes as a power of two and a power of ten.
const SUFFIXES: [(&str, u32, i32); 15] = [
    ("Ki", 10, 0),
    ("Mi", 20, 0),
    ("Gi", 30, 0),
    ("Ti", 40, 0),
    ("Pi", 50, 0),
    ("Ei", 60, 0),
    ("n", 0, -9),
    ("u", 0, -6),
    ("m", 0, -3),
    ("k", 0, 3),
    ("M", 0, 6),
    ("G", 0, 9),
    ("T", 0, 12),
    ("P", 0, 15),
    ("E", 0, 18),
];

/// A quantity in whole bytes, rounded down; none if it is not one, or more than Kubernetes counts to.
///
/// In whole numbers throughout: the API server writes `0.1Gi` as `107374182400m`, and a limit is judged to the byte.
pub fn bytes(quantity: &Quantity) -> Option<u64> {
    i64::try_from(count(&quantity.0, 0)?).ok()?.try_into().ok()
}

/// A quantity in billionths, which is as fine as Kubernetes counts: CPUs are given in thousandths. None if it is not
/// one, or negative.
pub fn billionths(quantity: &Quantity) -> Option<u128> {
    count(&quantity.0, 9)
}

/// How often a quantity holds the unit of `10^-finer`, rounded down.
fn count(text: &str, finer: i32) -> Option<u128> {
    let (number, twos, tens) = split(text)?;
    let number = number.strip_prefix('+').unwrap_or(number);
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let scaled = digits.parse::<u128>().ok()?.checked_mul(1 << twos)?;
    let tens = tens.checked_add(finer)?.checked_sub(i32::try_from(fraction.len()).ok()?)?;
    let power = 10_u128.checked_pow(tens.unsigned_abs());
    match (tens, power) {
        (0.., power) => scaled.checked_mul(power?),
        (_, power) => Some(power.map_or(0, |power| scaled / power)),
    }
}

/// The number in front, and what its suffix or exponent (`12e6`) multiplies it with.
fn split(text: &str) -> Option<(&str, u32, i32)> {
    for (suffix, twos, tens) in SUFFIXES {
        if let Some(number) = text.strip_suffix(suffix) {
            return Some((number, twos, tens));
        }
    }
    match text.split_once(['e', 'E']) {
        Some((number, exponent)) => Some((number, 0, exponent.parse().ok()?)),
        None => Some((text, 0, 0)),
    }
}

/// Mebibytes as a quantity.
pub fn mebibytes(count: i64) -> Quantity {
    Quantity(format!("{count}Mi"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_numbers() {
        for (text, expected) in [
            ("1Gi", 1_073_741_824),
            ("1024Mi", 1_073_741_824),
            ("96Mi", 100_663_296),
            ("1G", 1_000_000_000),
            ("12e6", 12_000_000),
            ("1500m", 1),
            ("0", 0),
        ] {
            assert_eq!(bytes(&Quantity(text.into())), Some(expected), "{text}");
        }
        for bad in ["", "Mi", "ten", "-1"] {
            assert_eq!(bytes(&Quantity(bad.into())), None, "{bad}");
        }
    }

    #[test]
    fn thousandths_of_a_cpu_are_told_apart() {
        let of = |text: &str| billionths(&Quantity(text.into()));
        assert!(of("99m") < of("100m") && of("0.1") == of("100m") && of("1n") == Some(1) && of("-1").is_none());
    }
}
