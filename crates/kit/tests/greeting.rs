//! The toy operator of `examples/`, on a real API server: the least that every operator on this kit can do.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[allow(dead_code, reason = "the example is a program of its own")]
#[path = "../examples/greeting.rs"]
mod greeting;

use std::time::Duration;

use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{DeleteParams, Patch, PatchParams, PostParams};
use kube::config::KubeConfigOptions;
use kube::{Api, Config};
use operator_kit::shutdown::{self, Trigger};
use serde_json::{Value, json};
use testbed::{ControlPlane, User, wait};
use tokio::task::JoinHandle;

use greeting::Greeting;

const SECONDS: u64 = 120;

/// A replica of the toy operator under a user of its own.
struct Replica {
    user: String,
    stop: Trigger,
    task: JoinHandle<()>,
}

impl Replica {
    async fn start(cluster: &ControlPlane, name: &str) -> Self {
        let user = User::new(name).group("system:masters");
        let kubeconfig = cluster.kubeconfig_as(&user).unwrap();
        let kubeconfig = kube::config::Kubeconfig::read_from(kubeconfig).unwrap();
        let config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        let (stop, shutdown) = shutdown::channel();
        let identity = name.to_owned();
        let task = tokio::spawn(async move { greeting::run(config, &identity, shutdown).await.unwrap() });
        Self { user: name.to_owned(), stop, task }
    }

    async fn stop(self) {
        self.stop.fire();
        self.task.await.unwrap();
    }
}

struct Toy {
    cluster: ControlPlane,
    greetings: Api<Greeting>,
    maps: Api<ConfigMap>,
}

impl Toy {
    async fn start() -> Self {
        let cluster = ControlPlane::start().await.unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), greeting::definition().to_string()).unwrap();
        cluster.kubectl(&["create", "--filename", file.path().to_str().unwrap()]).unwrap();
        wait::until("the kind to be served", SECONDS, async || {
            cluster.kubectl(&["get", "greetings"]).map_err(|error| error.to_string())
        })
        .await
        .unwrap();
        let client = cluster.client().await.unwrap();
        Self {
            greetings: Api::namespaced(client.clone(), "default"),
            maps: Api::namespaced(client, "default"),
            cluster,
        }
    }

    async fn greet(&self, name: &str, to: &str) {
        let document =
            json!({"apiVersion": "example.org/v1", "kind": "Greeting", "metadata": {"name": name}, "spec": {"to": to}});
        self.greetings.patch(name, &PatchParams::apply("a-user").force(), &Patch::Apply(document)).await.unwrap();
    }

    async fn said(&self, name: &str, text: &str) {
        wait::until(format!("ConfigMap {name} to say {text:?}"), SECONDS, async || {
            match self.maps.get_opt(name).await.unwrap().and_then(|map| map.data?.get("text").cloned()) {
                Some(said) if said == text => Ok(()),
                other => Err(format!("{other:?}")),
            }
        })
        .await
        .unwrap();
    }

    async fn condition(&self, name: &str, status: &str, reason: &str) {
        wait::until(format!("Greeting {name} to be {status} for {reason}"), SECONDS, async || {
            let greeting: Value = serde_json::to_value(self.greetings.get(name).await.unwrap()).unwrap();
            let ready = &greeting["status"]["conditions"][0];
            if ready["status"] == status && ready["reason"] == reason { Ok(()) } else { Err(greeting.to_string()) }
        })
        .await
        .unwrap();
    }

    /// The writes of a user since a mark, but for leases and Events.
    fn writes(&self, user: &str, mark: testbed::audit::Mark) -> Vec<String> {
        let requests = self.cluster.audit().requests_since(mark).unwrap();
        let writes = requests.into_iter().filter(|request| request.user == user && request.is_write());
        let writes = writes.filter(|request| !["leases", "events"].contains(&request.resource.as_str()));
        writes.map(|request| format!("{} {}/{}", request.verb, request.resource, request.name)).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_of_two_hundred_lines_is_a_whole_operator() {
    let toy = Toy::start().await;
    let one = Replica::start(&toy.cluster, "one").await;
    toy.greet("a", "world").await;
    toy.said("a", "Hello, world!").await;
    toy.condition("a", "True", "Said").await;

    // Drift is repaired, a deleted child is made again, a changed spec is taken up.
    let drift = Patch::Merge(json!({"data": {"text": "Go away!"}}));
    toy.maps.patch("a", &PatchParams::default(), &drift).await.unwrap();
    toy.said("a", "Hello, world!").await;
    toy.maps.delete("a", &DeleteParams::default()).await.unwrap();
    toy.said("a", "Hello, world!").await;
    toy.greet("a", "moon").await;
    toy.said("a", "Hello, moon!").await;

    // A bad spec is told on the object, and its child stays.
    toy.greet("a", "").await;
    toy.condition("a", "False", "Invalid").await;
    toy.said("a", "Hello, moon!").await;
    toy.greet("a", "world").await;
    toy.condition("a", "True", "Said").await;

    // An object of that name that is somebody else's is neither changed nor deleted.
    let theirs: ConfigMap =
        serde_json::from_value(json!({"metadata": {"name": "b"}, "data": {"text": "mine"}})).unwrap();
    let theirs = toy.maps.create(&PostParams::default(), &theirs).await.unwrap();
    toy.greet("b", "world").await;
    toy.condition("b", "False", "NameTaken").await;
    assert_eq!(toy.maps.get("b").await.unwrap(), theirs);

    // A second replica waits; idle costs no write, and neither does a change of leaders.
    let two = Replica::start(&toy.cluster, "two").await;
    let mark = toy.cluster.audit().mark().unwrap();
    tokio::time::sleep(Duration::from_secs(10)).await;
    assert_eq!(toy.writes(&one.user, mark), [""; 0]);
    one.stop().await;
    toy.greet("c", "two").await;
    toy.said("c", "Hello, two!").await;
    toy.condition("c", "True", "Said").await;
    let writes = toy.writes(&two.user, mark);
    // A creation does not tell its name: that of c, and the one that finds b taken.
    let (creations, others): (Vec<_>, Vec<_>) = writes.iter().partition(|write| *write == "create configmaps/");
    assert!(creations.len() <= 2 && others.iter().all(|write| write.ends_with("/c")), "{writes:?}");
    assert_eq!(toy.writes("one", mark), [""; 0], "who does not lead does not write");
    two.stop().await;
}
