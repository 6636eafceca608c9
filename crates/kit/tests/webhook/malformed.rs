//! Whatever is sent, the server says what is wrong with it and goes on.

use std::io::Write;
use std::net::TcpStream;
use std::sync::Arc;

use http::{Method, Request};
use kube::Client;
use kube::client::Body;
use operator_kit::lease::Leadership;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use serde_json::{Value, json};

use crate::harness::Stage;
use crate::load::{call, caller, review};
use crate::replica::Replica;

const JSON: &str = "application/json";

fn request(method: Method, path: &str, media: &str, body: impl Into<Vec<u8>>) -> Request<Body> {
    let request = Request::builder().method(method).uri(path).header("content-type", media);
    request.body(Body::from(body.into())).unwrap()
}

fn post(body: impl Into<Vec<u8>>) -> Request<Body> {
    request(Method::POST, "/validate", JSON, body)
}

fn without(pointer: &str, value: Value) -> Request<Body> {
    let mut body = review("allow");
    *body.pointer_mut(pointer).unwrap() = value;
    post(body.to_string())
}

/// One of many kinds of nonsense, and what it is to be told.
fn nonsense(number: usize) -> (Request<Body>, u16) {
    let whole = review("allow").to_string();
    match number % 12 {
        0 => (request(Method::GET, "/validate", JSON, ""), 405),
        1 => (request(Method::DELETE, "/validate", JSON, whole), 405),
        2 => (request(Method::POST, "/validate", "text/plain", whole), 415),
        3 => (request(Method::POST, "/other", JSON, whole), 404),
        4 => (post(""), 400),
        5 => (post(whole.get(..whole.len() / 2).unwrap().to_owned()), 400),
        6 => (post([0xff, 0x00, 0x7b]), 400),
        7 => (post("[".repeat(50_000)), 400),
        8 => (without("/kind", json!("Pod")), 400),
        9 => (without("/request", json!(null)), 400),
        10 => (without("/request/object", json!("text")), 400),
        _ => (without("/request/uid", json!({})), 400),
    }
}

/// The answer; asked again when a connection turns out to have been closed after the answer before.
async fn status(client: &Client, request: impl Fn() -> Request<Body>) -> u16 {
    let answer = match client.send(request()).await {
        Ok(answer) => answer,
        Err(_) => client.send(request()).await.unwrap(),
    };
    answer.status().as_u16()
}

/// Announces a body, sends half of it and is gone.
fn hang_up(port: u16, bundle: &str) {
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(CertificateDer::pem_slice_iter(bundle.as_bytes()).map(Result::unwrap));
    let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let config = Arc::new(config.with_no_client_auth());
    let connection = ClientConnection::new(config, "127.0.0.1".try_into().unwrap()).unwrap();
    let mut stream = StreamOwned::new(connection, TcpStream::connect(("127.0.0.1", port)).unwrap());
    let head = "POST /validate HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: 1000\r\n\r\n{";
    stream.write_all(head.as_bytes()).unwrap();
    stream.flush().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_is_turned_away_and_the_server_goes_on() {
    let stage = Stage::new("malformed").await;
    let replica = Replica::start(&stage, Leadership::always()).await;
    stage.in_force().await;
    let (port, bundle) = (replica.port(), stage.bundle().await.unwrap());
    let client = caller(port, &bundle);

    for number in 0..1000 {
        assert_eq!(status(&client, || nonsense(number).0).await, nonsense(number).1, "number {number}");
    }
    for _ in 0..5 {
        let huge = post(vec![b' '; 8 << 20]);
        // Who is told in the middle of sending may see no more than the end of the connection.
        if let Ok(answer) = client.send(huge).await {
            assert_eq!(answer.status().as_u16(), 413);
        }
        let bundle = bundle.clone();
        tokio::task::spawn_blocking(move || hang_up(port, &bundle)).await.unwrap();
        TcpStream::connect(("127.0.0.1", port)).unwrap().write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    }
    let null = || without("/request/object", json!({"metadata": {"name": "one"}, "data": null, "spec": null}));
    assert_eq!(status(&client, null).await, 200, "what is in an object is for its reviewer to judge");

    call(port, &bundle).await.unwrap();
    stage.submit("allow").await.unwrap();
    let text = replica.metrics.encode().unwrap();
    let line = text.lines().find(|line| line.contains(r#"path="/validate",outcome="malformed""#)).unwrap();
    let count: u32 = line.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(count > 900, "{text}");
}
