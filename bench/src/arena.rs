//! The place of one measurement: a fresh control plane with kinds, namespaces and declared objects.
//! Everything here happens before the clock starts.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use testbed::artifact::Artifact;
use testbed::cluster::control_plane::Options;
use testbed::home::Home;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{ControlPlane, User, wait};

use crate::error::{Error, Result};
use crate::object::{self, Target};
use crate::plan::{Company, Key, Subject};
use crate::request::{Kind, Requests, for_each};

/// The one who declares objects.
const USER: &str = "bench-user";
/// Pods a node; kwok's nodes have room for twice as many.
const PODS_PER_NODE: usize = 50;
/// Nodes that are added at once.
const NODES_AT_ONCE: usize = 100;
/// How long preparations may take, in seconds.
const DEADLINE: u64 = 300;
/// The garbage collector looks for new kinds twice a minute.
const COLLECTOR_KNOWS_KINDS: Duration = Duration::from_secs(35);

/// A control plane with declared objects.
pub struct Arena {
    /// The control plane itself.
    pub cluster: ControlPlane,
    /// Requests by the one who declares objects.
    pub user: Requests,
    /// The objects.
    pub targets: Vec<Target>,
    /// The other operator's program, if it is the one that is measured.
    pub peer: Option<PathBuf>,
    defined: Instant,
}

impl Arena {
    /// A place for a measurement.
    pub async fn prepare(key: Key) -> Result<Self> {
        let company = key.scenario.company();
        let options = Options {
            without_controllers: company == Company::Nobody,
            with_fleet: company == Company::Fleet,
            ..Options::default()
        };
        let cluster = ControlPlane::start_with(options).await?;
        let peer = if key.subject == Subject::Peer { Some(peer_directory()?) } else { None };
        define(&cluster, &kinds(peer.as_deref())).await?;
        let user = Requests::by(cluster.client_as(&administrator(USER)).await?);
        let targets = object::targets(key.scenario, key.size);
        let mut arena = Self {
            cluster,
            user,
            targets,
            peer: peer.map(|dir| dir.join(Artifact::peer_operator().name())),
            defined: Instant::now(),
        };
        if company == Company::Fleet {
            arena.add_nodes().await?;
        }
        arena.create_namespaces(company != Company::Nobody).await?;
        arena.declare(key.scenario.has_secrets()).await?;
        Ok(arena)
    }

    /// Requests by another administrator, whom the audit log knows by this name.
    pub async fn requests_as(&self, user: &str) -> Result<Requests> {
        Ok(Requests::by(self.cluster.client_as(&administrator(user)).await?))
    }

    /// Waits until the garbage collector knows the kinds: deleting before measures its discovery.
    pub async fn wait_for_collector(&self) {
        tokio::time::sleep(COLLECTOR_KNOWS_KINDS.saturating_sub(self.defined.elapsed())).await;
    }

    async fn add_nodes(&self) -> Result<()> {
        let pods = self.targets.len() * usize::try_from(object::REPLICAS).unwrap_or(1);
        let mut missing = pods.div_ceil(PODS_PER_NODE);
        while missing > 0 {
            let next = missing.min(NODES_AT_ONCE);
            self.cluster.add_nodes(next).await?;
            missing -= next;
        }
        Ok(())
    }

    /// Creates the namespaces; where pods are to be made, each needs its service account.
    async fn create_namespaces(&self, has_controllers: bool) -> Result<()> {
        let names = object::namespaces(&self.targets);
        let create = |name: String| {
            let user = self.user.clone();
            async move {
                let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
                user.create(&Kind::Namespace.everywhere(), &namespace).await
            }
        };
        for_each(names.clone(), create).await?;
        if !has_controllers {
            return Ok(());
        }
        let path = Kind::ServiceAccount.everywhere();
        wait::until("the namespaces' service accounts", DEADLINE, async || {
            let accounts = self.user.list_metadata(&path).await.map_err(|error| error.to_string())?;
            let ready = accounts.iter().filter(|a| a.name == "default" && names.contains(&a.namespace)).count();
            if ready == names.len() { Ok(()) } else { Err(format!("{ready} of {} are there", names.len())) }
        })
        .await?;
        Ok(())
    }

    async fn declare(&mut self, has_secrets: bool) -> Result<()> {
        let declare = |target: Target| {
            let user = self.user.clone();
            async move {
                let secrets: Vec<Value> = if has_secrets { object::secrets(&target).into() } else { Vec::new() };
                for secret in secrets {
                    user.create(&Kind::Secret.within(&target.namespace), &secret).await?;
                }
                let path = Kind::Memcached.within(&target.namespace);
                let created = user.create(&path, &object::memcached(&target, has_secrets)).await?;
                Ok::<_, Error>(target.created(created))
            }
        };
        self.targets = for_each(self.targets.clone(), declare).await?;
        Ok(())
    }
}

/// Somebody who may do everything, under a name of their own.
fn administrator(name: &str) -> User {
    User::new(name).group("system:masters")
}

/// The other operator and its kinds, built first if need be.
fn peer_directory() -> Result<PathBuf> {
    let store = Store::new(Home::locate()?, Progress::detect());
    Ok(store.ensure(&Artifact::peer_operator())?)
}

/// The files with the kinds: each operator has its own definition of `Memcached`, as its users would.
fn kinds(peer: Option<&Path>) -> Vec<PathBuf> {
    let Some(dir) = peer else {
        return vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../config/crd/memcached.c5c3.io_memcacheds.yaml")];
    };
    ["memcached.c5c3.io_memcacheds.yaml", "monitoring.coreos.com_servicemonitors.yaml"]
        .map(|file| dir.join(file))
        .into()
}

/// Makes kinds known and waits until they are served.
async fn define(cluster: &ControlPlane, files: &[PathBuf]) -> Result<()> {
    for file in files {
        cluster.kubectl(&["apply", "--server-side", "--filename", &file.display().to_string()])?;
    }
    // kubectl gives up at once on a kind that has no status yet.
    let established = ["wait", "--for=condition=Established", "--timeout=5s", "crd", "--all"];
    wait::until("the kinds to be served", DEADLINE, async || cluster.kubectl(&established).map_err(|e| e.to_string()))
        .await?;
    Ok(())
}
