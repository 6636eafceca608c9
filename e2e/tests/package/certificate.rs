//! A chart whose certificate comes from cert-manager; here the test issues it, and tells the API server whom to trust.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use e2e::helm::CHART;
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
    let (certificate, key) = (format!("--cert={}", certificate.display()), format!("--key={}", key.display()));
    operators.kubectl(&["create", "secret", "tls", secret, &certificate, &key]).unwrap();
    let bundle = BASE64.encode(std::fs::read(authority.ca()).unwrap());
    let patch = format!(r#"[{{"op":"add","path":"/webhooks/0/clientConfig/caBundle","value":"{bundle}"}}]"#);
    let injected = format!("{}/memcached-operator-webhook", operators.name());
    for kind in ["mutatingwebhookconfiguration", "validatingwebhookconfiguration"] {
        let annotation = r"jsonpath={.metadata.annotations.cert-manager\.io/inject-ca-from}";
        let asked = site.node.kubectl(&["get", kind, "memcached-operator", "--output", annotation]).unwrap();
        assert_eq!(asked, injected, "{kind} asks cert-manager for the bundle");
        site.node.kubectl(&["patch", kind, "memcached-operator", "--type=json", "--patch", &patch]).unwrap();
    }

    site.rolled_out(operators.name(), "memcached-operator").await;
    let plain = site.plain_cache(&caches, "plain").await;
    assert_eq!(plain["spec"]["replicas"], 1, "the webhook fills defaults in");
    let account = format!("--as=system:serviceaccount:{}:memcached-operator", operators.name());
    let may_not = operators.kubectl(&["auth", "can-i", "create", "secrets", &account]).unwrap_err().to_string();
    assert!(may_not.contains("no"), "{may_not}");
}
