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
    /// Looks at everything.
    pub fn look(home: &Home) -> Self {
        Self {
            processes: processes(home),
            interfaces: lines_of("ip", &["-oneline", "link", "show"], |line| line.split(": ").nth(1)),
            routes: lines_of("ip", &["route", "show", "table", "all"], |line| Some(line)),
            mounts: lines_in("/proc/self/mounts"),
            cgroups: directories(Path::new("/sys/fs/cgroup")),
            firewall: firewall(),
            settings: ["ip_forward", "conf/all/forwarding"]
                .map(|name| format!("/proc/sys/net/ipv4/{name}"))
                .map(|path| fs::read_to_string(&path).unwrap_or_default() + &path)
                .into(),
            files: files(home),
        }
    }

    /// What is here that was not there `before`, one line each.
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

/// Processes of the testbed: those that name its directory, and those in other pid namespaces.
fn processes(home: &Home) -> BTreeSet<String> {
    let own = fs::read_link("/proc/self/ns/pid").ok();
    let home = home.root().display().to_string();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let ours = entries.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse::<u32>().ok()?;
        let command = fs::read_to_string(entry.path().join("cmdline")).ok()?.replace('\0', " ");
        let elsewhere = fs::read_link(entry.path().join("ns/pid")).is_ok_and(|ns| Some(ns) != own);
        // A zombie has no command line and nothing else left.
        let is_ours = !command.is_empty() && (elsewhere || command.contains(&home));
        is_ours.then(|| format!("{pid} {command}"))
    });
    ours.collect()
}

/// Rules of both kinds of iptables, where they are installed.
fn firewall() -> BTreeSet<String> {
    ["iptables-save", "iptables-legacy-save"]
        .into_iter()
        .flat_map(|program| {
            lines_of(program, &[], |line| (!line.starts_with('#') && !line.starts_with(':')).then_some(line))
        })
        .collect()
}

/// Where a kubelet, a runtime or a network plugin would write if it were not kept from it.
fn files(home: &Home) -> BTreeSet<String> {
    let usual = ["/var/lib/kubelet", "/var/lib/cni", "/var/lib/containerd", "/var/log/pods", "/var/log/containers"];
    let more = ["/run/containerd", "/run/netns", "/run/flannel", "/etc/cni", "/opt/cni", "/usr/libexec/kubernetes"];
    let there = usual.iter().chain(&more).filter(|path| Path::new(path).exists());
    let clusters = fs::read_dir(home.clusters()).into_iter().flatten().flatten();
    let clusters = clusters.map(|entry| entry.path().display().to_string());
    there.map(ToString::to_string).chain(clusters).collect()
}

fn lines_of(program: &str, arguments: &[&str], pick: impl Fn(&str) -> Option<&str>) -> BTreeSet<String> {
    let output = Command::new(program).args(arguments).output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    text.lines().filter_map(|line| pick(line).map(str::to_owned)).collect()
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
