//! Servers that are no memcached: whatever they say, the client ends, and keeps little of it.

use std::net::SocketAddr;
use std::time::Duration;

use memcached_wire::{Error, ErrorClass, ProtocolViolation, Report};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use super::{endpoint, hasty, key};

/// Answers everybody the same; ends with its guard.
struct Impostor {
    address: SocketAddr,
    task: JoinHandle<()>,
}

impl Drop for Impostor {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn impostor<F: Future<Output = ()> + Send + 'static>(behave: fn(TcpStream) -> F) -> Impostor {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let task = tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(behave(stream));
        }
    });
    Impostor { address, task }
}

/// Says it once something was asked, and stays.
async fn say(mut stream: TcpStream, answer: &[u8]) {
    let mut asked = [0; 1024];
    while stream.read(&mut asked).await.is_ok_and(|read| read > 0) {
        stream.write_all(answer).await.ok();
    }
}

/// Says it again and again until nobody listens.
async fn repeat(mut stream: TcpStream, words: &[u8]) {
    while stream.write_all(words).await.is_ok() {}
}

async fn asked(impostor: &Impostor) -> Error {
    endpoint(impostor.address).connect().await.unwrap().stats(Report::General).await.unwrap_err()
}

#[tokio::test]
async fn garbage_is_a_broken_protocol() {
    let garbage = impostor(|stream| say(stream, b"\x15\x03\x03\0\x02\x02\x16 no memcached\r\n")).await;
    assert_eq!(asked(&garbage).await.class(), ErrorClass::Protocol);
    let web = impostor(|stream| say(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n")).await;
    assert!(asked(&web).await.to_string().contains("HTTP/1.1 400"));
}

#[tokio::test]
async fn an_endless_line_is_cut_off() {
    let endless = impostor(|stream| repeat(stream, &[b'x'; 4096])).await;
    let error = asked(&endless).await;
    assert!(
        matches!(error, Error::Protocol(ProtocolViolation::LongLine { .. } | ProtocolViolation::Unsolicited)),
        "{error}"
    );
}

#[tokio::test]
async fn endless_statistics_are_cut_off() {
    let endless = impostor(|stream| repeat(stream, b"STAT pid 1\r\n")).await;
    let error = asked(&endless).await;
    assert!(matches!(error, Error::Protocol(ProtocolViolation::LargeReply { .. })), "{error}");
}

#[tokio::test]
async fn a_huge_announced_value_is_not_waited_for() {
    let huge = impostor(|stream| say(stream, b"VALUE k 0 18446744073709551615\r\n")).await;
    let mut connection = endpoint(huge.address).connect().await.unwrap();
    let error = connection.get(&key("k")).await.unwrap_err();
    assert!(matches!(error, Error::Protocol(ProtocolViolation::LargeValue { .. })), "{error}");
}

#[tokio::test]
async fn an_answer_drop_by_drop_ends_at_the_deadline_all_the_same() {
    let slow = impostor(|mut stream| async move {
        for _ in 0.. {
            if stream.write_all(b"STAT a 1\r\n").await.is_err() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    let mut connection = hasty(slow.address).await;
    assert_eq!(connection.stats(Report::General).await.unwrap_err().class(), ErrorClass::Timeout);
}

#[tokio::test]
async fn half_an_answer_and_the_end_is_closed() {
    let half = impostor(|mut stream| async move {
        stream.read_exact(&mut [0; b"stats\r\n".len()]).await.ok();
        stream.write_all(b"STAT pid 1\r\nSTA").await.ok();
    })
    .await;
    assert_eq!(asked(&half).await.class(), ErrorClass::Closed);
}

#[tokio::test]
async fn whoever_reads_nothing_ends_at_the_deadline() {
    let deaf = impostor(|stream| async move {
        tokio::time::sleep(Duration::from_secs(600)).await;
        drop(stream);
    })
    .await;
    let mut connection = hasty(deaf.address).await;
    let much = vec![0; 64 << 20];
    let error = connection.set(&key("k"), &much, 0, memcached_wire::Expiry::NEVER).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
}
