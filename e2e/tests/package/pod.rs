//! The operator's own pod: restricted, replaceable, and careful about who reads its metrics.

use e2e::operator::ours;
use e2e::pod::address;
use k8s_openapi::api::core::v1::Pod;
use kube::client::Body;
use kube::{Client, Config};
use testbed::wait;

use crate::site::{DEADLINE, SYSTEM, Site};

async fn installed() -> Site {
    let site = Site::open().await;
    site.node.kubectl(&["apply", "--server-side", "--kustomize", &ours("config/default")]).unwrap();
    site.rolled_out(SYSTEM, "memcached-operator").await;
    site
}

#[tokio::test]
async fn it_satisfies_the_restricted_standard_and_survives_being_deleted() {
    let site = installed().await;
    let enforced = r"jsonpath={.metadata.labels.pod-security\.kubernetes\.io/enforce}";
    let enforced = site.node.kubectl(&["get", "namespace", SYSTEM, "--output", enforced]).unwrap();
    assert_eq!(enforced, "restricted", "so the API server has let the pod in by that standard");
    let caches = site.namespace("caches").await;
    site.plain_cache(&caches, "before").await;
    let before = site.operators(SYSTEM).await[0].metadata.name.clone().unwrap();
    site.node.kubectl(&["--namespace", SYSTEM, "delete", "pod", &before]).unwrap();
    let replaced = wait::until("another operator", DEADLINE, async || {
        let pods = site.operators(SYSTEM).await;
        let names: Vec<_> = pods.iter().filter_map(|pod| pod.metadata.name.clone()).collect();
        if names.iter().any(|name| *name != before) { Ok(()) } else { Err(format!("{names:?}")) }
    });
    replaced.await.unwrap();
    site.plain_cache(&caches, "after").await;
}

/// What the metrics endpoint answers to a token.
async fn scrape(pod: &Pod, token: Option<&str>) -> (u16, String) {
    let mut config = Config::new(format!("https://{}", address(pod, 8443).unwrap()).parse().unwrap());
    // The operator signs it itself; the token is what protects the metrics.
    config.accept_invalid_certs = true;
    config.default_retry = false;
    let mut request = http::Request::get("/metrics");
    if let Some(token) = token {
        request = request.header("authorization", format!("Bearer {token}"));
    }
    let client = Client::try_from(config).unwrap();
    let answer = client.send(request.body(Body::empty()).unwrap()).await.unwrap();
    let status = answer.status().as_u16();
    let body = answer.into_body().collect_bytes().await.unwrap();
    (status, String::from_utf8(body.to_vec()).unwrap())
}

#[tokio::test]
async fn its_metrics_are_for_tokens_with_the_right_role() {
    let site = installed().await;
    let monitoring = site.namespace("monitoring").await;
    for account in ["prometheus", "nobody"] {
        monitoring.kubectl(&["create", "serviceaccount", account]).unwrap();
    }
    let account = format!("{}:prometheus", monitoring.name());
    let role = "--clusterrole=memcached-operator-metrics-reader";
    let bind = ["create", "clusterrolebinding", "memcached-operator-test", role, "--serviceaccount", &account];
    site.node.kubectl(&bind).unwrap();
    let token = |account: &str| monitoring.kubectl(&["create", "token", account]).unwrap().trim().to_owned();
    let pod = site.operators(SYSTEM).await.remove(0);
    let allowed = wait::until("the binding to count", DEADLINE, async || {
        let (status, body) = scrape(&pod, Some(&token("prometheus"))).await;
        if status == 200 { Ok(body) } else { Err(format!("{status}: {body}")) }
    });
    assert!(allowed.await.unwrap().contains("memcached_operator_leader 1"));
    assert_eq!(scrape(&pod, Some(&token("nobody"))).await.0, 403);
    assert_eq!(scrape(&pod, None).await.0, 401);
}
