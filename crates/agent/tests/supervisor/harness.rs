//! An agent of one's own with memcached below it, on a memory volume.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use memcached_wire::{Connection, Credentials, Endpoint, Expiry, Key, Stream};
use rustix::process::{Pid, Signal};
use serde_json::Value;
use testbed::program::bound_to_parent;
use testbed::server::Place;
use testbed::wait;

/// Longer than a busy machine takes, in seconds.
pub const DEADLINE: u64 = 300;

/// What outlives an agent: the pod's volumes and its address.
pub struct Pod {
    dir: tempfile::TempDir,
    place: Place,
}

impl Pod {
    pub fn new() -> Self {
        // As in a pod: memory that no process has.
        let dir = tempfile::tempdir_in("/dev/shm").unwrap();
        let pod = Self { dir, place: Place::new().unwrap() };
        pod.annotate(&[]);
        pod
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    pub fn meta(&self) -> PathBuf {
        self.path("memory.meta")
    }

    /// Where memcached listens.
    pub fn address(&self) -> SocketAddr {
        self.place.address()
    }

    /// Swaps a file as the kubelet does: another one takes its place.
    pub fn swap(&self, name: &str, content: &[u8]) {
        let next = self.path(&format!("{name}.next"));
        fs::write(&next, content).unwrap();
        fs::rename(next, self.path(name)).unwrap();
    }

    /// Sets the pod's annotations, quoted as the kubelet quotes them.
    pub fn annotate(&self, annotations: &[(&str, &str)]) {
        // For plain text Rust quotes as Go does.
        let lines = annotations.iter().map(|(key, value)| format!("memcached.c5c3.io/{key}={value:?}\n"));
        self.swap("annotations", lines.collect::<String>().as_bytes());
    }

    /// memcached's arguments.
    pub fn arguments(&self, more: &[&str]) -> Vec<String> {
        let mut words = vec!["-l".to_owned(), self.address().to_string(), "-u".into(), "root".into()];
        words.extend(more.iter().map(ToString::to_string));
        words
    }

    /// The same, with memory that outlives it.
    pub fn warm(&self, more: &[&str]) -> Vec<String> {
        let memory = self.text("memory");
        self.arguments(&[&["-m", "64", "-e", &memory], more].concat())
    }

    /// What follows the program that the agent starts: in tests memcached is found by other programs.
    pub fn command_line(&self, arguments: &[String]) -> Vec<String> {
        let memcached = self.place.command().unwrap();
        let words = memcached.get_args().map(|word| word.to_str().unwrap().to_owned());
        words.chain(arguments.iter().cloned()).collect()
    }

    /// The agent with what it is to do, and memcached with its arguments behind it.
    pub fn command(&self, options: &[&str], arguments: &[String]) -> Command {
        // Bound to its parent: in a container, too, memcached dies with the first process.
        let memcached = self.place.command().unwrap();
        let mut command = bound_to_parent(env!("CARGO_BIN_EXE_memcached-agent"));
        command
            .args(options)
            .arg(format!("--memcached={}", self.address()))
            .arg("--")
            .arg(memcached.get_program())
            .args(self.command_line(arguments))
            .envs(memcached.get_envs().filter_map(|(name, value)| Some((name, value?))))
            .stdin(Stdio::null());
        command
    }

    /// Starts an agent.
    pub fn start(&self, options: &[&str], arguments: &[String]) -> Agent {
        Agent::start(self, options, arguments)
    }

    /// A client.
    pub async fn client(&self) -> Connection<Stream> {
        self.endpoint().connect().await.unwrap()
    }

    /// A client that logs in.
    pub async fn login(&self, user: &str, password: &str) -> memcached_wire::Result<Connection<Stream>> {
        self.endpoint().with_credentials(Credentials::new(user, password).unwrap()).connect().await
    }

    fn endpoint(&self) -> Endpoint {
        Endpoint::new(self.address().to_string()).with_deadline(Duration::from_secs(DEADLINE))
    }
}

/// Stores so many items.
pub async fn fill(connection: &mut Connection<Stream>, count: usize) {
    for number in 0..count {
        let key = Key::new(format!("key-{number}")).unwrap();
        connection.set(&key, format!("value-{number}").as_bytes(), 0, Expiry::NEVER).await.unwrap();
    }
}

/// How many of them are there, with their values.
pub async fn found(connection: &mut Connection<Stream>, count: usize) -> usize {
    let mut found = 0;
    for number in 0..count {
        let value = connection.get(&Key::new(format!("key-{number}")).unwrap()).await.unwrap();
        found += usize::from(value.is_some_and(|value| value.data == format!("value-{number}").as_bytes()));
    }
    found
}

/// A running agent; it ends with this guard, and memcached with it.
pub struct Agent {
    child: Child,
    log: Arc<Mutex<String>>,
}

impl Agent {
    fn start(pod: &Pod, options: &[&str], arguments: &[String]) -> Self {
        let annotations = format!("--annotations-file={}", pod.text("annotations"));
        let run = ["run", "--listen=127.0.0.1:0", "--status-listen=127.0.0.1:0", "--timeout=5s", annotations.as_str()];
        Self::watch(pod.command(&[&run, options].concat(), arguments))
    }

