//! The first process of a node's namespaces: starts everything inside and reaps what dies.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use k8s_openapi::api::core::v1::Node as KubeNode;
use kube::Api;
use rustix::process::{Pid, WaitOptions};
use tokio::time::sleep;

use super::CONTAINERD_SOCKET;
use super::config::{self, NODE_NAME};
use crate::artifact::{self, Artifact};
use crate::cert_manager::{self, Requests};
use crate::cluster::api_server::{self, Plan, kubernetes, until_alive, wait_for_port};
use crate::cluster::own::stat_of;
use crate::cluster::process::Processes;
use crate::cluster::state::{Phase, State, Status};
use crate::cluster::{Cluster, cgroup, network};
use crate::error::{Error, Result};
use crate::pki::User;
use crate::program::{bound_to_parent, run};
use crate::store::Store;
use crate::wait;

const API_PORT: u16 = 6443;
const DIRECTORIES_SHADOWED: [&str; 3] = ["/run", "/var/lib", "/var/log"];

/// Runs the node until it is killed. What goes wrong is written down for whoever waits outside.
pub async fn supervise(store: &Store, name: &str) -> Result<()> {
    let state = State::find(store.home(), name)?.ok_or_else(|| Error::NoCluster(name.into()))?;
    let mut inside = Inside::new(store, &state)?;
    let mut status = Status {
        phase: match inside.start().await {
            Ok(()) => Phase::Ready,
            Err(error) => Phase::Failed(error.to_string()),
        },
        components: inside.processes.components(),
        ..Status::default()
    };
    state.set_status(&status)?;
    let mut requests = Requests::default();
    loop {
        sleep(Duration::from_secs(1)).await;
        if requests.is_new(&state.dir) {
            cert_manager::start(&inside.plan, store, &mut inside.processes)?;
        }
        reap_orphans(&inside.processes.pids());
        let components = inside.processes.components();
        if components != status.components {
            status.phase = status.phase.with(&components);
            status.components = components;
            state.set_status(&status)?;
        }
    }
}

struct Inside<'a> {
    store: &'a Store,
    state: &'a State,
    network: network::Network,
    plan: Plan,
    cluster: Cluster,
    processes: Processes,
}

impl<'a> Inside<'a> {
    fn new(store: &'a Store, state: &'a State) -> Result<Self> {
        let dir = &state.dir;
        let network =
            state.description.network.ok_or_else(|| Error::Other("a control plane has no node to supervise".into()))?;
        let plan = Plan {
            dir: dir.clone(),
            api_port: API_PORT,
            etcd_port: 2379,
            etcd_peer_port: 2380,
            services: network.services(),
            addresses: vec![network.bridge(), network.node_end(), network.kubernetes_service()],
            advertise: Some(network.bridge()),
        };
        // Reachable from inside and from the host alike.
        let url = format!("https://{}:{API_PORT}", network.node_end());
        Ok(Self {
            store,
            state,
            network,
            plan,
            cluster: Cluster::at(dir, url)?,
            processes: Processes::new(dir.join("logs")),
        })
    }

    async fn start(&mut self) -> Result<()> {
        for dir in DIRECTORIES_SHADOWED {
            shadow(Path::new(dir), &self.state.dir, self.store.home().root())?;
        }
        shield_settings(&self.state.dir)?;
        run("making mounts visible to containers", Command::new("mount").args(["--make-rshared", "/"]))?;
        wait::until("the wire to the host", 30, async || {
            run("ip link show", Command::new("ip").args(["link", "show", network::UPLINK])).map_err(|e| e.to_string())
        })
        .await?;
        self.network.set_up_inside()?;
        self.say("starting containerd")?;
        // Unpacking images takes as long as the API server takes to start: let both go on.
        self.start_containerd().await?;
        let images = tokio::task::spawn_blocking(import_images(self.store)?);
        self.say("starting the API server")?;
        api_server::start(&self.plan, &self.cluster, self.store, &mut self.processes).await?;
        api_server::start_scheduler(&self.plan, self.store, &mut self.processes)?;
        self.say("starting the kubelet")?;
        self.start_kubelet()?;
        self.start_kube_proxy()?;
        self.start_coredns()?;
        api_server::start_controllers(&self.plan, &self.cluster, self.store, &mut self.processes).await?;
        self.say("importing images")?;
        images.await.map_err(|e| Error::Other(e.to_string()))??;
        self.wait_until_ready().await?;
        self.cluster.publish()
    }

