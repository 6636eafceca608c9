//! The pod's annotations, as the kubelet writes them into a downward-API volume: a line each, `key="value"`, quoted as Go
//! quotes strings.

use std::collections::BTreeMap;
use std::iter::Peekable;
use std::str::Chars;

/// The annotations of a file. A line that makes no sense is left out: others are none the worse for it.
pub fn parse(text: &str) -> BTreeMap<String, String> {
    text.lines().filter_map(line).collect()
}

fn line(line: &str) -> Option<(String, String)> {
    let (key, quoted) = line.split_once('=')?;
    Some((key.to_owned(), unquote(quoted)?))
}

/// The text that Go's `strconv.Quote` has quoted.
fn unquote(quoted: &str) -> Option<String> {
    let inner = quoted.strip_prefix('"')?.strip_suffix('"')?;
    let mut bytes = Vec::with_capacity(inner.len());
    let mut rest = inner.chars().peekable();
    while let Some(next) = rest.next() {
        match next {
            '"' => return None,
            '\\' => bytes.extend(escaped(&mut rest)?),
            other => bytes.extend(other.encode_utf8(&mut [0; 4]).bytes()),
        }
    }
    String::from_utf8(bytes).ok()
}

/// What an escape stands for; a byte alone is a part of a character.
fn escaped(rest: &mut Peekable<Chars<'_>>) -> Option<Vec<u8>> {
    let byte = match rest.next()? {
        'a' => 0x07,
        'b' => 0x08,
        'f' => 0x0c,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 0x0b,
        '\\' => b'\\',
        '"' => b'"',
        'x' => u8::try_from(hexadecimal(rest, 2)?).ok()?,
        'u' => return character(hexadecimal(rest, 4)?),
        'U' => return character(hexadecimal(rest, 8)?),
        _ => return None,
    };
    Some(vec![byte])
}

fn hexadecimal(rest: &mut Peekable<Chars<'_>>, digits: usize) -> Option<u32> {
    let mut number: u32 = 0;
    for _ in 0..digits {
        number = number.checked_mul(16)?.checked_add(rest.next()?.to_digit(16)?)?;
    }
    Some(number)
}

fn character(code: u32) -> Option<Vec<u8>> {
    Some(char::from_u32(code)?.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_as_they_were_before_the_kubelet_quoted_them() {
        let text = r#"memcached.c5c3.io/args="[\"-m\",\"64\"]"
note="two\nlines\tand a \\, an \u00e9, an \U0001f980, \x41"
plain="x""#;
        let annotations = parse(text);
        assert_eq!(annotations["memcached.c5c3.io/args"], r#"["-m","64"]"#);
        assert_eq!(annotations["note"], "two\nlines\tand a \\, an é, an 🦀, A");
        assert_eq!(annotations["plain"], "x");
    }

    #[test]
    fn garbage_is_left_out_and_takes_nothing_with_it() {
        for bad in ["", "x", "x=", "x=\"", "x=\"\\\"", "x=\"\\q\"", "x=\"\\xff\"", "x=\"\\ud800\"", "x=\"a\"b\"", "=\\"]
        {
            let text = format!("{bad}\ngood=\"1\"");
            assert_eq!(parse(&text).into_iter().filter(|(key, _)| key == "good").count(), 1, "{bad}");
            assert!(!parse(&text).contains_key("x"), "{bad}");
        }
    }
}
