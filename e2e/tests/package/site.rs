//! A node that one test after the other has for itself, with the operator's image and no trace of an operator.

use std::fs::File;
use std::path::{Path, PathBuf};

use e2e::helm::Helm;
use e2e::operator;
use e2e::pod::is_ready;
use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::api::ListParams;
use serde_json::{Value, json};
use testbed::home::Home;
use testbed::namespace::Namespace;
use testbed::progress::Progress;
use testbed::store::Store;
use testbed::{Error, Node, Result, wait};
use tokio::sync::Mutex;

/// How long anything may take on a busy machine, in seconds.
pub const DEADLINE: u64 = 300;
/// The namespace that config/ puts the operator into.
pub const SYSTEM: &str = "memcached-operator-system";
/// The operator's labels, however it was installed.
const OPERATOR: &str = "app.kubernetes.io/name=memcached-operator";
const RESTRICTED: &[(&str, &str)] = &[("pod-security.kubernetes.io/enforce", "restricted")];
const BUILT: &str = "docker.io/library/memcached-operator:dev";

/// An install is about a whole cluster: so many can be tried at once.
const NODES: [&str; 3] = ["package", "package-2", "package-3"];
/// The nodes that this process has used; they end with it.
static HELD: Mutex<Vec<(&str, Node)>> = Mutex::const_new(Vec::new());

/// A node of their own for the installs.
pub struct Site {
    pub node: Node,
    pub helm: Helm,
    home: tempfile::TempDir,
    // Locked: an install is about the whole cluster, and the node is shared with tests of other checkouts.
    _turn: File,
}

