//! A control plane with pretended nodes and the real operator on it, under exactly the shipped RBAC.

#![allow(dead_code, reason = "every test binary uses another part")]

pub mod optional;
pub mod proxy;
mod reader;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Weak};

use kube::api::{Api, Patch, PatchParams};
use memcached_api::Memcached;
use serde_json::{Value, json};
use tempfile::TempPath;
use testbed::namespace::Namespace;
use testbed::{ControlPlane, User, wait};
use tokio::sync::Mutex;

use reader::Reader;

pub const DEADLINE: u64 = 300;
pub const OPERATOR: &str = "system:serviceaccount:memcached-operator-system:memcached-operator";

/// Where the repository's own manifests are.
pub fn manifest(path: &str) -> String {
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../").to_owned() + path
}

/// The kind's definition.
pub const DEFINITION: &str = "config/crd/memcached.c5c3.io_memcacheds.yaml";

/// Makes the kind known from a file.
pub async fn define(cluster: &ControlPlane, file: &str) {
    cluster.kubectl(&["apply", "--server-side", "--filename", file]).unwrap();
    let established = ["wait", "--for=condition=Established", "crd/memcacheds.memcached.c5c3.io", "--timeout=60s"];
    // kubectl gives up at once on an object that has no conditions yet.
    wait::until("the kind to be served", DEADLINE, async || cluster.kubectl(&established).map_err(|e| e.to_string()))
        .await
        .unwrap();
}

/// A control plane with the CRD, the RBAC and one operator.
pub struct Arena {
    pub cluster: ControlPlane,
    pub operator: std::sync::Mutex<Option<Operator>>,
    reader: Reader,
}

impl Arena {
    /// The one that the tests of a binary share; it ends with the last of them.
    pub async fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Arena>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(arena) = shared.upgrade() {
            return arena;
        }
        let arena = Self::without_operator().await;
        arena.create(&optional::definitions());
        arena.start_operator(&["--leader-elect=false"]);
        let arena = Arc::new(arena);
        *shared = Arc::downgrade(&arena);
        arena
    }

    /// One of its own, with these arguments for the operator.
    pub async fn start(arguments: &[&str]) -> Self {
        let arena = Self::without_operator().await;
        arena.start_operator(arguments);
        arena
    }

    /// One in which no operator runs yet.
    pub async fn without_operator() -> Self {
        let cluster = ControlPlane::start_with_fleet().await.unwrap();
        cluster.add_nodes(3).await.unwrap();
        define(&cluster, &manifest(DEFINITION)).await;
        for file in ["config/rbac/base.yaml", "config/rbac/cluster.yaml"] {
            cluster.kubectl(&["apply", "--server-side", "--filename", &manifest(file)]).unwrap();
        }
        Self { cluster, operator: std::sync::Mutex::new(None), reader: Reader::default() }
    }

    /// Creates objects in no namespace.
    pub fn create(&self, objects: &[Value]) {
        for object in objects {
            let mut file = tempfile::NamedTempFile::new().unwrap();
            file.write_all(object.to_string().as_bytes()).unwrap();
            self.cluster.kubectl(&["create", "--filename", file.path().to_str().unwrap()]).unwrap();
        }
    }

    pub fn start_operator(&self, arguments: &[&str]) {
        let operator = Operator::start(&self.cluster, arguments);
        *self.operator.lock().unwrap() = Some(operator);
    }

    /// The same operator in another version, with other defaults.
    pub fn start_other_version(&self, arguments: &[&str]) {
        let account = User::service_account("memcached-operator-system", "memcached-operator");
        let program = env!("CARGO_BIN_EXE_memcached-operator-with-other-defaults");
        let operator = Operator::start_as(&account, program, &self.cluster, arguments);
        *self.operator.lock().unwrap() = Some(operator);
    }

    pub fn stop_operator(&self) {
        *self.operator.lock().unwrap() = None;
    }

    pub async fn namespace(&self, prefix: &str) -> Place<'_> {
        Place { arena: self, namespace: self.cluster.namespace(prefix).await.unwrap() }
    }

    /// The operator's writes in a namespace since a mark, but for leases and Events.
    pub fn writes_since(&self, mark: testbed::audit::Mark, namespace: &str) -> Vec<String> {
        self.writes_of(OPERATOR, mark, namespace)
    }

    /// The same for a replica that has a name of its own.
    pub fn writes_of(&self, user: &str, mark: testbed::audit::Mark, namespace: &str) -> Vec<String> {
        let requests = self.cluster.audit().requests_since(mark).unwrap();
        let writes = requests.into_iter().filter(|r| r.user == user && r.is_write() && r.namespace == namespace);
        let writes = writes.filter(|r| !["leases", "events"].contains(&r.resource.as_str()));
        writes.map(|r| format!("{} {} {}/{}", r.verb, r.resource, r.namespace, r.name)).collect()
    }
}

