//! The admission webhooks of the group, as the API server is told of them: those of every kind.

use serde_json::{Value, json};

use crate::memcached;

/// A webhook of a kind. Who registers it adds `clientConfig`, `failurePolicy` and `timeoutSeconds` to its entry.
#[derive(Debug, Clone, PartialEq)]
pub struct Webhook {
    /// Where it is served.
    pub path: &'static str,
    /// Its entry of the configuration.
    pub entry: Value,
}

/// The entries of the `MutatingWebhookConfiguration`. A new kind is added here.
pub fn mutating() -> Vec<Webhook> {
    vec![memcached::admission::mutating()]
}

/// The entries of the `ValidatingWebhookConfiguration`, in the same way.
pub fn validating() -> Vec<Webhook> {
    vec![memcached::admission::validating()]
}

/// Deletions, and updates that leave the spec alone, are never asked about: finalizers, labels and the status do not
/// depend on a running operator.
pub(crate) fn entry(name: &str, resource: &str, versions: &[&str]) -> Value {
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "matchPolicy": "Exact",
        "rules": [{
            "apiGroups": ["memcached.c5c3.io"],
            "apiVersions": versions,
            "resources": [resource],
            "operations": ["CREATE", "UPDATE"],
            "scope": "Namespaced",
        }],
        "matchConditions": [
            {"name": "is-not-being-deleted", "expression": "!has(object.metadata.deletionTimestamp)"},
            {
                "name": "spec-is-new",
                "expression": "request.operation == 'CREATE' || object.?spec != oldObject.?spec",
            },
        ],
    })
}