    /// Starts one with this command line, and keeps what it says.
    pub fn watch(mut command: Command) -> Self {
        command.stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = testbed::spawn(command).unwrap();
        let log = Arc::new(Mutex::new(String::new()));
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        std::thread::spawn({
            let log = log.clone();
            move || lines.map_while(Result::ok).for_each(|line| *log.lock().unwrap() += &(line + "\n"))
        });
        Self { child, log }
    }

    pub fn log(&self) -> String {
        self.log.lock().unwrap().clone()
    }

    /// Where it listens: the status port is told first.
    async fn listens(&self, number: usize) -> SocketAddr {
        wait::until("the agent to listen", DEADLINE, async || {
            let log = self.log();
            let addresses = log.split_whitespace().filter_map(|word| word.strip_prefix("address=")?.parse().ok());
            addresses.into_iter().nth(number).ok_or(log)
        })
        .await
        .unwrap()
    }

    /// What is at a path of the status port: head and body.
    pub async fn get(&self, path: &str) -> (String, String) {
        request(self.listens(0).await, path)
    }

    /// Waits until a path answers with this code: a busy machine may be too slow for the first question.
    pub async fn answers(&self, path: &str, code: u16) {
        wait::until(format!("{code} at {path}"), DEADLINE, async || {
            let (head, body) = self.get(path).await;
            if head.starts_with(&format!("HTTP/1.1 {code}")) { Ok(()) } else { Err(format!("{head}\n{body}")) }
        })
        .await
        .unwrap();
    }

    pub async fn status_address(&self) -> SocketAddr {
        self.listens(0).await
    }

    pub async fn metrics(&self) -> String {
        request(self.listens(1).await, "/metrics").1
    }

    pub async fn status(&self) -> Value {
        serde_json::from_str(&self.get("/status").await.1).unwrap()
    }

    /// Waits until the status is as it should be.
    pub async fn eventually(&self, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        wait::until(what, DEADLINE, async || {
            let status = self.status().await;
            if is_so(&status) { Ok(status) } else { Err(format!("{status:#}\n{}", self.log())) }
        })
        .await
        .unwrap()
    }

    /// Waits until memcached answers, after so many restarts.
    pub async fn ready(&self, restarts: u64) -> Value {
        self.eventually("memcached to answer", |status| {
            status["memcached"]["phase"] == "Ready" && status["memcached"]["restarts"] == restarts
        })
        .await
    }

    /// The process id of memcached.
    pub fn memcached(&self) -> Pid {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        let children = fs::read_to_string(children).unwrap();
        Pid::from_raw(children.split_whitespace().next().unwrap().parse().unwrap()).unwrap()
    }

    pub fn signal(&self, signal: Signal) {
        let pid = Pid::from_raw(i32::try_from(self.child.id()).unwrap()).unwrap();
        rustix::process::kill_process(pid, signal).unwrap();
    }

    /// Waits for its end.
    pub async fn ended(&mut self) -> ExitStatus {
        wait::until("its end", DEADLINE, async || self.child.try_wait().unwrap().ok_or_else(|| self.log()))
            .await
            .unwrap()
    }

    /// Ends it as the kubelet does.
    pub async fn stop(mut self) -> ExitStatus {
        self.signal(Signal::TERM);
        self.ended().await
    }

    /// What it takes in memory now, in KiB.
    pub fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// How many files it has open.
    pub fn files(&self) -> usize {
        fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap().count()
    }

    /// How many processes it has below it, those among them that nobody waits for.
    pub fn children(&self) -> usize {
        let children = format!("/proc/{0}/task/{0}/children", self.child.id());
        fs::read_to_string(children).unwrap().split_whitespace().count()
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

fn request(address: SocketAddr, path: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(DEADLINE))).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// A path as text.
pub fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
