//! A real memcached as a process: it answers, freezes, dies and leaves nothing behind.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use testbed::Server;
use testbed::artifact::MEMCACHED;

/// One line sent, one line back.
fn ask(address: SocketAddr, line: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_millis(500)))?;
    write!(stream, "{line}\r\n")?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    Ok(answer)
}

#[tokio::test]
async fn it_is_the_memcached_that_the_image_holds() {
    let server = Server::start(&["-m", "16"]).await.unwrap();
    assert_eq!(ask(server.address(), "version").unwrap(), format!("VERSION {MEMCACHED}\r\n"));
}

#[tokio::test]
async fn every_listener_answers() {
    let server = Server::listening(&["", "proto[ascii]:"], &[]).await.unwrap();
    let addresses = server.addresses();
    assert_eq!(addresses.len(), 2);
    for address in addresses {
        assert!(ask(address, "version").unwrap().starts_with("VERSION"));
    }
}

#[tokio::test]
async fn frozen_it_is_silent_and_thawed_it_answers() {
    let server = Server::start(&[]).await.unwrap();
    server.freeze();
    ask(server.address(), "version").expect_err("nobody is there to answer");
    server.thaw();
    testbed::wait::until("an answer", 120, async || ask(server.address(), "version").map_err(|e| e.to_string()))
        .await
        .unwrap();
}

#[tokio::test]
async fn killed_it_is_gone_and_restarted_it_is_where_it_was() {
    let mut server = Server::start(&[]).await.unwrap();
    let address = server.address();
    server.kill();
    assert!(TcpStream::connect(address).is_err());
    server.restart().await.unwrap();
    assert!(ask(address, "version").unwrap().starts_with("VERSION"));
    drop(server);
    assert!(TcpStream::connect(address).is_err(), "it outlived its guard");
}

#[tokio::test]
async fn arguments_it_does_not_take_are_shown_with_what_it_said() {
    let error = Server::start(&["-I", "17k"]).await.unwrap_err().to_string();
    assert!(error.contains("memcached failed") && error.contains("slab_chunk_max"), "{error}");
}
