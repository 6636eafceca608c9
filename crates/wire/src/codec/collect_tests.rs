use super::*;
use crate::meta::MetaStatus;

fn answer<C: Collect>(bytes: &str, mut collector: C) -> Result<Option<C::Output>, Refusal> {
    let mut decoder = Decoder::default();
    decoder.feed(bytes.as_bytes());
    collect(&mut decoder, &mut collector)
}

fn key() -> Key {
    Key::new("k").unwrap()
}

#[test]
fn statistics_end_with_end() {
    let stats = answer("STAT pid 1\r\nSTAT domain_socket \r\nSTAT inter a b\r\nEND\r\n", StatLines::default());
    let stats = stats.unwrap().unwrap();
    assert_eq!(stats.get("pid"), Some("1"));
    assert_eq!(stats.get("domain_socket"), Some(""));
    assert_eq!(stats.get("inter"), Some("a b"));
    assert_eq!(answer("STAT pid 1\r\n", StatLines::default()), Ok(None));
}

#[test]
fn a_no_is_told_from_nonsense() {
    let refused = |text: &str| answer(text, StatLines::default()).unwrap_err().into_error("read");
    assert!(matches!(refused("ERROR\r\n"), Error::Answered { answer, .. } if answer == "ERROR"));
    assert!(matches!(refused("CLIENT_ERROR unauthenticated\r\n"), Error::LoginRequired));
    assert!(matches!(refused("CLIENT_ERROR authentication failure\r\n"), Error::LoginRefused));
    for nonsense in ["HTTP/1.1 400 Bad Request\r\n", "\r\n", "ERRORS\r\n", "VA 1\r\nx\r\n"] {
        assert!(matches!(refused(nonsense), Error::Protocol(_)), "{nonsense}");
    }
}

#[test]
fn only_the_key_that_was_asked_for_is_taken() {
    let value = answer("VALUE k 5 3 77\r\nabc\r\nEND\r\n", Values::of(&key()));
    assert_eq!(value, Ok(Some(Some(Value { flags: 5, data: "abc".into() }))));
    assert_eq!(answer("END\r\n", Values::of(&key())), Ok(Some(None)));
    for wrong in [
        "VALUE other 0 1\r\nx\r\nEND\r\n",
        "VALUE k 0 1\r\nx\r\nVALUE k 0 1\r\nx\r\nEND\r\n",
        "VALUE k -1 1\r\nx\r\nEND\r\n",
        "VA 1\r\nx\r\n",
        "STORED\r\n",
    ] {
        assert!(matches!(answer(wrong, Values::of(&key())), Err(Refusal::ProtocolViolation(_))), "{wrong}");
    }
}

#[test]
fn a_batch_has_as_many_answers_as_questions() {
    let replies = answer("HD\r\nSERVER_ERROR out of memory\r\nNS\r\nMN\r\n", Batch::of(3)).unwrap().unwrap();
    assert_eq!(replies[0].as_ref().unwrap().status, MetaStatus::Done);
    assert!(matches!(&replies[1], Err(Refusal::Answer(_))));
    for wrong in ["HD\r\nMN\r\n", "HD\r\nHD\r\nHD\r\nHD\r\n", "MN\r\n"] {
        assert!(matches!(answer(wrong, Batch::of(3)), Err(Refusal::ProtocolViolation(_))), "{wrong}");
    }
}

#[test]
fn a_listing_begins_with_ok_or_without() {
    let item = "key=a%20b exp=-1 la=17 cas=2 fetch=yes cls=1 size=67 flags=5 \n";
    for begin in ["OK\r\n", ""] {
        let first = answer(&format!("{begin}{item}"), Dump::default()).unwrap().unwrap().unwrap();
        assert_eq!(first.key, b"a b");
    }
    assert_eq!(answer("OK\r\nEND\r\n", Dump::default()), Ok(Some(None)));
    assert!(matches!(answer("BUSY try later\r\n", Dump::default()), Err(Refusal::Answer(_))));
    assert!(matches!(answer("OK\r\nOK\r\n", Dump::default()), Err(Refusal::ProtocolViolation(_))));
}
