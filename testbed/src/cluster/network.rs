//! The addresses of a node and the one wire that joins it to the host.

use std::fs;
use std::net::Ipv4Addr;
use std::process::Command;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::program::run;

const NONE_FREE: &str = "no network is free for another node: running nodes or the host's routes take all of \
                         10.128.0.0/9; take one down with `testbed down`, or remove the route";

/// How many nodes can exist at once.
const SLOTS: u8 = 30;

/// The addresses of a node; every running node has others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Network {
    slot: u8,
}

/// A network the host has no route for and no other node uses.
pub fn free(used: &[Network]) -> Result<Network> {
    let table = fs::read_to_string("/proc/net/route").unwrap_or_default();
    free_beside(used, &routes(&table))
}

fn free_beside(used: &[Network], routes: &[Range]) -> Result<Network> {
    (0..SLOTS)
        .map(|slot| Network { slot })
        .filter(|network| !used.contains(network))
        .find(|network| !network.ranges().iter().any(|mine| routes.iter().any(|route| route.overlaps(*mine))))
        .ok_or_else(|| Error::Other(NONE_FREE.into()))
}

impl Network {
    fn second_byte(self) -> u8 {
        self.slot * 4 + 128
    }

    fn ranges(self) -> [Range; 3] {
        [self.range(0, 16), self.range(1, 16), self.range(2, 30)]
    }

    fn range(self, offset: u8, length: u32) -> Range {
        let start = Ipv4Addr::new(10, self.second_byte() + offset, 0, 0);
        Range { start, length }
    }

    /// The addresses of pods.
    pub fn pods(self) -> String {
        self.range(0, 16).to_string()
    }

    /// The addresses of Services.
    pub fn services(self) -> String {
        self.range(1, 16).to_string()
    }

    /// The node's address on the pods' bridge: its `InternalIP`, and where the name server listens.
    pub fn bridge(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.second_byte(), 0, 1)
    }

    /// The Service `kubernetes`.
    pub fn kubernetes_service(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.second_byte() + 1, 0, 1)
    }

    /// The host's end of the wire.
    pub fn host_end(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.second_byte() + 2, 0, 1)
    }

    /// The node's end of the wire: where the host finds the API server.
    pub fn node_end(self) -> Ipv4Addr {
        Ipv4Addr::new(10, self.second_byte() + 2, 0, 2)
    }

    /// The host's interface. It and its routes vanish with the node's network namespace.
    pub fn host_interface(self) -> String {
        format!("testbed{}", self.slot)
    }

    /// From the host: a wire into the network namespace of process `pid`, and routes over it.
    pub fn connect(self, pid: u32) -> Result<()> {
        let wire = self.host_interface();
        let via = self.node_end().to_string();
        ip(&["link", "add", &wire, "type", "veth", "peer", "name", UPLINK, "netns", &pid.to_string()])?;
        ip(&["addr", "add", &format!("{}/30", self.host_end()), "dev", &wire])?;
        ip(&["link", "set", &wire, "up"])?;
        ip(&["route", "add", &self.pods(), "via", &via])?;
        ip(&["route", "add", &self.services(), "via", &via])
    }

    /// From the host: takes the wire away. The kernel does too, a moment after the namespace's end.
    pub fn disconnect(self) {
        ip(&["link", "del", &self.host_interface()]).ok();
    }

    /// From inside: loopback, the bridge of the pods, and the wire's near end once it is there.
    pub fn set_up_inside(self) -> Result<()> {
        ip(&["link", "set", "lo", "up"])?;
        ip(&["link", "add", BRIDGE, "type", "bridge"])?;
        ip(&["addr", "add", &format!("{}/16", self.bridge()), "dev", BRIDGE])?;
        ip(&["link", "set", BRIDGE, "up"])?;
        // There is no default route: without this one the node itself could not send to a Service.
        ip(&["route", "add", &self.services(), "dev", BRIDGE])?;
        ip(&["addr", "add", &format!("{}/30", self.node_end()), "dev", UPLINK])?;
        ip(&["link", "set", UPLINK, "up"])?;
        // This namespace's own setting: the host's is untouched.
        let forward = "/proc/sys/net/ipv4/ip_forward";
        fs::write(forward, "1").map_err(Error::file("write", forward))
    }
}

/// The pods' bridge, inside.
pub const BRIDGE: &str = "pods0";
/// The node's end of the wire, inside.
pub const UPLINK: &str = "uplink";

fn ip(arguments: &[&str]) -> Result<()> {
    run(&format!("ip {}", arguments.join(" ")), Command::new("ip").args(arguments)).map(drop)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Range {
    start: Ipv4Addr,
    length: u32,
}

impl Range {
    fn overlaps(self, other: Self) -> bool {
        let shorter = self.length.min(other.length);
        let prefix = |range: Self| u32::from(range.start).checked_shr(32 - shorter).unwrap_or(0);
        prefix(self) == prefix(other)
    }
}

impl std::fmt::Display for Range {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.start, self.length)
    }
}

/// The routes in `/proc/net/route`, without the default route, which leads everywhere.
fn routes(table: &str) -> Vec<Range> {
    let number = |word: Option<&str>| u32::from_str_radix(word?, 16).ok().map(u32::swap_bytes);
    table
        .lines()
        .skip(1)
        .filter_map(|line| {
            let mut words = line.split_whitespace().skip(1);
            let start = Ipv4Addr::from(number(words.next())?);
            let length = number(words.nth(5))?.count_ones();
            (length > 0).then_some(Range { start, length })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: &str = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n\
        eth0\t00000000\t0100000A\t0003\t0\t0\t0\t00000000\t0\t0\t0\n\
        eth0\t0000000A\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0\n\
        tun0\t0000800A\t00000000\t0001\t0\t0\t0\t0000FFFF\t0\t0\t0\n";

    #[test]
    fn routes_are_read_without_the_default() {
        let shown: Vec<String> = routes(TABLE).iter().map(ToString::to_string).collect();
        assert_eq!(shown, ["10.0.0.0/24", "10.128.0.0/16"]);
    }

    #[test]
    fn a_network_that_the_host_routes_elsewhere_is_not_taken() {
        let network = free_beside(&[], &routes(TABLE)).unwrap();
        assert_eq!(network.pods(), "10.132.0.0/16");
    }

    #[test]
    fn running_nodes_keep_theirs_and_the_last_one_is_refused() {
        let mut used = vec![];
        for _ in 0..SLOTS {
            let network = free_beside(&used, &[]).unwrap();
            assert!(!used.contains(&network));
            used.push(network);
        }
        assert!(free_beside(&used, &[]).is_err());
    }

    #[test]
    fn a_wider_route_of_the_host_takes_all() {
        let vpn = Range { start: Ipv4Addr::new(10, 0, 0, 0), length: 8 };
        assert!(free_beside(&[], &[vpn]).is_err());
    }
}
