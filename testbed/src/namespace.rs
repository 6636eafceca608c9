//! A namespace of its own for each test: removed with its guard, explained when the test fails.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::thread;

use k8s_openapi::api::core::v1::{Event, Namespace as KubeNamespace, Pod, ServiceAccount};
use kube::api::{DeleteParams, ListParams, PostParams};
use kube::{Api, Client};

use crate::cluster::Cluster;
use crate::error::{Error, Result};
use crate::wait;

/// A namespace that goes when this goes.
pub struct Namespace {
    name: String,
    client: Client,
    cluster: Cluster,
}

impl Namespace {
    /// A new namespace whose name begins with `prefix`, ready for pods.
    pub async fn create(cluster: &Cluster, prefix: &str) -> Result<Self> {
        Self::create_labelled(cluster, prefix, &[]).await
    }

    /// Like [`Namespace::create`], with labels (Pod Security Standards are asked for by labels).
    pub async fn create_labelled(cluster: &Cluster, prefix: &str, labels: &[(&str, &str)]) -> Result<Self> {
        let client = cluster.client().await?;
        let mut wanted = KubeNamespace::default();
        wanted.metadata.generate_name = Some(format!("{prefix}-"));
        let labels: BTreeMap<_, _> = labels.iter().map(|(k, v)| (k.to_string(), v.to_string())).collect();
        wanted.metadata.labels = (!labels.is_empty()).then_some(labels);
        let created = Api::all(client.clone()).create(&PostParams::default(), &wanted).await?;
        let namespace = Self { name: created.metadata.name.unwrap_or_default(), client, cluster: cluster.clone() };
        let accounts = namespace.api::<ServiceAccount>();
        wait::until("the namespace's service account", 60, async || {
            accounts.get("default").await.map(drop).map_err(|e| e.to_string())
        })
        .await?;
        Ok(namespace)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The objects of a kind in it, as the administrator sees them.
    pub fn api<K>(&self) -> Api<K>
    where
        K: kube::Resource<Scope = kube::core::NamespaceResourceScope>,
        K::DynamicType: Default,
    {
        Api::namespaced(self.client.clone(), &self.name)
    }

    /// Runs `kubectl` in this namespace.
    pub fn kubectl(&self, arguments: &[&str]) -> Result<String> {
        let mut all = vec!["--namespace", &self.name];
        all.extend(arguments);
        self.cluster.kubectl(&all)
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        let failed = thread::panicking();
        let (cluster, name) = (self.cluster.clone(), self.name.clone());
        // The test's runtime may be on its way out: use one of our own, with a client of its own.
        let work = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            let Ok(runtime) = runtime else { return };
            runtime.block_on(async {
                let Ok(client) = cluster.client().await else { return };
                if failed {
                    eprintln!("{}", describe(&client, &name).await.unwrap_or_default());
                }
                let namespaces: Api<KubeNamespace> = Api::all(client);
                // Not waited for: the namespace controller finishes the job.
                namespaces.delete(&name, &DeleteParams::background()).await.ok();
            });
        });
        work.join().ok();
    }
}

/// What there is to see when a test has failed.
async fn describe(client: &Client, namespace: &str) -> Result<String, Error> {
    let all = ListParams::default();
    let mut text = format!("--- namespace {namespace} when the test failed ---\n");
    for pod in Api::<Pod>::namespaced(client.clone(), namespace).list(&all).await? {
        let status = pod.status.unwrap_or_default();
        let name = pod.metadata.name.unwrap_or_default();
        writeln!(text, "pod {name}: {}", status.phase.unwrap_or_default()).ok();
        for container in status.container_statuses.unwrap_or_default() {
            let state = serde_json::to_string(&container.state).unwrap_or_default();
            writeln!(text, "  {}: ready {}, {state}", container.name, container.ready).ok();
        }
    }
    for event in Api::<Event>::namespaced(client.clone(), namespace).list(&all).await? {
        let object = event.involved_object;
        writeln!(
            text,
            "event {} {}: {}: {}",
            object.kind.unwrap_or_default(),
            object.name.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            event.message.unwrap_or_default(),
        )
        .ok();
    }
    Ok(text)
}
