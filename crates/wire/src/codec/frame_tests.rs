use proptest::collection::vec;
use proptest::prelude::*;

use super::*;

fn small() -> Limits {
    Limits { line: 64, value: 100, reply: 1000 }
}

/// All frames of the input, fed in these pieces, and what ended them.
fn decode<'a>(limits: Limits, pieces: impl IntoIterator<Item = &'a [u8]>) -> (Vec<Frame>, Option<ProtocolViolation>) {
    let mut decoder = Decoder::new(limits);
    let mut frames = Vec::new();
    for piece in pieces {
        decoder.feed(piece);
        loop {
            match decoder.next() {
                Ok(Some(frame)) => frames.push(frame),
                Ok(None) => break,
                Err(violation) => return (frames, Some(violation)),
            }
        }
    }
    (frames, None)
}

fn encode(frames: &[Frame]) -> Vec<u8> {
    let parts = |frame: &Frame| match frame {
        Frame::Line(line) => [line, END].concat(),
        Frame::Value { header, data } => [header, END, data, END].concat(),
    };
    frames.iter().flat_map(parts).collect()
}

fn word() -> impl Strategy<Value = String> {
    "[!-~]{1,20}"
}

fn frame() -> impl Strategy<Value = Frame> {
    let data = || vec(any::<u8>(), 0..80);
    prop_oneof![
        "[A-Z]{2,5}( [!-~]{1,10}){0,3}"
            .prop_filter("a value", |line| !line.starts_with("VA ") && !line.starts_with("VALUE "))
            .prop_filter("a value", |line| line != "VA" && line != "VALUE")
            .prop_map(|line| Frame::Line(line.into())),
        (word(), any::<u32>(), data()).prop_map(|(key, flags, data)| Frame::Value {
            header: format!("VALUE {key} {flags} {}", data.len()).into(),
            data: data.into(),
        }),
        (word(), data()).prop_map(|(flag, data)| Frame::Value {
            header: format!("VA {} {flag}", data.len()).into(),
            data: data.into()
        }),
    ]
}

/// The input cut at these places.
fn cut<'a>(bytes: &'a [u8], places: &[prop::sample::Index]) -> Vec<&'a [u8]> {
    let mut places: Vec<usize> = places.iter().map(|place| place.index(bytes.len() + 1)).collect();
    places.extend([0, bytes.len()]);
    places.sort_unstable();
    places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect()
}

proptest! {
    #[test]
    fn what_is_encoded_is_decoded(frames in vec(frame(), 0..10), places in vec(any::<prop::sample::Index>(), 0..20)) {
        let bytes = encode(&frames);
        prop_assert_eq!(decode(Limits::default(), cut(&bytes, &places)), (frames, None));
    }

    #[test]
    fn any_bytes_in_any_pieces_give_the_same(
        noise in vec(prop_oneof![Just(b"VA 3 x\r\n".to_vec()), Just(b"\r\n".to_vec()), vec(any::<u8>(), 0..30)], 0..20),
        places in vec(any::<prop::sample::Index>(), 0..20),
    ) {
        let bytes = noise.concat();
        let whole = decode(small(), [&bytes[..]]);
        prop_assert_eq!(&decode(small(), cut(&bytes, &places)), &whole);
        prop_assert_eq!(decode(small(), bytes.chunks(1)), whole);
    }
}

#[test]
fn an_endless_line_is_an_error_before_it_fills_the_memory() {
    let mut decoder = Decoder::new(small());
    let mut largest = 0;
    for _ in 0..1000 {
        decoder.feed(b"xxxxxxxxxxxxxxxx");
        decoder.next().ok();
        largest = largest.max(decoder.buffered());
    }
    assert_eq!(decoder.next(), Err(ProtocolViolation::LongLine { limit: 64 }));
    assert!(largest <= 64 + 16, "{largest}");
}

#[test]
fn a_huge_announced_value_is_an_error_at_once() {
    for (line, announced) in [("VA 101", 101), ("VALUE k 0 18446744073709551615", u64::MAX)] {
        let (_, violation) = decode(small(), [format!("{line}\r\n").as_bytes()]);
        assert_eq!(violation, Some(ProtocolViolation::LargeValue { announced, limit: 100 }), "{line}");
    }
}

#[test]
fn a_size_that_is_no_number_is_an_error() {
    for line in ["VA", "VA ", "VA -1", "VA +1", "VA 99999999999999999999", "VALUE", "VALUE k 0", "VALUE k 0 x"] {
        let (_, violation) = decode(small(), [format!("{line}\r\n").as_bytes()]);
        assert!(matches!(violation, Some(ProtocolViolation::Unexpected { .. })), "{line}: {violation:?}");
    }
}

#[test]
fn a_value_that_goes_on_is_an_error() {
    assert_eq!(decode(small(), [&b"VA 2\r\nabc\r\n"[..]]).1, Some(ProtocolViolation::Unterminated));
}

#[test]
fn an_answer_that_goes_on_and_on_is_an_error_and_a_new_one_counts_anew() {
    let line = [b"x".repeat(60), END.to_vec()].concat();
    let (frames, violation) = decode(small(), std::iter::repeat_n(&line[..], 100));
    assert_eq!(frames.len(), 8);
    assert_eq!(violation, Some(ProtocolViolation::LargeReply { limit: 1000 }));
    let mut decoder = Decoder::new(small());
    for _ in 0..100 {
        decoder.begin_reply();
        decoder.feed(&line);
        assert!(matches!(decoder.next(), Ok(Some(Frame::Line(_)))));
    }
}

#[test]
fn after_a_violation_nothing_is_kept() {
    let mut decoder = Decoder::new(small());
    decoder.feed(b"VA x\r\nEND\r\n");
    let violation = decoder.next().unwrap_err();
    decoder.feed(&[0; 1000]);
    assert_eq!(decoder.next(), Err(violation));
    assert_eq!(decoder.buffered(), 0);
}
