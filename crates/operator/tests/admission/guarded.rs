//! A control plane that asks the operator before it takes a cache, and ways to ask the operator directly.

use std::net::TcpListener;
use std::sync::{Arc, Weak};

use k8s_openapi::api::core::v1::Secret;
use kube::Client;
use kube::api::{Api, DynamicObject};
use memcached_wire::Tls;
use serde_json::{Value, json};
use testbed::wait;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Mutex;

use crate::cel::{caches, create};
use crate::harness::{Arena, DEADLINE, manifest};

pub const VALIDATE: &str = "/validate-memcached-c5c3-io-memcached";
pub const MUTATE: &str = "/mutate-memcached-c5c3-io-memcached";
pub const KINDS: [&str; 2] = ["validatingwebhookconfiguration", "mutatingwebhookconfiguration"];
const SYSTEM: &str = "memcached-operator-system";

pub struct Guarded {
    pub arena: Arena,
    pub port: u16,
}

impl Guarded {
    /// The one that most tests of this binary share.
    pub async fn shared() -> Arc<Self> {
        static SHARED: Mutex<Weak<Guarded>> = Mutex::const_new(Weak::new());
        let mut shared = SHARED.lock().await;
        if let Some(guarded) = shared.upgrade() {
            return guarded;
        }
        let guarded = Arc::new(Self::start().await);
        *shared = Arc::downgrade(&guarded);
        guarded
    }

    /// One of its own.
    pub async fn start() -> Self {
        let guarded = Self::without_operator().await;
        guarded.start_operator().await;
        guarded
    }

    /// One with all that a package ships, but for the operator.
    pub async fn without_operator() -> Self {
        let arena = Arena::without_operator().await;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        arena.cluster.kubectl(&["apply", "--server-side", "-f", &manifest("config/rbac/webhook.yaml")]).unwrap();
        let guarded = Self { arena, port };
        guarded.ship();
        guarded
    }

    /// Applies the shipped webhook configurations.
    pub fn ship(&self) {
        let file = manifest("config/webhook/webhook.yaml");
        self.arena.cluster.kubectl(&["apply", "--server-side", "-f", &file]).unwrap();
    }

    /// Deletes them.
    pub fn unship(&self) {
        for kind in KINDS {
            self.arena.cluster.kubectl(&["delete", kind, "memcached-operator"]).unwrap();
        }
    }

    /// A webhook configuration as it is.
    pub fn configuration(&self, kind: &str) -> Value {
        let get = ["get", kind, "memcached-operator", "--show-managed-fields", "--output", "json"];
        serde_json::from_str(&self.arena.cluster.kubectl(&get).unwrap()).unwrap()
    }

    /// Starts the operator and waits until the API server asks it.
    pub async fn start_operator(&self) {
        self.start_operator_with(&[]).await;
    }

    /// The same with more arguments.
    pub async fn start_operator_with(&self, arguments: &[&str]) {
        let address = format!("--webhook-bind-address=127.0.0.1:{}", self.port);
        // Here it is no pod behind a Service.
        let url = format!("--webhook-url=https://localhost:{}", self.port);
        self.arena.start_operator(&[&["--leader-elect=false", &address, &url], arguments].concat());
        let api = self.caches("default", "v1beta1").await;
        wait::until("the API server to ask the operator", DEADLINE, async || {
            let object = json!({
                "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached",
                "metadata": {"name": "sessions"}, "spec": {},
            });
            let created = create(&api, &object).await?;
            let is_filled = created.data["spec"]["replicas"] == 1;
            if is_filled { Ok(()) } else { Err("nothing is filled in".to_owned()) }
        })
        .await
        .unwrap_or_else(|error| panic!("{error}\n{}", self.log()));
    }

    pub fn log(&self) -> String {
        self.arena.operator.lock().unwrap().as_ref().map(crate::harness::Operator::log).unwrap_or_default()
    }

    /// A client of this test's: one ends with the test that made it.
    pub async fn client(&self) -> Client {
        self.arena.cluster.client().await.unwrap()
    }

    pub async fn caches(&self, namespace: &str, version: &str) -> Api<DynamicObject> {
        caches(&self.client().await, namespace, version)
    }

    /// The operator's authority, as its Secret has it.
    pub async fn authority(&self) -> String {
        let secrets: Api<Secret> = Api::namespaced(self.client().await, SYSTEM);
        let secret = secrets.get("memcached-operator-webhook-cert").await.unwrap();
        String::from_utf8(secret.data.unwrap()["ca.crt"].0.clone()).unwrap()
    }

    /// Posts a body to the operator as the API server would; the status and the answer.
    pub async fn post(&self, path: &str, body: &[u8]) -> (u16, String) {
        let tls = Tls::new(self.authority().await.as_bytes(), None).unwrap().with_server_name("localhost").unwrap();
        let stream = TcpStream::connect(("127.0.0.1", self.port)).await.unwrap();
        let mut stream = tls.wrap("localhost", stream).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\
             Connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(&[head.as_bytes(), body].concat()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    /// What the operator says to an object: nothing, or why not.
    pub async fn review(&self, object: &Value, old: Option<&Value>) -> Result<(), String> {
        let operation = if old.is_some() { "UPDATE" } else { "CREATE" };
        let response = self.ask(VALIDATE, operation, Some(object), old).await;
        if response["allowed"] == true {
            return Ok(());
        }
        Err(response["status"]["message"].as_str().unwrap_or_default().to_owned())
    }

    /// The operator's response to a review.
    pub async fn ask(&self, path: &str, operation: &str, object: Option<&Value>, old: Option<&Value>) -> Value {
        let kind = json!({"group": "memcached.c5c3.io", "version": "v1beta1", "kind": "Memcached"});
        let resource = json!({"group": "memcached.c5c3.io", "version": "v1beta1", "resource": "memcacheds"});
        let name = object.or(old).map(|object| object["metadata"]["name"].clone());
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": resource,
                "name": name, "namespace": "default", "operation": operation,
                "userInfo": {"username": "somebody"}, "object": object, "oldObject": old, "dryRun": false,
            },
        });
        let (status, body) = self.post(path, review.to_string().as_bytes()).await;
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        assert_eq!(answer["response"]["uid"], review["request"]["uid"]);
        answer["response"].clone()
    }
}
