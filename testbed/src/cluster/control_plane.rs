//! The shape without containers: real API, real controllers, on loopback, without root.

use std::ops::Deref;
use std::sync::atomic::{AtomicU32, Ordering};

use super::Cluster;
use super::api_server::{self, Plan};
use super::port::Port;
use super::process::Processes;
use super::state::{Component, Owned, Shape, State};
use crate::artifact::Set;
use crate::cert_manager;
use crate::error::Result;
use crate::fleet;
use crate::home::Home;
use crate::install::install;
use crate::progress::Progress;
use crate::store::{Check, Store};

/// A control plane that dies with this guard, and with its process, however that ends.
#[derive(Debug)]
pub struct ControlPlane {
    cluster: Cluster,
    plan: Plan,
    store: Store,
    // In this order: first the processes go, then their directory, then their ports.
    processes: Processes,
    owned: Owned,
    _ports: Vec<Port>,
}

/// What a control plane is to have.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Its name; a free one by default.
    pub name: Option<String>,
    /// The API server's port; a free one by default.
    pub api_port: Option<u16>,
    /// A scheduler, and kwok that makes nodes and pods look alive.
    pub with_fleet: bool,
    /// etcd and the API server alone: nobody acts on what is written, and no namespace has a service account.
    pub without_controllers: bool,
}

impl ControlPlane {
    /// A control plane with nothing special.
    pub async fn start() -> Result<Self> {
        Self::start_with(Options::default()).await
    }

    /// A control plane on which nodes and pods are pretended.
    pub async fn start_with_fleet() -> Result<Self> {
        Self::start_with(Options { with_fleet: true, ..Options::default() }).await
    }

    /// A control plane as declared, ready for work.
    pub async fn start_with(options: Options) -> Result<Self> {
        let store = Store::new(Home::locate()?, Progress::detect());
        Self::start_in(store, options).await
    }

    /// A control plane as declared, in another home.
    pub async fn start_in(store: Store, options: Options) -> Result<Self> {
        let set = if options.with_fleet { Set::Fleet } else { Set::ControlPlane };
        install(&store, &[set], Check::Quick)?;
        let home = store.home();
        let ports = vec![
            options.api_port.map_or_else(|| Port::free(home), |port| Port::exactly(home, port))?,
            Port::free(home)?,
            Port::free(home)?,
            Port::free(home)?,
        ];
        let owned = Owned::create(home, &options.name.unwrap_or_else(next_name), Shape::ControlPlane)?;
        let mut numbers = ports.iter().map(|port| port.number);
        let mut number = || numbers.next().unwrap_or_default();
        let plan = Plan {
            dir: owned.state.dir.clone(),
            api_port: number(),
            etcd_port: number(),
            etcd_peer_port: number(),
            services: "10.0.0.0/16".into(),
            addresses: Vec::new(),
            advertise: None,
        };
        let kwok_port = number();
        let mut control_plane = Self {
            cluster: Cluster::at(&plan.dir, plan.local_url())?,
            processes: Processes::new(plan.dir.join("logs")),
            plan,
            store,
            owned,
            _ports: ports,
        };
        control_plane.run(!options.without_controllers, options.with_fleet.then_some(kwok_port)).await?;
        Ok(control_plane)
    }

    async fn run(&mut self, has_controllers: bool, kwok_port: Option<u16>) -> Result<()> {
        let Self { cluster, plan, store, processes, .. } = self;
        api_server::start(plan, cluster, store, processes).await?;
        if has_controllers {
            api_server::start_controllers(plan, cluster, store, processes).await?;
        }
        if let Some(port) = kwok_port {
            api_server::start_scheduler(plan, store, processes)?;
            fleet::start_kwok(plan, store, processes, port)?;
        }
        cluster.publish()
    }

    /// Its files.
    pub fn state(&self) -> &State {
        &self.owned.state
    }

    /// How its processes are.
    pub fn components(&mut self) -> Vec<Component> {
        self.processes.components()
    }

    /// Adds cert-manager's kinds and controllers, which end with the control plane; returns when they are at work.
    pub async fn add_cert_manager(&mut self) -> Result<()> {
        cert_manager::prepare(&self.cluster, &self.store).await?;
        self.start_cert_manager()?;
        let Self { cluster, plan, processes, .. } = self;
        cert_manager::wait_until_ready(cluster, &plan.dir, || processes.check()).await
    }

    /// Starts cert-manager's controllers alone.
    pub(crate) fn start_cert_manager(&mut self) -> Result<()> {
        cert_manager::start(&self.plan, &self.store, &mut self.processes)
    }

    /// Kills the API server: what a client sees when it crashes.
    pub fn stop_api_server(&mut self) {
        self.processes.stop("kube-apiserver");
    }

    /// Starts the API server again on the same port, with the same data.
    pub async fn start_api_server(&mut self) -> Result<()> {
        api_server::start_api_server(&self.plan, &self.cluster, &self.store, &mut self.processes).await
    }
}

impl Deref for ControlPlane {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

/// Unique among processes by their number, within one by counting.
fn next_name() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!("cp-{}-{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed))
}
