//! What a cluster could leave on a host: processes, interfaces, routes, mounts, cgroups, rules, files.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

use testbed::home::Home;

/// The host as it is; two of them are equal if nothing was left behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Traces {
    processes: BTreeSet<String>,
    interfaces: BTreeSet<String>,
    routes: BTreeSet<String>,
    mounts: BTreeSet<String>,
    cgroups: BTreeSet<String>,
    firewall: BTreeSet<String>,
    settings: BTreeSet<String>,
    files: BTreeSet<String>,
}

impl Traces {
    /// Looks at the host, for what the cluster `name` may have to do with.
    pub fn observe(home: &Home, name: &str) -> Self {
        Self {
            processes: processes(name),
            interfaces: lines_of("ip", &["-oneline", "link", "show"], |line| line.split(": ").nth(1)),
            routes: lines_of("ip", &["route", "show", "table", "all"], |line| Some(line)),
            mounts: lines_in("/proc/self/mounts"),
            cgroups: directories(Path::new("/sys/fs/cgroup")),
            firewall: firewall(),
            settings: settings(),
            files: files(home, name),
        }
    }

    /// What is not as it was `before`, one line each.
    pub fn beyond(&self, before: &Self) -> Vec<String> {
        let mut all = Vec::new();
        for (kind, now, then) in [
            ("process", &self.processes, &before.processes),
            ("interface", &self.interfaces, &before.interfaces),
            ("route", &self.routes, &before.routes),
            ("mount", &self.mounts, &before.mounts),
            ("cgroup", &self.cgroups, &before.cgroups),
            ("firewall rule", &self.firewall, &before.firewall),
            ("setting", &self.settings, &before.settings),
            ("file", &self.files, &before.files),
        ] {
            all.extend(now.difference(then).map(|what| format!("{kind}: {what}")));
            all.extend(then.difference(now).map(|what| format!("{kind} gone: {what}")));
        }
        all
    }
}

/// Processes of the cluster: those that name it. Everything inside it has its directory in an argument, a mount
/// or its root; other clusters come and go as they like.
fn processes(name: &str) -> BTreeSet<String> {
    let own = fs::read_link("/proc/self/ns/mnt").ok();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let command = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
        let elsewhere = fs::read_link(entry.path().join("ns/mnt")).is_ok_and(|ns| Some(ns) != own);
        let mounts = || fs::read_to_string(entry.path().join("mounts")).unwrap_or_default();
        // A zombie has no command line and nothing else left.
        let is_ours = !command.is_empty() && (command.contains(name) || (elsewhere && mounts().contains(name)));
        is_ours.then(|| format!("{pid} {command}"))
    });
    ours.collect()
}

/// What the kubelet, kube-proxy or a network plugin would like to set for the whole machine.
fn settings() -> BTreeSet<String> {
    const NAMES: [&str; 11] = [
        "kernel/keys/root_maxbytes",
        "kernel/keys/root_maxkeys",
        "kernel/panic",
        "kernel/panic_on_oops",
        "net/ipv4/conf/all/forwarding",
        "net/ipv4/conf/all/route_localnet",
        "net/ipv4/ip_forward",
        "net/ipv4/vs/conntrack",
        "net/netfilter/nf_conntrack_max",
        "vm/overcommit_memory",
        "vm/panic_on_oom",
    ];
    let value = |name: &str| fs::read_to_string(format!("/proc/sys/{name}")).unwrap_or_else(|_| "absent".into());
    NAMES.iter().map(|name| format!("{name} = {}", value(name).trim())).collect()
}

/// Rules and chains of both kinds of iptables; the counters change by themselves.
fn firewall() -> BTreeSet<String> {
    ["iptables-save", "iptables-legacy-save"]
        .into_iter()
        .flat_map(|program| {
            lines_of(program, &[], |line| {
                let line = line.split('[').next().unwrap_or(line);
                (!line.starts_with('#')).then_some(line)
            })
        })
        .collect()
}

/// Where a kubelet, a runtime or a network plugin would write if it were not kept from it.
fn files(home: &Home, name: &str) -> BTreeSet<String> {
    let usual = ["/var/lib/kubelet", "/var/lib/cni", "/var/lib/containerd", "/var/log/pods", "/var/log/containers"];
    let more = ["/run/containerd", "/run/netns", "/run/flannel", "/etc/cni", "/opt/cni", "/usr/libexec/kubernetes"];
    let there = usual.iter().chain(&more).filter(|path| Path::new(path).exists());
    let own = home.clusters().join(name);
    let own = own.exists().then(|| own.display().to_string());
    there.map(ToString::to_string).chain(own).collect()
}

fn lines_of(program: &str, arguments: &[&str], pick: impl Fn(&str) -> Option<&str>) -> BTreeSet<String> {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| {
        assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    });
    assert!(text.is_ok(), "{program} is missing: what it would show cannot be compared");
    text.unwrap_or_default().lines().filter_map(|line| pick(line).map(str::to_owned)).collect()
}

fn lines_in(path: &str) -> BTreeSet<String> {
    fs::read_to_string(path).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn directories(dir: &Path) -> BTreeSet<String> {
    let mut all = BTreeSet::new();
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            all.insert(entry.path().display().to_string());
            all.extend(directories(&entry.path()));
        }
    }
    all
}
