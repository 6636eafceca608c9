//! A real server that hangs, dies, or is not there.

use std::net::TcpListener;

use memcached_wire::{Endpoint, ErrorClass, Expiry};
use testbed::Server;

use super::{connect, endpoint, hasty, key};

#[tokio::test]
async fn nobody_there_is_refused() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let error = endpoint(address).connect().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Refused, "{error}");
    assert!(error.to_string().contains(&address.to_string()), "{error}");
}

#[tokio::test]
async fn a_name_that_nobody_has_is_refused() {
    for name in ["no-such-host.invalid:11211", "no port", "127.0.0.1:99999"] {
        let error = Endpoint::new(name).with_deadline(super::DEADLINE).connect().await.unwrap_err();
        assert_eq!(error.class(), ErrorClass::Refused, "{name}: {error}");
    }
}

#[tokio::test]
async fn a_frozen_server_is_left_at_the_deadline() {
    let server = Server::start(&[]).await.unwrap();
    let mut connection = hasty(server.address()).await;
    server.freeze();
    let error = connection.version().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
    assert!(!connection.is_usable(), "a late answer would be taken for that to the next request");
    // The kernel still accepts: the silence shows only when something is asked.
    let error = hasty(server.address()).await.set(&key("k"), b"x", 0, Expiry::NEVER).await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Timeout, "{error}");
    server.thaw();
    connect(&server).await.version().await.expect("thawed, it answers others");
}

#[tokio::test]
async fn a_killed_server_closes_the_connection() {
    let mut server = Server::start(&[]).await.unwrap();
    let mut connection = connect(&server).await;
    connection.version().await.unwrap();
    server.kill();
    let error = connection.version().await.unwrap_err();
    assert_eq!(error.class(), ErrorClass::Closed, "{error}");
    assert_eq!(endpoint(server.address()).connect().await.unwrap_err().class(), ErrorClass::Refused);
    server.restart().await.unwrap();
    connect(&server).await.version().await.unwrap();
}

#[tokio::test]
async fn a_full_server_says_so() {
    let server = Server::start(&["-t", "1", "-c", "15"]).await.unwrap();
    let mut open = Vec::new();
    for _ in 0..100 {
        let mut connection = connect(&server).await;
        match connection.version().await {
            Ok(_) => open.push(connection),
            Err(error) => {
                assert!(matches!(error.class(), ErrorClass::Answered | ErrorClass::Closed), "{error}");
                return;
            }
        }
    }
    panic!("100 connections where 15 are allowed");
}
