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
use crate::harness::{Arena, PATIENCE, manifest};

pub const VALIDATE: &str = "/validate-memcached-c5c3-io-memcached";
pub const MUTATE: &str = "/mutate-memcached-c5c3-io-memcached";
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
        let arena = Arena::without_operator().await;
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        arena.cluster.kubectl(&["apply", "--server-side", "-f", &manifest("config/rbac/webhook.yaml")]).unwrap();
        // The shipped configurations, but for the way to the operator: here it is no pod behind a Service.
        let text = std::fs::read_to_string(manifest("config/webhook/webhook.yaml")).unwrap();
        let objects: Vec<Value> = serde_saphyr::from_multiple(&text).unwrap();
        for mut object in objects {
            for hook in object.get_mut("webhooks").and_then(Value::as_array_mut).into_iter().flatten() {
                let path = hook["clientConfig"]["service"]["path"].as_str().unwrap().to_owned();
                hook["clientConfig"] = json!({"url": format!("https://localhost:{port}{path}")});
            }
            arena.create(&[object]);
        }
        let guarded = Self { arena, port };
        guarded.start_operator().await;
        guarded
    }

    /// Starts the operator and waits until the API server asks it.
    pub async fn start_operator(&self) {
        let address = format!("--webhook-bind-address=127.0.0.1:{}", self.port);
        self.arena.start_operator(&["--leader-elect=false", &address]);
        let api = self.caches("default", "v1beta1").await;
        wait::until("the API server to ask the operator", PATIENCE, async || {
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
        let kind = json!({"group": "memcached.c5c3.io", "version": "v1beta1", "kind": "Memcached"});
        let resource = json!({"group": "memcached.c5c3.io", "version": "v1beta1", "resource": "memcacheds"});
        let review = json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "kind": kind, "resource": resource,
                "name": object["metadata"]["name"], "namespace": "default", "operation": operation,
                "userInfo": {"username": "somebody"}, "object": object, "oldObject": old, "dryRun": false,
            },
        });
        let (status, body) = self.post(VALIDATE, review.to_string().as_bytes()).await;
        assert_eq!(status, 200, "{body}");
        let answer: Value = serde_json::from_str(&body).unwrap();
        let response = &answer["response"];
        assert_eq!(response["uid"], review["request"]["uid"]);
        if response["allowed"] == true {
            return Ok(());
        }
        Err(response["status"]["message"].as_str().unwrap_or_default().to_owned())
    }
}