    async fn start_containerd(&mut self) -> Result<()> {
        let containerd = self.store.ensure(&artifact::containerd())?;
        let runc = self.store.ensure(&artifact::runc())?;
        let plugins = self.store.ensure(&artifact::cni_plugins())?;
        let config = self.write("containerd.toml", &config::containerd(&self.state.dir, &plugins))?;
        self.write("cni/10-testbed.conflist", &config::cni(self.network))?;
        let mut command = bound_to_parent(containerd.join("containerd"));
        command.arg("--config").arg(config).env("PATH", search_path(&[&containerd, &runc, &plugins]));
        self.processes.start_command("containerd", command)?;
        until_alive("containerd", &mut self.processes, async || {
            tokio::net::UnixStream::connect(CONTAINERD_SOCKET).await.map(drop).map_err(|e| e.to_string())
        })
        .await
    }

    fn start_kubelet(&mut self) -> Result<()> {
        cgroup::create(&self.state.dir)?;
        self.write("resolv.conf", "")?;
        let config = self.write("kubelet.yaml", &config::kubelet(&self.state.dir, self.network))?;
        let user = User::new(format!("system:node:{NODE_NAME}")).group("system:nodes");
        let kubeconfig = self.plan.component_kubeconfig("kubelet", &user)?;
        let arguments = [
            format!("--config={}", config.display()),
            format!("--kubeconfig={}", kubeconfig.display()),
            format!("--hostname-override={NODE_NAME}"),
            format!("--node-ip={}", self.network.bridge()),
        ];
        self.processes.start("kubelet", &kubernetes(self.store, "kubelet")?, &arguments)
    }

    fn start_kube_proxy(&mut self) -> Result<()> {
        let kubeconfig = self.plan.component_kubeconfig("kube-proxy", &User::new("system:kube-proxy"))?;
        let config = self.write("kube-proxy.yaml", &config::kube_proxy(&kubeconfig, self.network))?;
        let arguments = [format!("--config={}", config.display())];
        self.processes.start("kube-proxy", &kubernetes(self.store, "kube-proxy")?, &arguments)
    }

    fn start_coredns(&mut self) -> Result<()> {
        let user = User::new("coredns").group("system:masters");
        let kubeconfig = self.plan.component_kubeconfig("coredns", &user)?;
        let config = self.write("Corefile", &config::coredns(&kubeconfig, self.network))?;
        let program = self.store.ensure(&Artifact::coredns())?.join("coredns");
        let arguments = ["-conf".into(), config.display().to_string()];
        self.processes.start("coredns", &program, &arguments)
    }

    /// Ready is when a pod could run, find names and reach Services.
    async fn wait_until_ready(&mut self) -> Result<()> {
        self.say("waiting for the node")?;
        let nodes: Api<KubeNode> = Api::all(self.cluster.client().await?);
        until_alive("the node", &mut self.processes, async || {
            let node = nodes.get(NODE_NAME).await.map_err(|e| e.to_string())?;
            let conditions = node.status.and_then(|status| status.conditions).unwrap_or_default();
            match conditions.iter().find(|c| c.type_ == "Ready") {
                Some(ready) if ready.status == "True" => Ok(()),
                Some(ready) => Err(ready.message.clone().unwrap_or_default()),
                None => Err("no word from the kubelet".into()),
            }
        })
        .await?;
        self.say("waiting for names and Services")?;
        wait_for_port((self.network.bridge(), 53), &mut self.processes, "the name server").await?;
        wait_for_port((self.network.kubernetes_service(), 443), &mut self.processes, "kube-proxy").await
    }

