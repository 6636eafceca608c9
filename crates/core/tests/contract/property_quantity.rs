//! Quantities, against arithmetic on digits that is slow and exact.

use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use operator_model::quantity::bytes;
use proptest::prelude::*;
use serde_json::json;

use crate::fixture::refused;

/// A factor as a power of two and one of ten.
const SUFFIXES: [(&str, u32, i32); 16] = [
    ("", 0, 0),
    ("n", 0, -9),
    ("u", 0, -6),
    ("m", 0, -3),
    ("k", 0, 3),
    ("M", 0, 6),
    ("G", 0, 9),
    ("T", 0, 12),
    ("P", 0, 15),
    ("Ki", 10, 0),
    ("Mi", 20, 0),
    ("Gi", 30, 0),
    ("Ti", 40, 0),
    ("e3", 0, 3),
    ("E6", 0, 6),
    ("e-2", 0, -2),
];

/// Decimal digits, most significant first, times a small number.
fn times(digits: &mut Vec<u32>, factor: u32) {
    let mut carry = 0;
    for digit in digits.iter_mut().rev() {
        let product = *digit * factor + carry;
        *digit = product % 10;
        carry = product / 10;
    }
    while carry > 0 {
        digits.insert(0, carry % 10);
        carry /= 10;
    }
}

/// The whole part of `whole.fraction` × 2^twos × 10^tens, on paper.
fn on_paper(whole: &str, fraction: &str, twos: u32, tens: i32) -> String {
    let mut digits: Vec<u32> = format!("0{whole}{fraction}").chars().map(|c| c.to_digit(10).unwrap()).collect();
    for _ in 0..twos {
        times(&mut digits, 2);
    }
    let point = i32::try_from(fraction.len()).unwrap() - tens;
    digits.resize(digits.len() + usize::try_from((-point).max(0)).unwrap(), 0);
    let dropped = usize::try_from(point.max(0)).unwrap().min(digits.len());
    digits.truncate(digits.len() - dropped);
    let text: String = digits.into_iter().map(|digit| char::from_digit(digit, 10).unwrap()).collect();
    let text = text.trim_start_matches('0').to_owned();
    if text.is_empty() { "0".to_owned() } else { text }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn bytes_are_exact_to_the_last(
        whole in "[0-9]{1,12}", fraction in "[0-9]{0,9}", suffix in proptest::sample::select(SUFFIXES.to_vec()),
    ) {
        let (unit, twos, tens) = suffix;
        let point = if fraction.is_empty() { "" } else { "." };
        let text = format!("{whole}{point}{fraction}{unit}");
        let expected = on_paper(&whole, &fraction, twos, tens).parse::<u64>().ok();
        let expected = expected.filter(|count| i64::try_from(*count).is_ok());
        prop_assert_eq!(bytes(&Quantity(text.clone())), expected, "{}", text);
    }

    #[test]
    fn whole_bytes_are_themselves_however_many(count in 0..i64::MAX) {
        prop_assert_eq!(bytes(&Quantity(count.to_string())), u64::try_from(count).ok());
    }

    #[test]
    fn a_memory_limit_is_judged_to_the_byte(memory in 16_i64..65536, difference in -3_i64..3) {
        let need = (memory + 32) << 20;
        for limit in [(need + difference).to_string(), format!("{}000m", need + difference)] {
            let spec = json!({"memcached": {"maxMemoryMB": memory}, "resources": {"limits": {"memory": limit}}});
            prop_assert_eq!(refused(&spec).is_empty(), difference >= 0, "{} for {}", limit, memory);
        }
    }

    #[test]
    fn any_text_gets_an_answer(text in "\\PC{0,24}") {
        let _ = bytes(&Quantity(text));
    }
}

#[test]
fn what_kubernetes_does_not_take_is_no_quantity() {
    for text in ["", ".", "Mi", "-1", "inf", "NaN", "infMi", "1e3Mi", "1 Mi", "0x10", "1e", "1e99999", "1mm", "+"] {
        assert_eq!(bytes(&Quantity(text.into())), None, "{text:?}");
    }
    for (text, expected) in
        [("+1", 1), ("1.", 1), (".5Ki", 512), ("1E3", 1000), ("1E", 10_u64.pow(18)), ("7Ei", 7 << 60)]
    {
        assert_eq!(bytes(&Quantity(text.into())), Some(expected), "{text:?}");
    }
}
