//! What the kernel tells of a process, as text: memory, CPU time, sockets.
//! Pure functions on the content of files below `/proc`; proc(5) describes them.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

/// Ticks of CPU time a second: `USER_HZ`, which is 100 on every architecture that we run on (time(7)).
const TICKS_PER_SECOND: f64 = 100.0;
/// The state of a connection that is established, as the kernel prints it.
const ESTABLISHED: &str = "01";

/// The memory of a process, in KiB.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// What is resident now (`VmRSS`).
    pub resident: u64,
    /// The most that ever was (`VmHWM`).
    pub peak: u64,
    /// The part of the resident memory that no file backs (`RssAnon`).
    pub anonymous: u64,
}

/// The memory that `/proc/<pid>/status` tells of; none for a process that has ended.
pub fn memory(status: &str) -> Option<Memory> {
    let field = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse().ok()
    };
    Some(Memory { resident: field("VmRSS")?, peak: field("VmHWM")?, anonymous: field("RssAnon")? })
}

/// The CPU seconds, in user and kernel mode, that `/proc/<pid>/stat` tells of.
pub fn cpu_seconds(stat: &str) -> Option<f64> {
    // The second field is the program's name, which may hold blanks and brackets.
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11).map(str::parse::<u32>);
    let (user, system) = (fields.next()?.ok()?, fields.next()?.ok()?);
    Some((f64::from(user) + f64::from(system)) / TICKS_PER_SECOND)
}

/// The inodes of established connections to a port, from `/proc/<pid>/net/tcp` or `tcp6`.
pub fn connections_to(port: u16, table: &str) -> HashSet<u64> {
    let remote = format!(":{port:04X}");
    let inode = |line: &str| -> Option<u64> {
        let mut fields = line.split_whitespace().skip(2);
        let (address, state) = (fields.next()?, fields.next()?);
        let inode = fields.nth(5)?;
        if address.ends_with(&remote) && state == ESTABLISHED { inode.parse().ok() } else { None }
    };
    table.lines().skip(1).filter_map(inode).collect()
}

/// The inode of the socket that a link below `/proc/<pid>/fd` points to.
pub fn socket_inode(link: &str) -> Option<u64> {
    link.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok()
}

/// The value of a line `name : value`, as in `/proc/cpuinfo` and `/proc/meminfo`.
pub fn value<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().filter_map(|line| line.split_once(':')).find(|(key, _)| key.trim() == name).map(|(_, v)| v.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tmemcached-oper\nVmPeak:\t  999 kB\nVmHWM:\t  190512 kB\nVmRSS:\t  185420 kB\n\
                          RssAnon:\t  170000 kB\nRssFile:\t   15420 kB\n";

    #[test]
    fn memory_is_read_by_name() {
        assert_eq!(memory(STATUS), Some(Memory { resident: 185_420, peak: 190_512, anonymous: 170_000 }));
    }

    #[test]
    fn a_process_that_has_ended_has_no_memory() {
        assert_eq!(memory("Name:\tgone\nState:\tZ (zombie)\n"), None);
    }

    #[test]
    fn cpu_time_is_found_behind_a_name_with_brackets() {
        let stat = "42 (a) b) c) S 1 42 42 0 -1 4194560 100 0 0 0 1140 260 0 0 20 0 9 0 12345 1 1";
        assert_eq!(cpu_seconds(stat).map(|seconds| format!("{seconds:.2}")), Some("14.00".into()));
        assert_eq!(cpu_seconds("42 (a) S 1"), None);
    }

    #[test]
    fn only_established_connections_to_the_port_count() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n\
             0: 0100007F:9C40 0100007F:5208 01 00000000:00000000 02:000 00000000     0        0 1001 2 0000\n\
             1: 0100007F:9C41 0100007F:5208 06 00000000:00000000 02:000 00000000     0        0 0 2 0000\n\
             2: 0100007F:5208 0100007F:9C40 01 00000000:00000000 02:000 00000000     0        0 1002 2 0000\n\
             3: 0100007F:9C42 0100007F:1F90 01 00000000:00000000 02:000 00000000     0        0 1003 2 0000\n";
        assert_eq!(connections_to(21_000, table), HashSet::from([1001]));
        assert!(connections_to(21_000, "").is_empty());
    }

    #[test]
    fn sockets_are_told_from_other_files() {
        assert_eq!(socket_inode("socket:[1001]"), Some(1001));
        assert_eq!(socket_inode("/dev/null"), None);
        assert_eq!(socket_inode("anon_inode:[eventpoll]"), None);
    }

    #[test]
    fn values_are_found_by_their_name() {
        let text = "processor\t: 0\nmodel name\t: Some CPU @ 2 GHz\nprocessor\t: 1\n";
        assert_eq!(value(text, "model name"), Some("Some CPU @ 2 GHz"));
        assert_eq!(value(text, "model"), None);
    }
}