fn take_turn(locks: &[(&'static str, PathBuf)]) -> (&'static str, File) {
    loop {
        for (name, path) in locks {
            let file = File::create(path).unwrap();
            if file.try_lock().is_ok() {
                return (name, file);
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
}

impl Site {
    /// The next node that is free.
    pub async fn open() -> Self {
        let home = Home::locate().unwrap();
        let locks = NODES.map(|name| (name, home.lock_file(&format!("{name}.turn"))));
        // Waiting for minutes is not for an async thread.
        let (name, turn) = tokio::task::spawn_blocking(move || take_turn(&locks)).await.unwrap();
        let leased = || Node::leased(Store::new(home.clone(), Progress::detect()), name);
        let node = leased().await.unwrap();
        let mut nodes = HELD.lock().await;
        if nodes.iter().all(|(used, _)| *used != name) {
            // The next test finds it running.
            nodes.push((name, leased().await.unwrap()));
        }
        drop(nodes);
        let home = tempfile::tempdir().unwrap();
        let helm = Helm::of(&node, home.path()).unwrap();
        let site = Self { node, helm, home, _turn: turn };
        site.clear().await;
        site.load();
        site
    }

    /// The image under the name that config/ uses, and under the one that the chart does.
    fn load(&self) {
        self.node.load(&operator::image().unwrap()).unwrap();
        self.node.tag(BUILT, &format!("docker.io/library/memcached-operator:{}", env!("CARGO_PKG_VERSION"))).unwrap();
    }

    /// Takes away whatever the test before has left, passed or failed.
    async fn clear(&self) {
        let kubectl = |arguments: &[&str]| self.node.kubectl(arguments).unwrap();
        let gone = ["--ignore-not-found", "--wait=false"];
        let delete = |what: &[&str]| kubectl(&[&["delete"], what, &gone].concat());
        delete(&["validatingwebhookconfiguration,mutatingwebhookconfiguration", "--all"]);
        delete(&["crd", "--all"]);
        for namespace in self.installed_in() {
            delete(&["namespace", &namespace]);
        }
        for kind in ["clusterrole", "clusterrolebinding"] {
            let names = kubectl(&["get", kind, "--output", "name"]);
            for name in names.lines().filter(|name| name.contains("memcached-operator")) {
                delete(&[name]);
            }
        }
        wait::until("the node to be empty", DEADLINE, async || {
            let left = self.node.kubectl(&["get", "crd", "--output", "name"]).map_err(|error| error.to_string())?;
            let left = left + &self.installed_in().join(" ");
            if left.trim().is_empty() { Ok(()) } else { Err(left) }
        })
        .await
        .unwrap();
    }

    /// The namespaces that operators are installed in.
    fn installed_in(&self) -> Vec<String> {
        let names = self.node.kubectl(&["get", "namespace", "--output", "name"]).unwrap();
        let names = names.lines().filter_map(|name| name.strip_prefix("namespace/"));
        names.filter(|name| *name == SYSTEM || name.starts_with("site-")).map(str::to_owned).collect()
    }

    /// A namespace that enforces the restricted Pod Security Standard.
    pub async fn namespace(&self, name: &str) -> Namespace {
        Namespace::create_labelled(&self.node, &format!("site-{name}"), RESTRICTED).await.unwrap()
    }

    /// Waits until the operator's Deployment has rolled out.
    pub async fn rolled_out(&self, namespace: &str, deployment: &str) {
        let deployment = format!("deployment/{deployment}");
        let rolled_out = ["--namespace", namespace, "rollout", "status", &deployment, "--timeout=5s"];
        let seen = wait::until("the operator to be ready", DEADLINE, async || {
            self.node.kubectl(&rolled_out).map_err(|error| error.to_string())
        });
        if let Err(error) = seen.await {
            panic!("{error}\n{}", self.explain(namespace));
        }
        let registered = wait::until("the webhooks to be registered", DEADLINE, async || {
            let entries = self.registrations();
            if entries.iter().all(|(_, entries)| !entries.is_empty()) { Ok(()) } else { Err(format!("{entries:?}")) }
        });
        if let Err(error) = registered.await {
            panic!("{error}\n{}", self.explain(namespace));
        }
    }

    /// The operator's webhook configurations: their kinds and versions, and their entries.
    pub fn registrations(&self) -> Vec<(String, Vec<Value>)> {
        let kinds = "mutatingwebhookconfiguration,validatingwebhookconfiguration";
        let text = self.node.kubectl(&["get", kinds, "--selector", OPERATOR, "--output", "json"]).unwrap();
        let list: Value = serde_json::from_str(&text).unwrap();
        let registration = |live: &Value| {
            let version = format!("{} {}", live["kind"], live["metadata"]["resourceVersion"]);
            (version, live["webhooks"].as_array().cloned().unwrap_or_default())
        };
        list["items"].as_array().into_iter().flatten().map(registration).collect()
    }

    /// What there is to see when an operator does not become ready.
    fn explain(&self, namespace: &str) -> String {
        let look = |arguments: &[&str]| self.node.kubectl(arguments).unwrap_or_else(|error| error.to_string());
        let events = look(&["--namespace", namespace, "get", "events"]);
        let logs = look(&["--namespace", namespace, "logs", "--selector", OPERATOR, "--tail=30"]);
        format!("{events}\n{logs}")
    }

    /// The operator's pods that are ready and not on their way out.
    pub async fn operators(&self, namespace: &str) -> Vec<Pod> {
        let pods: Api<Pod> = Api::namespaced(self.node.client().await.unwrap(), namespace);
        let pods = pods.list(&ListParams::default().labels(OPERATOR)).await.unwrap().items;
        pods.into_iter().filter(|pod| pod.metadata.deletion_timestamp.is_none() && is_ready(pod)).collect()
    }

    /// Applies a file as people would, again while webhooks come up.
    pub async fn apply(&self, namespace: &Namespace, file: &Path) {
        let file = file.to_str().unwrap();
        let applied = wait::until(format!("{file} to be accepted"), DEADLINE, async || {
            namespace.kubectl(&["apply", "--filename", file]).map_err(|error| error.to_string())
        });
        applied.await.unwrap();
    }

    /// Declares a cache, once.
    pub fn declare(&self, namespace: &Namespace, name: &str, spec: &Value) -> Result<()> {
        let document = json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": name}, "spec": spec,
        });
        let file = self.home.path().join("cache.json");
        std::fs::write(&file, document.to_string()).map_err(Error::file("write", &file))?;
        namespace.kubectl(&["apply", "--filename", &file.to_string_lossy()]).map(drop)
    }

    /// Declares a cache that says nothing, and waits until it is ready: it then says what the webhook has filled in.
    pub async fn plain_cache(&self, namespace: &Namespace, name: &str) -> Value {
        let declared = wait::until(format!("cache {name} to be accepted"), DEADLINE, async || {
            self.declare(namespace, name, &json!({})).map_err(|error| error.to_string())
        });
        declared.await.unwrap();
        self.ready(namespace, name).await
    }

    /// Waits until a cache is ready.
    pub async fn ready(&self, namespace: &Namespace, name: &str) -> Value {
        let found = wait::until(format!("cache {name} to be ready"), DEADLINE, async || {
            let cache = get_cache(namespace, name).map_err(|error| error.to_string())?;
            let conditions = cache["status"]["conditions"].as_array().cloned().unwrap_or_default();
            let is_ready = conditions.iter().any(|one| one["type"] == "Ready" && one["status"] == "True");
            if is_ready { Ok(cache) } else { Err(format!("{:#}", cache["status"])) }
        });
        found.await.unwrap()
    }
}

/// A cache as it is.
pub fn get_cache(namespace: &Namespace, name: &str) -> Result<Value> {
    let text = namespace.kubectl(&["get", "memcached", name, "--output", "json"])?;
    serde_json::from_str(&text).map_err(|error| Error::Other(error.to_string()))
}
