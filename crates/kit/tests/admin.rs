//! The admin servers with a real API server behind them: who may scrape, and when the operator is ready.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::authentication::v1::TokenRequest;
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{ClusterRole, ClusterRoleBinding};
use kube::api::PostParams;
use kube::client::Body;
use kube::{Api, Client, Config};
use operator_kit::admin::{self, BindAddress, CertificateSource, Protection, Readiness, Server};
use operator_kit::metrics::Metrics;
use operator_kit::shutdown;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use testbed::{ControlPlane, User, wait};

const FREE_PORT: &str = "127.0.0.1:0";

fn object<K: DeserializeOwned>(value: Value) -> K {
    serde_json::from_value(value).unwrap()
}

fn free_port() -> BindAddress {
    FREE_PORT.parse().unwrap()
}

fn metrics() -> Metrics {
    Metrics::new("widget_operator", &[("version", "1.2.3")])
}

/// An HTTP request with kube's client, which does plain and TLS and trusts anybody when told to.
async fn get(scheme: &str, server: &Server, path: &str, token: Option<&str>) -> kube::Result<(u16, String)> {
    let mut config = Config::new(format!("{scheme}://{}", server.address()).parse().unwrap());
    config.accept_invalid_certs = true;
    config.default_retry = false;
    let mut request = http::Request::get(path);
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let answer = Client::try_from(config)?.send(request.body(Body::empty()).unwrap()).await?;
    let status = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.unwrap();
    Ok((status, String::from_utf8(body.to_vec()).unwrap()))
}

/// The rights that an operator needs to review, and no others.
async fn reviewer(cluster: &ControlPlane) -> Client {
    let rules = json!([
        {"apiGroups": ["authentication.k8s.io"], "resources": ["tokenreviews"], "verbs": ["create"]},
        {"apiGroups": ["authorization.k8s.io"], "resources": ["subjectaccessreviews"], "verbs": ["create"]},
    ]);
    grant(cluster, "reviewer", &rules).await;
    cluster.client_as(&User::service_account("default", "reviewer")).await.unwrap()
}

async fn grant(cluster: &ControlPlane, account: &str, rules: &Value) {
    let admin = cluster.client().await.unwrap();
    let role: ClusterRole = object(json!({"metadata": {"name": account}, "rules": rules}));
    let binding: ClusterRoleBinding = object(json!({
        "metadata": {"name": account},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": account},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": "default"}],
    }));
    Api::all(admin.clone()).create(&PostParams::default(), &role).await.unwrap();
    Api::all(admin).create(&PostParams::default(), &binding).await.unwrap();
}

async fn token(cluster: &ControlPlane, account: &str) -> String {
    let accounts: Api<ServiceAccount> = Api::namespaced(cluster.client().await.unwrap(), "default");
    let wanted: ServiceAccount = object(json!({"metadata": {"name": account}}));
    accounts.create(&PostParams::default(), &wanted).await.unwrap();
    let request: TokenRequest = object(json!({"metadata": {}, "spec": {"audiences": []}}));
    let answer = accounts.create_token_request(account, &PostParams::default(), &request).await.unwrap();
    answer.status.unwrap().token
}

/// Waits until a right has reached the API server's cache: an answer that came too early would be kept.
async fn may_scrape(cluster: &ControlPlane, account: &str) {
    let reviews: Api<SubjectAccessReview> = Api::all(cluster.client().await.unwrap());
    let review: SubjectAccessReview = object(json!({"metadata": {}, "spec": {
        "user": format!("system:serviceaccount:default:{account}"),
        "nonResourceAttributes": {"path": "/metrics", "verb": "get"},
    }}));
    wait::until("the right to scrape", 30, async || {
        let answer = reviews.create(&PostParams::default(), &review).await.map_err(|e| e.to_string())?;
        answer.status.filter(|status| status.allowed).map(drop).ok_or_else(|| "not allowed".to_owned())
    })
    .await
    .unwrap();
}