    /// Tells whoever waits outside what is going on.
    fn say(&mut self, step: &str) -> Result<()> {
        self.state.set_status(&Status {
            phase: Phase::Starting,
            step: format!("{step},"),
            components: self.processes.components(),
        })
    }

    fn write(&self, name: &str, content: &str) -> Result<PathBuf> {
        let path = self.state.dir.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
        }
        fs::write(&path, content).map_err(Error::file("write", &path))?;
        Ok(path)
    }
}

/// Hides a directory of the host behind one of our own: what the runtime, the network plugins and the
/// kubelet write to fixed places stays in the cluster's directory, and goes with it.
fn shadow(target: &Path, dir: &Path, home: &Path) -> Result<()> {
    let own = dir.join("shadow").join(target.strip_prefix("/").unwrap_or(target));
    fs::create_dir_all(&own).map_err(Error::file("create", &own))?;
    let bind = |from: &Path, to: &Path| {
        let what = format!("mounting {} on {}", from.display(), to.display());
        run(&what, Command::new("mount").arg("--rbind").arg(from).arg(to)).map(drop)
    };
    // The cache directory itself may be down there (a home below /var/lib): keep it in sight.
    if let Ok(below) = home.strip_prefix(target) {
        let visible = own.join(below);
        fs::create_dir_all(&visible).map_err(Error::file("create", &visible))?;
        bind(home, &visible)?;
    }
    bind(&own, target)
}

/// Settings of the whole kernel that the kubelet would change for everybody on the machine, and the values it
/// looks for. It reads each one first, so a file of ours in its place is all it takes.
const KERNEL_SETTINGS: [(&str, &str); 6] = [
    ("vm/overcommit_memory", "1"),
    ("vm/panic_on_oom", "0"),
    ("kernel/panic", "10"),
    ("kernel/panic_on_oops", "1"),
    ("kernel/keys/root_maxkeys", "1000000"),
    ("kernel/keys/root_maxbytes", "25000000"),
];

/// Puts files of our own before the kernel's, in this mount namespace only.
fn shield_settings(dir: &Path) -> Result<()> {
    for (name, value) in KERNEL_SETTINGS {
        let own = dir.join("shadow/sys").join(name);
        if let Some(parent) = own.parent() {
            fs::create_dir_all(parent).map_err(Error::file("create", parent))?;
        }
        fs::write(&own, value).map_err(Error::file("write", &own))?;
        let setting = Path::new("/proc/sys").join(name);
        let what = format!("shielding {}", setting.display());
        run(&what, Command::new("mount").arg("--bind").arg(&own).arg(&setting))?;
    }
    Ok(())
}

/// Imports the images that a fresh node knows, one after the other.
fn import_images(store: &Store) -> Result<impl FnOnce() -> Result<()> + use<>> {
    let ctr = store.ensure(&artifact::containerd())?.join("ctr");
    let archives: Result<Vec<PathBuf>> =
        artifact::node_images().iter().map(|image| Ok(store.ensure(image)?.join(artifact::ARCHIVE))).collect();
    let archives = archives?;
    Ok(move || {
        for archive in archives {
            let mut import = Command::new(&ctr);
            import.args(["--address", CONTAINERD_SOCKET, "--namespace", "k8s.io", "images", "import"]);
            run(&format!("importing {}", archive.display()), import.arg(&archive))?;
        }
        Ok(())
    })
}

fn search_path(first: &[&Path]) -> String {
    let own = first.iter().map(|dir| dir.display().to_string());
    let system = ["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"].map(str::to_owned);
    own.chain(system).collect::<Vec<_>>().join(":")
}

/// The first process inherits orphans (containers' shims) and has to bury them.
fn reap_orphans(own: &[u32]) {
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let orphans = pids.filter(|pid| !own.contains(pid) && stat_of(*pid).is_some_and(|stat| stat.parent == 1));
    for pid in orphans.filter_map(|pid| Pid::from_raw(i32::try_from(pid).ok()?)) {
        rustix::process::waitpid(Some(pid), WaitOptions::NOHANG).ok();
    }
}
