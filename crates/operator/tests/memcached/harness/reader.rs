//! Reads objects for those who wait for them: a `kubectl` for each look would take more of the machine than everything
//! that is tested.

use std::sync::LazyLock;

use kube::Client;
use serde_json::Value;
use testbed::ControlPlane;
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

/// Tests wait in runtimes of their own, which end with them.
static RUNTIME: LazyLock<Runtime> =
    LazyLock::new(|| tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap());

/// Where the objects of a kind are.
const COLLECTIONS: [(&str, &str, &str); 8] = [
    ("deployment", "/apis/apps/v1", "deployments"),
    ("hpa", "/apis/autoscaling/v2", "horizontalpodautoscalers"),
    ("memcached", "/apis/memcached.c5c3.io/v1beta1", "memcacheds"),
    ("networkpolicy", "/apis/networking.k8s.io/v1", "networkpolicies"),
    ("poddisruptionbudget", "/apis/policy/v1", "poddisruptionbudgets"),
    ("resourcequota", "/api/v1", "resourcequotas"),
    ("service", "/api/v1", "services"),
    ("servicemonitors.monitoring.coreos.com", "/apis/monitoring.coreos.com/v1", "servicemonitors"),
];

/// A client of a cluster, made when it is needed.
#[derive(Default)]
pub struct Reader {
    client: OnceCell<Client>,
}

impl Reader {
    /// An object, if it is there; kinds that few ask for are left to kubectl.
    pub fn get(&self, cluster: &ControlPlane, namespace: &str, kind: &str, name: &str) -> Option<Value> {
        let Some((_, version, plural)) = COLLECTIONS.iter().find(|(known, ..)| *known == kind) else {
            let get = ["--namespace", namespace, "get", kind, name, "--output", "json", "--ignore-not-found"];
            return serde_json::from_str(&cluster.kubectl(&get).unwrap()).ok();
        };
        let path = format!("{version}/namespaces/{namespace}/{plural}/{name}");
        let read = async {
            let client = self.client.get_or_try_init(|| cluster.client()).await.unwrap();
            client.request::<Value>(http::Request::get(path).body(Vec::new()).unwrap()).await
        };
        match std::thread::scope(|scope| scope.spawn(|| RUNTIME.block_on(read)).join().unwrap()) {
            Ok(object) => Some(object),
            Err(kube::Error::Api(status)) if status.code == 404 => None,
            Err(error) => panic!("failed to read {kind} {name}: {error}"),
        }
    }
}
