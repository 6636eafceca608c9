//! A chart whose certificate comes from cert-manager; here the test issues it. The operator registers its authority.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use e2e::helm::CHART;
use serde_json::json;
use testbed::pki::Pki;

use crate::kind;
use crate::site::Site;

#[tokio::test]
async fn a_certificate_that_others_issue_is_served_without_the_right_to_make_one() {
    let site = Site::open().await;
    let (operators, caches) = (site.namespace("operator").await, site.namespace("caches").await);
    kind::install(&site.node).await;
    let values = ["--set", "certmanager.enabled=true"];
    let install = ["install", "memcached-operator", CHART, "--namespace", operators.name()];
    site.helm.run(&[&install[..], &values].concat()).unwrap();

    let wanted = "jsonpath={.spec.secretName} {.spec.dnsNames[0]} {.spec.issuerRef.name}";
    let wanted = operators.kubectl(&["get", "certificate", "--output", &wanted.replace("{.spec", "{.items[0].spec")]);
    let wanted = wanted.unwrap();
    let [secret, host, issuer] = wanted.split(' ').collect::<Vec<_>>()[..] else { panic!("{wanted}") };
    assert_eq!(host, format!("memcached-operator-webhook.{}.svc", operators.name()));
    operators.kubectl(&["get", "issuer", issuer]).unwrap();
    let files = tempfile::tempdir().unwrap();
    let authority = Pki::create(files.path().to_path_buf()).unwrap();
    let (certificate, key) = authority.server("webhook", &[host], &[]).unwrap();
    // While there is no certificate the pod waits, and caches can be declared.
    assert!(site.registrations().iter().all(|(_, entries)| entries.is_empty()), "{:?}", site.registrations());
    site.declare(&caches, "early", &json!({"replicas": 1})).unwrap();
    let file = |key: &str, path: &Path| format!("--from-file={key}={}", path.display());
    let files = [file("tls.crt", &certificate), file("tls.key", &key), file("ca.crt", &authority.ca())];
    let create = ["create", "secret", "generic", secret, "--type=kubernetes.io/tls", &files[0], &files[1], &files[2]];
    operators.kubectl(&create).unwrap();

    site.rolled_out(operators.name(), "memcached-operator").await;
    let wanted = std::fs::read_to_string(authority.ca()).unwrap();
    for (configuration, entries) in site.registrations() {
        let bundle = BASE64.decode(entries[0]["clientConfig"]["caBundle"].as_str().unwrap()).unwrap();
        let bundle = String::from_utf8(bundle).unwrap();
        assert_eq!(bundle.trim(), wanted.trim(), "{configuration} trusts the mounted authority");
    }
    site.ready(&caches, "early").await;
    let plain = site.plain_cache(&caches, "plain").await;
    assert_eq!(plain["spec"]["replicas"], 1, "the webhook fills defaults in");
    let account = format!("--as=system:serviceaccount:{}:memcached-operator", operators.name());
    let may_not = operators.kubectl(&["auth", "can-i", "create", "secrets", &account]).unwrap_err().to_string();
    assert!(may_not.contains("no"), "{may_not}");
}
