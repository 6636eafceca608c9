//! An exporter of one's own, and what it says.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use memcached_wire::{Connection, Endpoint, Expiry, Key, Stream};
use rustix::process::{Pid, Signal};
use testbed::program::bound_to_parent;
use testbed::wait;

/// Longer than a busy machine takes, in seconds.
pub const DEADLINE: u64 = 300;

/// A running exporter; it ends with this guard.
pub struct Exporter {
    child: Child,
    pub address: SocketAddr,
    log: Arc<Mutex<String>>,
}

impl Exporter {
    /// Starts one for the memcached at this address, with the timeouts that a busy machine needs.
    pub async fn of(memcached: SocketAddr, arguments: &[&str]) -> Self {
        Self::within(&format!("{DEADLINE}s"), memcached, arguments).await
    }

    /// Starts one that waits so long for a scrape.
    pub async fn within(timeout: &str, memcached: SocketAddr, arguments: &[&str]) -> Self {
        let (memcached, timeout) = (format!("--memcached={memcached}"), format!("--timeout={timeout}"));
        Self::start(&[&["--listen=127.0.0.1:0", &memcached, &timeout], arguments].concat()).await
    }

    /// Starts one with these arguments.
    pub async fn start(arguments: &[&str]) -> Self {
        let mut command = bound_to_parent(env!("CARGO_BIN_EXE_memcached-agent"));
        command.arg("exporter").args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = testbed::spawn(command).unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn({
            let log = log.clone();
            move || lines.map_while(Result::ok).for_each(|line| *log.lock().unwrap() += &(line + "\n"))
        });
        let address = wait::until("the exporter to listen", DEADLINE, async || {
            let said = log.lock().unwrap().clone();
            let address = said.split_whitespace().find_map(|word| word.strip_prefix("address=")?.parse().ok());
            address.ok_or(said)
        })
        .await
        .unwrap();
        Self { child, address, log }
    }

    /// What it has logged.
    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Waits until it has logged these words: what it writes is read by a thread of its own.
    pub async fn has_told(&self, words: &str) {
        wait::until(format!("{words:?} in the log"), DEADLINE, async || {
            let log = self.log();
            if log.contains(words) { Ok(()) } else { Err(log) }
        })
        .await
        .unwrap();
    }

    /// One request; the whole answer.
    pub fn request(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(DEADLINE))).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    /// A scrape.
    pub fn scrape(&self) -> Scrape {
        let answer = self.request("GET", "/metrics");
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200") && head.contains("text/plain; version=0.0.4"), "{head}");
        Scrape::parse(body)
    }

    /// Waits until a scrape is as it should be.
    pub async fn eventually(&self, what: &str, is_so: impl Fn(&Scrape) -> bool) -> Scrape {
        wait::until(what, DEADLINE, async || {
            let scrape = self.scrape();
            if is_so(&scrape) { Ok(scrape) } else { Err(format!("{scrape:?}\n{}", self.log())) }
        })
        .await
        .unwrap()
    }

    /// Whether it still runs.
    pub fn is_alive(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Tells it to stop, and waits for its end.
    pub async fn stop(&mut self, signal: Signal) -> ExitStatus {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
        wait::until("its end", DEADLINE, async || self.child.try_wait().unwrap().ok_or_else(|| "running".into()))
            .await
            .unwrap()
    }

    /// What it takes in memory at most so far, in KiB.
    pub fn peak_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// What a scrape says.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    pub samples: BTreeMap<String, f64>,
    /// Name, type, names of labels.
    pub families: BTreeSet<(String, String, String)>,
}

impl Scrape {
    /// Reads the text format, and insists on it.
    fn parse(text: &str) -> Self {
        let mut scrape = Self::default();
        let mut kinds = BTreeMap::new();
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap();
                assert!(kinds.insert(name, kind).is_none(), "{name} is told twice");
            } else if !line.starts_with("# HELP ") {
                let (series, value) = line.rsplit_once(' ').unwrap();
                let (name, labels) = series.split_once('{').unwrap_or((series, ""));
                let labels: BTreeSet<&str> =
                    labels.trim_end_matches('}').split(',').filter_map(|pair| Some(pair.split_once('=')?.0)).collect();
                let labels = labels.into_iter().collect::<Vec<_>>().join(",");
                scrape.families.insert((name.into(), kinds[name].into(), labels));
                assert!(scrape.samples.insert(series.into(), value.parse().unwrap()).is_none(), "{series} twice");
            }
        }
        scrape
    }

    /// The value of a series.
    pub fn value(&self, series: &str) -> f64 {
        *self.samples.get(series).unwrap_or_else(|| panic!("no {series} in {:?}", self.samples.keys()))
    }

    /// Whether memcached answered.
    pub fn is_up(&self) -> bool {
        self.value("memcached_up") > 0.5
    }

    /// Whether nothing is told but that memcached is down.
    pub fn is_down(&self) -> bool {
        !self.is_up() && self.samples.len() == 1
    }
}

/// A client of the same memcached.
pub async fn client(memcached: SocketAddr) -> Connection<Stream> {
    Endpoint::new(memcached.to_string()).with_deadline(Duration::from_secs(DEADLINE)).connect().await.unwrap()
}

/// A little traffic: one set, two hits, one miss.
pub async fn traffic(connection: &mut Connection<Stream>) {
    let key = Key::new("k").unwrap();
    connection.set(&key, b"x", 0, Expiry::NEVER).await.unwrap();
    connection.get(&key).await.unwrap();
    connection.get(&key).await.unwrap();
    connection.get(&Key::new("other").unwrap()).await.unwrap();
}

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
