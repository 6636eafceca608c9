//! The program: its help, its ends, its addresses.

use std::net::TcpListener;
use std::process::{Command, Output};

use rustix::process::Signal;
use testbed::Server;

use super::harness::Exporter;

const AGENT: &str = env!("CARGO_BIN_EXE_memcached-agent");

fn agent(arguments: &[&str]) -> Output {
    Command::new(AGENT).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[test]
fn help_teaches_by_example() {
    let help = text(&agent(&["exporter", "--help"]).stdout);
    for words in ["Examples:", "--credentials-file", "--tls-server-name", "memcached_up", "/metrics"] {
        assert!(help.contains(words), "{words} is missing in:\n{help}");
    }
}

#[test]
fn bad_flags_are_refused_with_a_sentence() {
    for (arguments, words) in [
        (&["exporter", "--tls"][..], "--tls-ca-file"),
        (&["exporter", "--listen", "nowhere"], "neither host:port nor :port"),
        (&["exporter", "--timeout", "soon"], "500ms or 5s"),
        (&[], "exporter"),
    ] {
        let output = agent(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(text(&output.stderr).contains(words), "{}", text(&output.stderr));
    }
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = agent(&["exporter", "--listen", &address]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stderr);
    assert!(said.contains(&format!("error: failed to listen at {address}: ")), "{said}");
}

#[tokio::test]
async fn signals_end_it_in_peace() {
    let server = Server::start(&[]).await.unwrap();
    for signal in [Signal::TERM, Signal::INT] {
        let mut exporter = Exporter::of(server.address(), &[]).await;
        exporter.scrape();
        assert!(exporter.stop(signal).await.success(), "{}", exporter.log());
    }
}

#[tokio::test]
async fn health_is_its_own_and_not_memcacheds() {
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let exporter = Exporter::of(nobody, &[]).await;
    assert!(exporter.request("GET", "/healthz").ends_with("\r\n\r\nok\n"));
    assert!(exporter.request("GET", "/").contains("/metrics"));
    assert!(exporter.request("GET", "/other").starts_with("HTTP/1.1 404"));
    assert!(exporter.request("POST", "/metrics").starts_with("HTTP/1.1 405"));
    let head = exporter.request("HEAD", "/metrics");
    assert!(head.starts_with("HTTP/1.1 200") && head.ends_with("\r\n\r\n"), "{head}");
}

#[tokio::test]
async fn without_a_host_it_listens_at_every_address() {
    let exporter = Exporter::start(&["--listen=:0", "--memcached=127.0.0.1:1"]).await;
    let port = exporter.address.port();
    std::net::TcpStream::connect(("127.0.0.1", port)).expect("IPv4");
    if exporter.address.is_ipv6() {
        std::net::TcpStream::connect(("::1", port)).expect("IPv6");
    }
}
