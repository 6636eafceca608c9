use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::codec::{Line, StatLines};
use crate::key::Key;
use crate::stats::Report;
use crate::{Expiry, Meta};

/// Longer than a test takes on any machine, unless it waits for it.
const LONG: Duration = Duration::from_secs(300);

fn pair(deadline: Duration) -> (Connection<DuplexStream>, DuplexStream) {
    let (ours, theirs) = duplex(64);
    (Connection::new(ours, Limits::default(), deadline), theirs)
}

/// A connection to somebody who says this, whatever is asked, and then listens.
fn told(answer: &'static [u8]) -> Connection<DuplexStream> {
    let (connection, mut theirs) = pair(LONG);
    tokio::spawn(async move {
        theirs.write_all(answer).await.ok();
        tokio::io::copy(&mut theirs, &mut tokio::io::sink()).await.ok();
    });
    connection
}

#[tokio::test]
async fn a_request_given_up_half_way_closes_the_connection() {
    let (mut connection, _theirs) = pair(LONG);
    let given_up = timeout(Duration::from_millis(1), connection.version()).await;
    assert!(given_up.is_err());
    assert!(!connection.is_usable());
    assert_eq!(connection.version().await.unwrap_err().class(), ErrorClass::Closed);
}

#[tokio::test]
async fn silence_ends_at_the_deadline() {
    let (mut connection, _theirs) = pair(Duration::from_millis(5));
    assert_eq!(connection.version().await.unwrap_err().class(), ErrorClass::Timeout);
    assert!(!connection.is_usable());
}

#[tokio::test]
async fn an_answer_to_nothing_closes_the_connection() {
    let mut connection = told(b"VERSION 1\r\nVERSION 2\r\n");
    assert_eq!(connection.version().await.unwrap(), "1");
    let error = connection.version().await.unwrap_err();
    assert!(matches!(error, Error::Protocol(ProtocolViolation::Unsolicited)), "{error}");
}

#[tokio::test]
async fn a_no_leaves_the_connection_open() {
    let mut connection = told(b"ERROR\r\n");
    let error = connection.exchange(&Request::stats(Report::General), StatLines::default()).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Answered);
    assert!(connection.is_usable());
}

#[tokio::test]
async fn a_refused_line_may_leave_its_value_to_be_read_as_a_request() {
    let key = Key::new("k").unwrap();
    let mut connection = told(b"CLIENT_ERROR bad command line format\r\n");
    connection.set(&key, b"flush_all", 0, Expiry::NEVER).await.unwrap_err();
    assert!(!connection.is_usable());
    let mut connection = told(b"SERVER_ERROR object too large for cache\r\n");
    connection.set(&key, b"x", 0, Expiry::NEVER).await.unwrap_err();
    assert!(connection.is_usable());
}

#[tokio::test]
async fn the_other_side_may_answer_before_it_has_read_all() {
    // A pipe of 64 bytes: whoever sends everything before reading anything waits for ever.
    let (mut connection, theirs) = pair(LONG);
    let (mut reader, mut writer) = tokio::io::split(theirs);
    tokio::spawn(async move {
        for _ in 0..100 {
            writer.write_all(b"HD\r\n").await.ok();
        }
        let mut read = 0;
        let mut chunk = [0; 1000];
        while read < 100 * b"mg k\r\n".len() {
            read += reader.read(&mut chunk).await.unwrap();
        }
        writer.write_all(b"MN\r\n").await.ok();
        // Both halves live until the client is gone.
        reader.read_to_end(&mut Vec::new()).await.ok();
    });
    let commands = vec![Meta::get(Key::new("k").unwrap()); 100];
    assert_eq!(connection.batch(&commands).await.unwrap().len(), 100);
}

#[tokio::test]
async fn the_reason_is_heard_though_the_door_closes() {
    let (mut connection, mut theirs) = pair(LONG);
    tokio::spawn(async move {
        theirs.write_all(b"ERROR Too many open connections\r\n").await.ok();
    });
    tokio::task::yield_now().await;
    let value = vec![0; 1000];
    let request = Request::set(&Key::new("k").unwrap(), &value, 0, Expiry::NEVER);
    let error = connection.exchange(&request, Line(|_| Some(()))).await.unwrap_err();
    assert!(error.to_string().contains("Too many open connections"), "{error}");
}
