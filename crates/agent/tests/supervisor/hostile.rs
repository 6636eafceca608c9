//! Garbage in annotations and on its port, and many restarts: it stays as small as it was.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use super::harness::Pod;

/// What it may take of the container's memory.
const LARGEST_KIB: u64 = 16 << 10;

#[tokio::test]
async fn garbage_in_annotations_and_on_its_port_changes_nothing() {
    let pod = Pod::new();
    let agent = pod.start(&[], &pod.warm(&[]));
    agent.ready(0).await;
    let long = vec![b'x'; 1 << 20];
    for garbage in [&b"\xff\xfe\x00"[..], b"memcached.c5c3.io/args=\"[\"", b"=\n=\"\"\n", &long] {
        pod.swap("annotations", garbage);
        tokio::time::sleep(Duration::from_millis(600)).await;
    }
    for bad in ["[\"-d\"]", "{\"not\": \"a list\"}"] {
        pod.annotate(&[("args", bad)]);
        agent.eventually("it to be told", |status| status["orders"]["error"].is_string()).await;
    }
    let status = agent.eventually("it to be told", |status| status["orders"]["error"].is_string()).await;
    assert_eq!((&status["memcached"]["restarts"], &status["memcached"]["phase"]), (&0.into(), &"Ready".into()));
    let address = agent.status_address().await;
    for garbage in [&b"\x16\x03\x01\x02\x00"[..], b"GET / HTTP/9\r\n\r\n", &long, b"", b"POST /status HTTP/1.1\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        stream.write_all(garbage).ok();
        stream.shutdown(std::net::Shutdown::Write).ok();
        stream.read_to_end(&mut Vec::new()).ok();
    }
    // As many as it takes at once, each with a request that does not end.
    let crowd: Vec<TcpStream> = (0..128).map(|_| TcpStream::connect(address).unwrap()).collect();
    for mut stream in &crowd {
        stream.set_nonblocking(true).unwrap();
        stream.write_all(&long[..400_000]).ok();
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(agent.resident_kib() < LARGEST_KIB, "{} KiB", agent.resident_kib());
    drop(crowd);
    assert!(agent.get("/healthz").await.0.starts_with("HTTP/1.1 200"));
    assert!(agent.get("/nowhere").await.0.starts_with("HTTP/1.1 404"));
    assert!(agent.resident_kib() < LARGEST_KIB, "{} KiB", agent.resident_kib());
}

async fn restarts(count: u64) {
    let pod = Pod::new();
    // Without memory to keep, a restart need not wait for the next second.
    let agent = pod.start(&[], &pod.arguments(&["-m", "16"]));
    agent.ready(0).await;
    let files = agent.files();
    for number in 1..=count {
        pod.annotate(&[("restart", &number.to_string())]);
        agent.ready(number).await;
    }
    assert!(agent.files() <= files + 2, "{} files were {files}", agent.files());
    assert_eq!(agent.children(), 1, "nobody is left behind");
    assert!(agent.resident_kib() < LARGEST_KIB, "{} KiB", agent.resident_kib());
}

#[tokio::test]
async fn restarts_leave_nothing_behind() {
    restarts(10).await;
}

#[tokio::test]
#[ignore = "minutes; `make campaign` runs it"]
async fn a_hundred_restarts_leave_nothing_behind() {
    restarts(100).await;
}
