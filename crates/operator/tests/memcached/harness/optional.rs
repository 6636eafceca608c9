//! Kinds that a cluster may lack, as far as the operator needs them.

use serde_json::{Value, json};

/// Their definitions.
pub fn definitions() -> [Value; 2] {
    [
        definition("monitoring.coreos.com", "ServiceMonitor", "servicemonitors"),
        definition("cert-manager.io", "Certificate", "certificates"),
    ]
}

fn definition(group: &str, kind: &str, plural: &str) -> Value {
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": kind.to_lowercase()},
            "versions": [{
                "name": "v1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
            }],
        },
    })
}
