//! The Certificate that cert-manager turns into the cache's Secret.

use serde_json::{Value, json};

use super::metadata::{labels, owner};
use crate::memcached::validate::Validated;

pub fn build_certificate(cache: &Validated) -> Option<Value> {
    let tls = cache.tls.as_ref()?;
    let issuer = tls.issuer.as_ref()?;
    let (name, namespace) = (&cache.name, &cache.namespace);
    let service = format!("{name}.{namespace}");
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
            "dnsNames": [name, service, format!("{service}.svc"), format!("{service}.svc.cluster.local")],
            "usages": ["server auth", "client auth"],
            "issuerRef": {
                "name": issuer.name,
                "kind": issuer.kind.as_deref().unwrap_or("Issuer"),
                "group": issuer.group.as_deref().unwrap_or("cert-manager.io"),
            },
        },
    }))
}
