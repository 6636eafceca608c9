//! Whatever happens to memcached, or pretends to be one: the exporter says so, stays small, and goes on.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use testbed::Server;

use super::harness::{Exporter, Scrape, client, traffic};

/// For those who will never answer.
const HASTE: &str = "300ms";

/// Behaves like this towards everybody, a thread each: tests wait for their scrapes without yielding.
fn impostor(behave: fn(TcpStream)) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || listener.incoming().flatten().for_each(|stream| drop(thread::spawn(move || behave(stream)))));
    address
}

fn say(mut stream: TcpStream, answer: &[u8]) {
    while stream.read(&mut [0; 1024]).is_ok_and(|read| read > 0) && stream.write_all(answer).is_ok() {}
}

fn repeat(mut stream: TcpStream, words: &[u8]) {
    while stream.write_all(words).is_ok() {}
}

#[tokio::test]
async fn nobody_there_is_down_and_somebody_later_is_up() {
    let mut server = Server::start(&[]).await.unwrap();
    server.kill();
    let mut exporter = Exporter::of(server.address(), &[]).await;
    assert!(exporter.scrape().is_down());
    assert!(exporter.scrape().is_down());
    server.restart().await.unwrap();
    assert!(exporter.scrape().is_up());
    exporter.has_told("memcached is up again").await;
    assert_eq!(exporter.log().matches("memcached is down").count(), 1, "told once: {}", exporter.log());
    assert!(exporter.is_alive());
}

#[tokio::test]
async fn a_restart_between_scrapes_goes_unnoticed() {
    let mut server = Server::start(&[]).await.unwrap();
    let exporter = Exporter::of(server.address(), &[]).await;
    for _ in 0..3 {
        assert!(exporter.scrape().is_up());
        server.restart().await.unwrap();
    }
    assert!(exporter.scrape().is_up());
}

#[tokio::test]
async fn a_frozen_memcached_is_down_and_thawed_it_is_up() {
    let server = Server::start(&[]).await.unwrap();
    let mut exporter = Exporter::within("1s", server.address(), &[]).await;
    exporter.eventually("figures", Scrape::is_up).await;
    server.freeze();
    assert!(exporter.scrape().is_down());
    assert!(exporter.scrape().is_down(), "a new connection is no better");
    assert!(exporter.is_alive());
    server.thaw();
    exporter.eventually("figures again", Scrape::is_up).await;
}

#[tokio::test]
async fn scrapes_together_end_together_though_memcached_hangs() {
    let server = Server::start(&[]).await.unwrap();
    server.freeze();
    let exporter = Arc::new(Exporter::within(HASTE, server.address(), &[]).await);
    let scrapes: Vec<_> = (0..10)
        .map(|_| {
            let exporter = exporter.clone();
            thread::spawn(move || exporter.scrape())
        })
        .collect();
    for scrape in scrapes {
        assert!(scrape.join().unwrap().is_down());
    }
}

#[tokio::test]
async fn many_scrapes_take_one_connection() {
    let server = Server::start(&[]).await.unwrap();
    let exporter = Arc::new(Exporter::of(server.address(), &[]).await);
    let before = exporter.scrape();
    let scrapes: Vec<_> = (0..20)
        .map(|_| {
            let exporter = exporter.clone();
            thread::spawn(move || exporter.scrape())
        })
        .collect();
    for scrape in scrapes {
        assert!(scrape.join().unwrap().is_up());
    }
    let after = exporter.scrape();
    for series in ["memcached_connections_total", "memcached_current_connections"] {
        assert!((after.value(series) - before.value(series)).abs() < 0.5, "{series}: {}", after.value(series));
    }
}

#[tokio::test]
async fn whatever_impostors_say_it_is_down_and_small() {
    let hostile: [fn(TcpStream); 8] = [
        |stream| say(stream, b"\x16\x03\x01 no memcached\r\n"),
        |stream| say(stream, b"HTTP/1.1 400 Bad Request\r\n\r\n"),
        |stream| say(stream, b"STAT version 1\r\nSTAT uptime banana\r\nEND\r\n"),
        |stream| say(stream, b"STAT version 1\r\nSTAT items:x:number 1\r\nSTAT items:1:number NaN\r\nEND\r\n"),
        |stream| say(stream, b"END\r\n"),
        |stream| repeat(stream, &[b'x'; 4096]),
        |stream| repeat(stream, b"STAT pid 1\r\n"),
        |stream| drop(stream),
    ];
    for (number, behave) in hostile.into_iter().enumerate() {
        let mut exporter = Exporter::of(impostor(behave), &[]).await;
        for _ in 0..3 {
            let scrape = exporter.scrape();
            assert!(scrape.is_down(), "impostor {number}: {scrape:?}");
        }
        assert!(exporter.is_alive());
        assert!(exporter.peak_kib() < 64 << 10, "impostor {number} made it take {} KiB", exporter.peak_kib());
    }
}

#[tokio::test]
async fn an_endless_answer_drop_by_drop_ends_with_the_scrape() {
    let slow = impostor(|mut stream| {
        while stream.write_all(b"STAT a 1\r\n").is_ok() {
            thread::sleep(std::time::Duration::from_millis(20));
        }
    });
    let mut exporter = Exporter::within(HASTE, slow, &[]).await;
    assert!(exporter.scrape().is_down());
    assert!(exporter.is_alive());
}

#[tokio::test]
async fn hostile_labels_stay_in_their_quotes() {
    let liar = impostor(|stream| {
        say(stream, b"STAT version 1\"} 1\\\r\nSTAT uptime 3\r\nSTAT lru_crawler no\r\nEND\r\n");
    });
    let scrape = Exporter::of(liar, &[]).await.scrape();
    assert!(scrape.samples.contains_key(r#"memcached_version{version="1\"} 1\\"}"#), "{scrape:?}");
}

#[tokio::test]
async fn clients_that_ask_for_nothing_do_not_keep_scrapers_out() {
    let server = Server::start(&[]).await.unwrap();
    let exporter = Exporter::of(server.address(), &[]).await;
    let _idle: Vec<TcpStream> = (0..200).map(|_| TcpStream::connect(exporter.address).unwrap()).collect();
    assert!(exporter.scrape().is_up());
}

#[tokio::test]
async fn it_does_not_grow_with_scrapes() {
    let server = Server::start(&[]).await.unwrap();
    traffic(&mut client(server.address()).await).await;
    let exporter = Exporter::of(server.address(), &[]).await;
    let scrape = |count: usize| {
        for _ in 0..count {
            assert!(exporter.scrape().is_up());
        }
        exporter.peak_kib()
    };
    let warm = scrape(50);
    let later = scrape(500);
    assert!(later < warm + (4 << 10), "{warm} KiB after 50 scrapes, {later} KiB after 550");
}
