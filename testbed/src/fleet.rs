//! Many nodes that only pretend: kwok answers for them, so that thousands of pods look ready.

use std::fs;

use futures::stream::{self, StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::Node;
use kube::api::{Api, ListParams, PostParams};

use crate::artifact::Artifact;
use crate::cluster::{Cluster, Plan, Processes};
use crate::error::{Error, Result};
use crate::pki::User;
use crate::store::Store;
use crate::wait;

/// Starts kwok, which looks after every node there is.
pub(crate) fn start_kwok(plan: &Plan, store: &Store, processes: &mut Processes, port: u16) -> Result<()> {
    let dir = store.ensure(&Artifact::kwok())?;
    let config = plan.dir.join("kwok.yaml");
    fs::write(&config, stages(&dir)?).map_err(Error::file("write", &config))?;
    let user = User::new("kwok").group("system:masters");
    let kubeconfig = plan.component_kubeconfig("kwok", &user)?;
    let arguments = [
        format!("--kubeconfig={}", kubeconfig.display()),
        format!("--config={}", config.display()),
        "--manage-all-nodes=true".into(),
        // Without a lease to renew, the node lifecycle controller would give the nodes up after a minute.
        "--node-lease-duration-seconds=40".into(),
        format!("--server-address=127.0.0.1:{port}"),
        "--node-ip=127.0.0.1".into(),
    ];
    processes.start("kwok", &dir.join("kwok"), &arguments)
}

/// How kwok works, beside its stages: with thousands of pods its four hands at once are what everybody waits for. With a
/// configuration of one's own, what it leaves out is zero and not kwok's default.
const CONFIGURATION: &str = "\
apiVersion: config.kwok.x-k8s.io/v1alpha1
kind: KwokConfiguration
options:
  podPlayStageParallelism: 32
  nodePlayStageParallelism: 4
  nodeLeaseParallelism: 4
  podsOnNodeSyncParallelism: 1
  enablePodsOnNodeSyncListPager: true
";

/// The stages that kwok's module ships, as one file.
fn stages(dir: &std::path::Path) -> Result<String> {
    let mut documents = Vec::new();
    for entry in fs::read_dir(dir).map_err(Error::file("read", dir))?.flatten() {
        let path = entry.path();
        if path.extension().is_some_and(|e| e == "yaml") {
            documents.push(fs::read_to_string(&path).map_err(Error::file("read", &path))?);
        }
    }
    documents.sort();
    documents.insert(0, CONFIGURATION.to_owned());
    Ok(documents.join("\n---\n"))
}

impl Cluster {
    /// Adds nodes to a cluster with a fleet and waits until they are ready.
    pub async fn add_nodes(&self, count: usize) -> Result<()> {
        let nodes: Api<Node> = Api::all(self.client().await?);
        let existing = nodes.list_metadata(&ListParams::default()).await?.items.len();
        let create = |number: usize| {
            let nodes = nodes.clone();
            async move {
                let mut node = Node::default();
                let name = format!("fleet-{number}");
                let labels = [("kubernetes.io/hostname", name.as_str()), ("type", "kwok")];
                node.metadata.labels = Some(labels.map(|(k, v)| (k.to_owned(), v.to_owned())).into());
                node.metadata.name = Some(name);
                nodes.create(&PostParams::default(), &node).await.map(drop)
            }
        };
        stream::iter(existing..existing + count).map(create).buffer_unordered(16).try_collect::<()>().await?;
        wait::until(format!("{count} more nodes"), 180, async || {
            let all = nodes.list(&ListParams::default()).await.map_err(|e| e.to_string())?;
            let ready = all.iter().filter(|node| is_ready(node)).count();
            let total = existing + count;
            if ready >= total { Ok(()) } else { Err(format!("{ready} of {total} ready")) }
        })
        .await
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_ref());
    conditions.is_some_and(|all| all.iter().any(|c| c.type_ == "Ready" && c.status == "True"))
}
