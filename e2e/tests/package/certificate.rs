//! Webhooks whose certificate comes from cert-manager. The operator registers its authority.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use e2e::helm::CHART;
use e2e::operator::ours;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client};
use serde_json::json;
use testbed::namespace::Namespace;
use testbed::wait;
use tokio::task::JoinHandle;

use crate::site::{DEADLINE, SYSTEM, Site};

/// Somebody who declares caches all the time, without keeping them.
struct Declaring {
    is_over: Arc<AtomicBool>,
    accepted: Arc<AtomicUsize>,
    task: JoinHandle<Vec<String>>,
}

impl Declaring {
    fn start(client: Client, namespace: &str) -> Self {
        let resource = ApiResource {
            group: "memcached.c5c3.io".into(),
            version: "v1beta1".into(),
            api_version: "memcached.c5c3.io/v1beta1".into(),
            kind: "Memcached".into(),
            plural: "memcacheds".into(),
        };
        let caches: Api<DynamicObject> = Api::namespaced_with(client, namespace, &resource);
        let cache = DynamicObject::new("tried", &resource).data(json!({"spec": {}}));
        let (is_over, accepted) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
        let (end, count) = (Arc::clone(&is_over), Arc::clone(&accepted));
        let task = tokio::spawn(async move {
            let dry_run = PostParams { dry_run: true, ..PostParams::default() };
            let mut refused = Vec::new();
            while !end.load(Ordering::Relaxed) {
                match caches.create(&dry_run, &cache).await {
                    Ok(filled) if filled.data["spec"]["replicas"] == 1 => drop(count.fetch_add(1, Ordering::Relaxed)),
                    Ok(bare) => refused.push(format!("no webhook has filled in {}", bare.data["spec"])),
                    Err(error) => refused.push(error.to_string()),
                }
                // Short enough for a connection of the API server to end between two requests now and then.
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            refused
        });
        Self { is_over, accepted, task }
    }

    fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    async fn stop(self) -> (usize, Vec<String>) {
        self.is_over.store(true, Ordering::Relaxed);
        let refused = self.task.await.unwrap();
        (self.accepted.load(Ordering::Relaxed), refused)
    }
}

/// Has the certificate in a Secret replaced, and waits until the operator's pod serves the new one.
async fn renew(site: &Site, namespace: &str, secret: &str) {
    let kubectl = |arguments: &[&str]| site.node.kubectl(&[&["--namespace", namespace], arguments].concat());
    let reloads = || {
        let logs = kubectl(&["logs", "deployment/memcached-operator"]).unwrap_or_default();
        logs.lines().filter(|line| line.contains("reloaded the certificate")).count()
    };
    let before = reloads();
    kubectl(&["delete", "secret", secret]).unwrap();
    let asked = AtomicUsize::new(0);
    let reloaded = wait::until("the pod to have the new certificate", DEADLINE, async || {
        // The kubelet mounts Secrets anew when it syncs the pod: a changed annotation spares a wait of a minute or two.
        let note = format!("test/asked={}", asked.fetch_add(1, Ordering::Relaxed));
        let annotate =
            ["annotate", "pods", "--overwrite", "--selector=app.kubernetes.io/name=memcached-operator", &note];
        kubectl(&annotate).map_err(|error| error.to_string())?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        let found = reloads();
        if found > before { Ok(()) } else { Err(format!("{found} reloads in the operator's log")) }
    });
    reloaded.await.unwrap();
}

/// The certificate is renewed under the eyes of somebody who declares caches: each time that is accepted.
async fn expect_no_refusal_while_renewed(site: &Site, namespace: &str, secret: &str, caches: &Namespace) {
    let declaring = Declaring::start(site.node.client().await.unwrap(), caches.name());
    renew(site, namespace, secret).await;
    let renewed = declaring.accepted();
    let more = wait::until("declarations under the new certificate", DEADLINE, async || {
        let accepted = declaring.accepted();
        if accepted > renewed + 50 { Ok(()) } else { Err(format!("{} since the renewal", accepted - renewed)) }
    });
    more.await.unwrap();
    let (accepted, refused) = declaring.stop().await;
    println!("{accepted} accepted, {} refused", refused.len());
    assert!(refused.is_empty(), "{} of {} refused: {}", refused.len(), accepted + refused.len(), refused[0]);
}

#[tokio::test]
async fn a_chart_with_cert_manager_waits_for_its_certificate_and_renews_it_without_a_refused_request() {
    let site = Site::open().await;
    let (operators, caches) = (site.namespace("operator").await, site.namespace("caches").await);
    site.node.add_cert_manager().await.unwrap();
    let helm = |verb: &str, values: &[&str]| {
        let release = [verb, "memcached-operator", CHART, "--namespace", operators.name(), "--set"];
        site.helm.run(&[&release[..], &["certmanager.enabled=true"], values].concat()).unwrap();
    };
    // While there is no certificate the pod waits, and caches can be declared.
    helm("install", &["--set", "certmanager.issuerRef.name=nobody"]);
    site.declare(&caches, "early", &json!({"replicas": 1})).unwrap();
    assert!(site.registrations().iter().all(|(_, entries)| entries.is_empty()), "{:?}", site.registrations());

    helm("upgrade", &["--reset-values"]);
    site.rolled_out(operators.name(), "memcached-operator").await;
    site.ready(&caches, "early").await;
    let plain = site.plain_cache(&caches, "plain").await;
    assert_eq!(plain["spec"]["replicas"], 1, "the webhook fills defaults in");
    let data = |secret: &str, key: &str| {
        let path = format!(r"jsonpath={{.data.{}}}", key.replace('.', r"\."));
        operators.kubectl(&["get", "secret", secret, "--output", &path]).unwrap()
    };
    let trusted = data("memcached-operator-webhook-cert-ca", "tls.crt");
    let expect_trust = || {
        assert_eq!(trusted, data("memcached-operator-webhook-cert", "ca.crt"), "the authority, not the certificate");
        for (configuration, entries) in site.registrations() {
            let bundle = entries[0]["clientConfig"]["caBundle"].as_str().unwrap();
            assert_eq!(text(bundle).trim(), text(&trusted).trim(), "{configuration}");
        }
    };
    expect_trust();
    let account = format!("--as=system:serviceaccount:{}:memcached-operator", operators.name());
    let may_not = operators.kubectl(&["auth", "can-i", "create", "secrets", &account]).unwrap_err().to_string();
    assert!(may_not.contains("no"), "{may_not}");
    expect_no_refusal_while_renewed(&site, operators.name(), "memcached-operator-webhook-cert", &caches).await;
    expect_trust();
}

fn text(base64: &str) -> String {
    String::from_utf8(BASE64.decode(base64).unwrap()).unwrap()
}

#[tokio::test]
async fn kustomize_takes_the_certificate_from_cert_manager_too() {
    let site = Site::open().await;
    let caches = site.namespace("caches").await;
    site.node.add_cert_manager().await.unwrap();
    site.node.kubectl(&["apply", "--server-side", "--kustomize", &ours("config/cert-manager")]).unwrap();
    site.rolled_out(SYSTEM, "memcached-operator").await;
    let plain = site.plain_cache(&caches, "plain").await;
    assert_eq!(plain["spec"]["replicas"], 1, "the webhook fills defaults in");
    let account = format!("--as=system:serviceaccount:{SYSTEM}:memcached-operator");
    let asked = ["auth", "can-i", "create", "secrets", "--namespace", SYSTEM, &account];
    let may_not = site.node.kubectl(&asked).unwrap_err().to_string();
    assert!(may_not.contains("no"), "{may_not}");
}