/// The operator's process; killed with its guard, its log shown when a test fails.
pub struct Operator {
    child: Child,
    log: TempPath,
}

impl Operator {
    pub fn start(cluster: &ControlPlane, arguments: &[&str]) -> Self {
        let account = User::service_account("memcached-operator-system", "memcached-operator");
        // A measurement names the program as it is shipped.
        let shipped = std::env::var("OPERATOR_BIN");
        let program = shipped.as_deref().unwrap_or(env!("CARGO_BIN_EXE_memcached-operator"));
        Self::start_as(&account, program, cluster, arguments)
    }

    /// Another build of the operator, or one under another name.
    pub fn start_as(user: &User, program: &str, cluster: &ControlPlane, arguments: &[&str]) -> Self {
        Self::run(program, &cluster.kubeconfig_as(user).unwrap(), arguments)
    }

    /// The operator with a way to the API server of its own.
    pub fn start_by(kubeconfig: &Path, arguments: &[&str]) -> Self {
        Self::run(env!("CARGO_BIN_EXE_memcached-operator"), kubeconfig, arguments)
    }

    fn run(program: &str, kubeconfig: &Path, arguments: &[&str]) -> Self {
        let (file, log) = tempfile::NamedTempFile::new().unwrap().into_parts();
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--", program])
            .args(arguments)
            .args(without_webhooks(arguments))
            .args(off("--metrics-bind-address", arguments))
            .args(off("--health-probe-bind-address", arguments))
            .env("KUBECONFIG", kubeconfig)
            .env("RUST_LOG", "info,memcached_operator=debug")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(file);
        Self { child: testbed::spawn(command).unwrap(), log }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// How many sockets it has: connections to the API server, and a few of its runtime.
    pub fn sockets(&self) -> usize {
        let files = std::fs::read_dir(format!("/proc/{}/fd", self.pid())).unwrap().flatten();
        files.filter(|file| std::fs::read_link(file.path()).is_ok_and(|to| to.starts_with("socket:"))).count()
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(&self.log).unwrap_or_default()
    }
}

/// Turned off unless a test wants it: several operators share the machine.
fn off(flag: &str, arguments: &[&str]) -> Option<String> {
    let is_given = arguments.iter().any(|argument| argument.starts_with(flag));
    (!is_given).then(|| format!("{flag}=0"))
}

/// The API server would have to be told where they are.
fn without_webhooks(arguments: &[&str]) -> Option<&'static str> {
    let is_wanted = arguments.iter().any(|argument| argument.starts_with("--webhook"));
    (!is_wanted).then_some("--enable-webhooks=false")
}

impl Drop for Operator {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
        if std::thread::panicking() {
            eprintln!("--- the operator's log ---\n{}", self.log());
        }
    }
}

/// A namespace of a test.
pub struct Place<'a> {
    pub arena: &'a Arena,
    pub namespace: Namespace,
}

