//! The Certificate that cert-manager turns into the cache's Secret.

use serde_json::{Value, json};

use super::metadata::{labels, owner};
use crate::memcached::validate::Validated;

pub fn build_certificate(cache: &Validated) -> Option<Value> {
    let tls = cache.tls.as_ref()?;
    let issuer = tls.issuer.as_ref()?;
    let (name, namespace) = (&cache.name, &cache.namespace);
    let service = format!("{name}.{namespace}");
    let mut names =
        vec![name.clone(), service.clone(), format!("{service}.svc"), format!("{service}.svc.cluster.local")];
    if cache.has_agent() {
        // Every slot has a name of its own; however many there will be, the certificate has them.
        names.extend(["svc", "svc.cluster.local"].map(|domain| format!("*.{service}.{domain}")));
    }
    Some(json!({
        "apiVersion": "cert-manager.io/v1",
        "kind": "Certificate",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": labels(name),
            "ownerReferences": [owner(cache)],
        },
        "spec": {
            "secretName": tls.secret,
            "dnsNames": names,
            "usages": ["server auth", "client auth"],
            "issuerRef": {
                "name": issuer.name,
                "kind": issuer.kind.as_deref().unwrap_or("Issuer"),
                "group": issuer.group.as_deref().unwrap_or("cert-manager.io"),
            },
        },
    }))
}
