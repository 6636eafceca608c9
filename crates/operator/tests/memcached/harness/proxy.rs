//! A way to the API server on which requests and answers get lost: the real one behind it does everything else.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONNECTION, HOST, TRANSFER_ENCODING};
use http::{Method, Request, Response};
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use testbed::{ControlPlane, User};
use tokio::net::{TcpListener, TcpStream};

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Fate {
    /// It is forwarded, and answered.
    Forwarded,
    /// It is refused with this code, and nothing is done.
    Refused(u16),
    /// Nothing is done, and nobody answers: the connection ends.
    RequestLost,
    /// It is done, but the connection ends before the answer.
    AnswerLost,
    /// It is done, and answered after a while.
    AnswerDelayed(Duration),
}

type Decide = dyn Fn(&Method, &str) -> Fate + Send + Sync;

/// The proxy; it ends with its guard.
pub struct Proxy {
    task: tokio::task::JoinHandle<()>,
    files: tempfile::TempDir,
}

impl Proxy {
    /// One that acts as `user`, and asks `decide` about every request: its method, and the path of its object.
    pub async fn start(
        cluster: &ControlPlane,
        user: &User,
        decide: impl Fn(&Method, &str) -> Fate + Send + Sync + 'static,
    ) -> Self {
        let kubeconfig = Kubeconfig::read_from(cluster.kubeconfig_as(user).unwrap()).unwrap();
        let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
        config.read_timeout = None;
        let client = Client::try_from(config).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let files = tempfile::tempdir().unwrap();
        let cluster = json!({"name": "proxy", "cluster": {"server": format!("http://{address}")}});
        let context = json!({"name": "proxy", "context": {"cluster": "proxy", "user": "proxy"}});
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "proxy", "clusters": [cluster],
            "contexts": [context], "users": [{"name": "proxy", "user": {}}],
        });
        fs::write(files.path().join("kubeconfig"), kubeconfig.to_string()).unwrap();
        let task = tokio::spawn(accept(listener, client, Arc::new(decide)));
        Self { task, files }
    }

    pub fn kubeconfig(&self) -> PathBuf {
        Path::new(self.files.path()).join("kubeconfig")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, client: Client, decide: Arc<Decide>) {
    while let Ok((stream, _)) = listener.accept().await {
        tokio::spawn(serve(stream, client.clone(), Arc::clone(&decide)));
    }
}

async fn serve(stream: TcpStream, client: Client, decide: Arc<Decide>) {
    let service = service_fn(|request| answer(request, &client, &*decide));
    let connection = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    // An error of the service ends the connection without an answer, as it is meant to.
    connection.await.ok();
}

async fn answer(request: Request<Incoming>, client: &Client, decide: &Decide) -> Result<Response<Body>, String> {
    let (mut parts, body) = request.into_parts();
    let body = body.collect().await.map_err(|error| error.to_string())?.to_bytes();
    let fate = decide(&parts.method, &path_of_object(&parts, &body));
    match fate {
        Fate::Refused(code) => return Ok(refusal(code)),
        Fate::RequestLost => return Err("the request is lost".into()),
        Fate::Forwarded | Fate::AnswerLost | Fate::AnswerDelayed(_) => {}
    }
    for header in [HOST, CONNECTION, TRANSFER_ENCODING] {
        parts.headers.remove(header);
    }
    let answer = client.send(Request::from_parts(parts, Body::from(body.to_vec()))).await;
    match fate {
        Fate::AnswerLost => return Err("the answer is lost".into()),
        Fate::AnswerDelayed(time) => tokio::time::sleep(time).await,
        _ => {}
    }
    answer.map_err(|error| error.to_string())
}

/// The path of the object that a request is about; what is created has its name in the body.
fn path_of_object(parts: &http::request::Parts, body: &[u8]) -> String {
    let created: Option<Value> = (parts.method == Method::POST).then(|| serde_json::from_slice(body).ok()).flatten();
    let name = created.and_then(|object| object["metadata"]["name"].as_str().map(|name| format!("/{name}")));
    format!("{}{}", parts.uri.path(), name.unwrap_or_default())
}

fn refusal(code: u16) -> Response<Body> {
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure", "message": "scripted", "reason": "Scripted", "code": code,
    });
    let body = Body::from(status.to_string().into_bytes());
    Response::builder().status(code).header("content-type", "application/json").body(body).unwrap()
}
