//! Steady load: through the API server, which keeps its connections, and as an API server that has just started.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use kube::client::Body;
use kube::{Client, Config};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::{Value, json};
use testbed::wait;
use tokio::task::JoinHandle;

use crate::harness::{DEADLINE, Stage, config_map};

const PAUSE: Duration = Duration::from_millis(200);
/// How many requests follow what is tested.
const MORE: usize = 5;

/// A review of a ConfigMap.
pub fn review(verdict: &str) -> Value {
    json!({
        "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
        "request": {
            "uid": "1", "operation": "CREATE", "name": "one", "userInfo": {},
            "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
            "resource": {"group": "", "version": "v1", "resource": "configmaps"},
            "object": config_map(verdict),
        },
    })
}

/// A client that trusts a bundle, without any connection yet.
pub fn caller(port: u16, bundle: &str) -> Client {
    let mut config = Config::new(format!("https://127.0.0.1:{port}").parse().unwrap());
    let authorities = CertificateDer::pem_slice_iter(bundle.as_bytes());
    config.root_cert = Some(authorities.map(|authority| authority.unwrap().to_vec()).collect());
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

/// Posts a review over a new connection, as an API server does that has this bundle.
pub async fn call(port: u16, bundle: &str) -> Result<(), String> {
    let request = http::Request::post("/validate").header("content-type", "application/json");
    let request = request.body(Body::from(review("allow").to_string().into_bytes())).unwrap();
    let answer = caller(port, bundle).send(request).await.map_err(|error| format!("{error:?}"))?;
    let status = answer.status();
    let body = answer.into_body().collect_bytes().await.map_err(|error| error.to_string())?;
    let body: Value = serde_json::from_slice(&body).map_err(|error| error.to_string())?;
    if body["response"]["allowed"] == true { Ok(()) } else { Err(format!("{status} {body}")) }
}

/// A few requests a second, until asked what became of them.
pub struct Load {
    stop: Arc<AtomicBool>,
    requests: Arc<AtomicUsize>,
    task: JoinHandle<Vec<String>>,
}

impl Load {
    pub fn start(stage: &Arc<Stage>, ports: &[u16]) -> Self {
        let (stop, requests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let task = tokio::spawn(run(Arc::clone(stage), ports.to_vec(), Arc::clone(&stop), Arc::clone(&requests)));
        Self { stop, requests, task }
    }

    /// Not one request failed until now, nor do some more.
    pub async fn passed(self) {
        let before = self.requests.load(Ordering::Relaxed);
        wait::until("some more requests", DEADLINE, async || match self.requests.load(Ordering::Relaxed) {
            requests if requests >= before + MORE => Ok(()),
            requests => Err(format!("{requests} after {before}")),
        })
        .await
        .unwrap();
        self.stop.store(true, Ordering::Relaxed);
        let failures = self.task.await.unwrap();
        assert_eq!(failures, Vec::<String>::new(), "in {:?} requests", self.requests);
    }
}

async fn run(stage: Arc<Stage>, ports: Vec<u16>, stop: Arc<AtomicBool>, requests: Arc<AtomicUsize>) -> Vec<String> {
    let mut failures = Vec::new();
    while !stop.load(Ordering::Relaxed) {
        let request = requests.fetch_add(1, Ordering::Relaxed);
        if let Err(error) = stage.submit("allow").await {
            failures.push(format!("request {request}: {error}"));
        }
        let bundle = stage.bundle().await.expect("a bundle");
        for port in &ports {
            if let Err(error) = call(*port, &bundle).await {
                failures.push(format!("request {request}, port {port}: {error}"));
            }
        }
        tokio::time::sleep(PAUSE).await;
    }
    failures
}