#[tokio::test]
async fn only_those_may_scrape_whom_rbac_lets() {
    let cluster = ControlPlane::start().await.unwrap();
    let client = reviewer(&cluster).await;
    let (trigger, shutdown) = shutdown::channel();
    let certificate = CertificateSource::SelfSigned { names: vec!["localhost".to_owned()] };
    let protection = Protection::Secure { certificate, client };
    let server = admin::serve_metrics(&free_port(), metrics(), protection, shutdown).unwrap().unwrap();
    let scrape = async |token: Option<&str>| get("https", &server, "/metrics", token).await.unwrap();

    assert_eq!(scrape(None).await.0, 401);
    wait::until("the reviewer's rights", 30, async || match scrape(Some("made-up")).await {
        (401, _) => Ok(()),
        other => Err(format!("{other:?}")),
    })
    .await
    .unwrap();
    let unprivileged = token(&cluster, "unprivileged").await;
    assert_eq!(scrape(Some(&unprivileged)).await.0, 403);

    let scraper = token(&cluster, "scraper").await;
    grant(&cluster, "scraper", &json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}])).await;
    may_scrape(&cluster, "scraper").await;
    let (status, body) = scrape(Some(&scraper)).await;
    assert_eq!(status, 200, "{body}");
    assert!(body.contains(r#"widget_operator_build_info{version="1.2.3"} 1"#), "{body}");
    assert_eq!(get("https", &server, "/other", Some(&scraper)).await.unwrap().0, 404);
    get("http", &server, "/metrics", Some(&scraper)).await.expect_err("it is TLS only");

    let mark = cluster.audit().mark().unwrap();
    for _ in 0..5 {
        assert_eq!(scrape(Some(&scraper)).await.0, 200);
        assert_eq!(scrape(Some(&unprivileged)).await.0, 403);
        assert_eq!(scrape(Some("made-up")).await.0, 401);
    }
    let asked = cluster.audit().count_by("system:serviceaccount:default:reviewer", mark).unwrap();
    assert!(asked.is_empty(), "answers are kept, and yet it asked {asked:?}");

    trigger.fire();
    tokio::time::timeout(Duration::from_secs(10), server.ended()).await.expect("the server ends").unwrap();
}

#[tokio::test]
async fn when_the_api_server_is_gone_unknown_ones_stay_out_and_known_scrapers_stay_in() {
    let mut cluster = ControlPlane::start().await.unwrap();
    let admin = cluster.client().await.unwrap();
    let scraper = token(&cluster, "scraper").await;
    let rules = json!([{"nonResourceURLs": ["/metrics"], "verbs": ["get"]}]);
    grant(&cluster, "scraper", &rules).await;
    may_scrape(&cluster, "scraper").await;
    let (_trigger, shutdown) = shutdown::channel();
    let certificate = CertificateSource::SelfSigned { names: vec!["localhost".to_owned()] };
    let protection = Protection::Secure { certificate, client: admin };
    let server = admin::serve_metrics(&free_port(), metrics(), protection, shutdown).unwrap().unwrap();
    assert_eq!(get("https", &server, "/metrics", Some(&scraper)).await.unwrap().0, 200);
    cluster.stop_api_server();
    assert_eq!(get("https", &server, "/metrics", Some(&scraper)).await.unwrap().0, 200);
    assert_eq!(get("https", &server, "/metrics", Some("made-up")).await.unwrap().0, 500);
}

#[tokio::test]
async fn plain_metrics_are_for_everybody_who_reaches_them() {
    let (trigger, shutdown) = shutdown::channel();
    let server = admin::serve_metrics(&free_port(), metrics(), Protection::Plain, shutdown).unwrap().unwrap();
    let (status, body) = get("http", &server, "/metrics", None).await.unwrap();
    assert_eq!(status, 200);
    assert!(body.ends_with("# EOF\n"), "{body}");
    trigger.fire();
    tokio::time::timeout(Duration::from_secs(10), server.ended()).await.expect("the server ends").unwrap();
}

#[tokio::test]
async fn off_serves_nothing() {
    let (_trigger, shutdown) = shutdown::channel();
    let off: BindAddress = "0".parse().unwrap();
    assert!(admin::serve_metrics(&off, metrics(), Protection::Plain, shutdown.clone()).unwrap().is_none());
    assert!(admin::serve_health(&off, Readiness::default(), shutdown).unwrap().is_none());
}

#[tokio::test]
async fn readiness_flips_with_its_checks_and_health_does_not() {
    let (_trigger, shutdown) = shutdown::channel();
    let readiness = Readiness::default();
    let server = admin::serve_health(&free_port(), readiness.clone(), shutdown).unwrap().unwrap();
    let ask = async |path: &str| get("http", &server, path, None).await.unwrap();
    assert_eq!(ask("/readyz").await, (200, "ok\n".to_owned()));

    let synced = Arc::new(AtomicBool::new(false));
    readiness.register("caches", {
        let synced = synced.clone();
        move || synced.load(Ordering::Relaxed)
    });
    readiness.register("webhook", || true);
    assert_eq!(ask("/readyz").await, (503, "not ready: caches\n".to_owned()));
    assert_eq!(ask("/healthz").await, (200, "ok\n".to_owned()));
    synced.store(true, Ordering::Relaxed);
    assert_eq!(ask("/readyz").await.0, 200);
    synced.store(false, Ordering::Relaxed);
    assert_eq!(ask("/readyz").await.0, 503);
}
