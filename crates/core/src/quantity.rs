//! Quantities of Kubernetes as plain numbers of bytes.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

const BINARY: [(&str, u32); 6] = [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];
const DECIMAL: [(&str, f64); 9] =
    [("n", 1e-9), ("u", 1e-6), ("m", 1e-3), ("k", 1e3), ("M", 1e6), ("G", 1e9), ("T", 1e12), ("P", 1e15), ("E", 1e18)];

/// The number that a quantity stands for; none if it is not one.
pub fn value(text: &str) -> Option<f64> {
    for (suffix, shift) in BINARY {
        if let Some(number) = text.strip_suffix(suffix) {
            return Some(number.parse::<f64>().ok()? * 2f64.powi(i32::try_from(shift).ok()?));
        }
    }
    for (suffix, factor) in DECIMAL {
        if let Some(number) = text.strip_suffix(suffix) {
            return Some(number.parse::<f64>().ok()? * factor);
        }
    }
    // Also takes the exponent form, `12e6`.
    text.parse().ok()
}

/// A quantity in whole bytes, rounded down.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked to be in range")]
pub fn bytes(quantity: &Quantity) -> Option<u64> {
    let value = value(&quantity.0)?;
    (value >= 0.0 && value < 2f64.powi(63)).then_some(value as u64)
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
}
