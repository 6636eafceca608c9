//! A client that fills servers and counts what they have, over plain sockets and in large bites.

use std::net::SocketAddr;
use std::time::Duration;

use e2e::pod::address;
use k8s_openapi::api::core::v1::Pod;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;

const BITE: usize = 500;

/// Stores so many keys in a server.
pub async fn fill(pod: &Pod, count: usize) {
    let mut stream = connect(address(pod, 11211).unwrap()).await.unwrap();
    for first in (0..count).step_by(BITE) {
        let keys = first..(first + BITE).min(count);
        let bite: String =
            keys.map(|key| format!("set key-{key} 0 0 8 noreply\r\nvalue-{:02}\r\n", key % 100)).collect();
        stream.get_mut().write_all(bite.as_bytes()).await.unwrap();
    }
    stream.get_mut().write_all(b"version\r\n").await.unwrap();
    assert!(line(&mut stream).await.starts_with("VERSION"), "all were stored without a word");
    assert_eq!(kept(pod, count).await, count, "filled");
}

/// How many of so many keys a server has, each with its value.
pub async fn kept(pod: &Pod, count: usize) -> usize {
    let mut stream = connect(address(pod, 11211).unwrap()).await.unwrap();
    let mut found = 0;
    for first in (0..count).step_by(BITE) {
        let keys: String = (first..(first + BITE).min(count)).map(|key| format!(" key-{key}")).collect();
        stream.get_mut().write_all(format!("get{keys}\r\n").as_bytes()).await.unwrap();
        loop {
            let head = line(&mut stream).await;
            if head == "END" {
                break;
            }
            let key: usize = head.split([' ', '-']).nth(2).unwrap().parse().unwrap();
            let value = line(&mut stream).await;
            found += usize::from(value == format!("value-{:02}", key % 100));
        }
    }
    found
}

/// Opens a connection, and says why not if there is none.
pub async fn connect(address: SocketAddr) -> Result<BufReader<TcpStream>, String> {
    let connected = tokio::time::timeout(Duration::from_secs(5), TcpStream::connect(address)).await;
    let stream = connected.map_err(|_| "no answer".to_owned())?.map_err(|error| error.to_string())?;
    Ok(BufReader::new(stream))
}

/// The next line of an answer; empty at the end.
pub async fn line(stream: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    // A connection that breaks has no more to say.
    stream.read_line(&mut line).await.ok();
    line.trim_end().to_owned()
}
