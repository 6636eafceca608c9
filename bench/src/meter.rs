//! Watches a process from outside while it works: memory, CPU time, connections to the API server.
//! A thread reads `/proc` four times a second; what it saw last stays known after the process has ended.

use std::collections::HashSet;
use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::procfs::{self, Memory};

const INTERVAL: Duration = Duration::from_millis(250);
/// Connections are counted with every fourth reading: a thousand links take a few milliseconds.
const CONNECTIONS_EVERY: usize = 4;

/// What is known of a process.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// Its memory, in KiB.
    pub memory: Memory,
    /// CPU seconds since it started.
    pub cpu_seconds: f64,
    /// Its connections to the API server.
    pub connections: usize,
    /// The most of them that were seen at once.
    pub peak_connections: usize,
}

impl Reading {
    /// Both processes together: as the larger one for memory, which each pod has for itself, and as the sum for the
    /// rest.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        Self {
            memory: Memory {
                resident: self.memory.resident.max(other.memory.resident),
                peak: self.memory.peak.max(other.memory.peak),
                anonymous: self.memory.anonymous.max(other.memory.anonymous),
            },
            cpu_seconds: self.cpu_seconds + other.cpu_seconds,
            connections: self.connections + other.connections,
            peak_connections: self.peak_connections + other.peak_connections,
        }
    }

    /// What was seen before and what is seen now; a process that has ended leaves its last figures.
    fn update(&mut self, memory: Option<Memory>, cpu_seconds: Option<f64>, connections: Option<usize>) {
        self.memory = memory.unwrap_or(self.memory);
        self.cpu_seconds = cpu_seconds.unwrap_or(self.cpu_seconds);
        self.connections = connections.unwrap_or(self.connections);
        self.peak_connections = self.peak_connections.max(self.connections);
    }
}

/// Watches one process; stops when dropped.
#[derive(Debug)]
pub struct Meter {
    pid: u32,
    port: u16,
    seen: Arc<Mutex<Reading>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Meter {
    /// Watches a process and its connections to this port.
    pub fn start(pid: u32, port: u16) -> Self {
        let (seen, stop) = (Arc::new(Mutex::new(Reading::default())), Arc::new(AtomicBool::new(false)));
        let (shared, stopped) = (Arc::clone(&seen), Arc::clone(&stop));
        let thread = thread::spawn(move || {
            for turn in 0_usize.. {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                let connections =
                    turn.is_multiple_of(CONNECTIONS_EVERY).then(|| count_connections(pid, port)).flatten();
                read_into(&shared, pid, connections);
                thread::sleep(INTERVAL);
            }
        });
        Self { pid, port, seen, stop, thread: Some(thread) }
    }

    /// What is known now.
    pub fn read(&self) -> Reading {
        read_into(&self.seen, self.pid, count_connections(self.pid, self.port))
    }

    /// The CPU seconds until now.
    pub fn cpu_seconds(&self) -> f64 {
        read_into(&self.seen, self.pid, None).cpu_seconds
    }
}

impl Drop for Meter {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn read_into(seen: &Mutex<Reading>, pid: u32, connections: Option<usize>) -> Reading {
    let read = |file: &str| fs::read_to_string(format!("/proc/{pid}/{file}")).unwrap_or_default();
    let (memory, cpu_seconds) = (procfs::memory(&read("status")), procfs::cpu_seconds(&read("stat")));
    let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
    seen.update(memory, cpu_seconds, connections);
    *seen
}

/// How many of its sockets are established connections to the port; none for a process that has ended.
fn count_connections(pid: u32, port: u16) -> Option<usize> {
    let table = |file: &str| fs::read_to_string(format!("/proc/{pid}/net/{file}")).unwrap_or_default();
    let mut connected: HashSet<u64> = procfs::connections_to(port, &table("tcp"));
    connected.extend(procfs::connections_to(port, &table("tcp6")));
    let links = fs::read_dir(format!("/proc/{pid}/fd")).ok()?.flatten();
    let own = links.filter_map(|link| procfs::socket_inode(fs::read_link(link.path()).ok()?.to_str()?));
    Some(own.filter(|inode| connected.contains(inode)).count())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn this_process_has_memory_and_its_connections_are_counted() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let meter = Meter::start(std::process::id(), port);
        let streams: Vec<TcpStream> = (0..3).map(|_| TcpStream::connect(("127.0.0.1", port)).unwrap()).collect();
        let reading = meter.read();
        assert_eq!(reading.connections, 3);
        assert!(reading.memory.resident > 0 && reading.memory.peak >= reading.memory.anonymous, "{reading:?}");
        drop(streams);
        let later = meter.read();
        assert_eq!((later.connections, later.peak_connections), (0, 3));
    }

    #[test]
    fn what_a_process_had_stays_known_when_it_has_ended() {
        let mut reading = Reading::default();
        let memory = Memory { resident: 10, peak: 20, anonymous: 5 };
        reading.update(Some(memory), Some(1.5), Some(4));
        reading.update(None, None, None);
        assert_eq!(reading, Reading { memory, cpu_seconds: 1.5, connections: 4, peak_connections: 4 });
    }

    #[test]
    fn two_replicas_count_as_the_larger_one_and_as_the_sum_of_their_work() {
        let memory = |resident| Memory { resident, peak: resident, anonymous: 1 };
        let one = Reading { memory: memory(10), cpu_seconds: 1.0, connections: 2, peak_connections: 3 };
        let two = Reading { memory: memory(30), cpu_seconds: 2.0, connections: 4, peak_connections: 5 };
        let both = Reading { memory: memory(30), cpu_seconds: 3.0, connections: 6, peak_connections: 8 };
        assert_eq!(one.and(two), both);
    }
}