impl Place<'_> {
    pub fn name(&self) -> &str {
        self.namespace.name()
    }

    pub fn caches(&self) -> Api<Memcached> {
        self.namespace.api()
    }

    /// Applies a declaration as a user would.
    pub async fn declare(&self, name: &str, spec: Value) -> Memcached {
        let document = json!({
            "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached",
            "metadata": {"name": name}, "spec": spec,
        });
        let params = PatchParams::apply("a-user").force();
        self.caches().patch(name, &params, &Patch::Apply(document)).await.unwrap()
    }

    /// Creates any object, by kubectl.
    pub fn create(&self, object: &Value) {
        let mut file = tempfile::NamedTempFile::new().unwrap();
        file.write_all(object.to_string().as_bytes()).unwrap();
        self.namespace.kubectl(&["create", "--filename", file.path().to_str().unwrap()]).unwrap();
    }

    /// Changes an object by a merge patch, as somebody with `kubectl edit` would.
    pub fn edit(&self, kind: &str, name: &str, patch: &Value) {
        self.namespace.kubectl(&["patch", kind, name, "--type=merge", "--patch", &patch.to_string()]).unwrap();
    }

    /// An object as JSON, if it is there.
    pub fn get(&self, kind: &str, name: &str) -> Option<Value> {
        self.arena.reader.get(&self.arena.cluster, self.name(), kind, name)
    }

    /// Waits until an object is as it should be.
    pub async fn eventually(&self, kind: &str, name: &str, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        wait::until(format!("{kind} {name}: {what}"), DEADLINE, async || match self.get(kind, name) {
            Some(object) if is_so(&object) => Ok(object),
            Some(object) => Err(format!("{:#}", without_noise(object))),
            None => Err("it is not there".into()),
        })
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", self.operator_log()))
    }

    pub async fn gone(&self, kind: &str, name: &str) {
        wait::until(format!("{kind} {name} to be gone"), DEADLINE, async || match self.get(kind, name) {
            None => Ok(()),
            Some(object) => Err(format!("{:#}", without_noise(object))),
        })
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", self.operator_log()));
    }

    pub async fn ready(&self, name: &str) -> Value {
        self.eventually("memcached", name, "Ready", |cache| {
            is(cache, "Ready", "True") && cache["status"]["observedGeneration"] == cache["metadata"]["generation"]
        })
        .await
    }

    /// Waits until a cache's status has caught up with its declaration.
    pub async fn settled(&self, name: &str) -> Value {
        self.eventually("memcached", name, "seen", |cache| {
            cache["status"]["observedGeneration"] == cache["metadata"]["generation"]
        })
        .await
    }

    fn operator_log(&self) -> String {
        let operator = self.arena.operator.lock().unwrap();
        operator.as_ref().map(Operator::log).unwrap_or_default()
    }
}

/// Whether a condition has a status.
pub fn is(cache: &Value, type_: &str, status: &str) -> bool {
    condition(cache, type_)["status"] == status
}

pub fn condition(cache: &Value, type_: &str) -> Value {
    let all = cache["status"]["conditions"].as_array().cloned().unwrap_or_default();
    all.into_iter().find(|c| c["type"] == type_).unwrap_or_default()
}

pub fn without_noise(mut object: Value) -> Value {
    if let Some(metadata) = object["metadata"].as_object_mut() {
        metadata.remove("managedFields");
    }
    object
}

/// Whether a write is about the object of that name; a creation does not tell, and three make a new cache.
pub fn is_about(write: &str, name: &str) -> bool {
    let kinds = ["controllerrevisions", "services", "deployments"];
    write.contains(&format!("/{name}")) || kinds.iter().any(|kind| write.starts_with(&format!("create {kind} ")))
}

/// A template's first container.
pub fn server(deployment: &Value) -> &Value {
    &deployment["spec"]["template"]["spec"]["containers"][0]
}

pub fn labels(name: &str) -> BTreeMap<String, String> {
    [
        ("app.kubernetes.io/name", "memcached"),
        ("app.kubernetes.io/instance", name),
        ("app.kubernetes.io/managed-by", "memcached-operator"),
    ]
    .map(|(k, v)| (k.to_owned(), v.to_owned()))
    .into()
}
