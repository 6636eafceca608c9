//! The admission webhooks of the group: their names, paths and rules, as the API server is told of them.

use serde_json::{Value, json};

/// Where defaults are filled in.
pub const MUTATE: &str = "/mutate-memcached-c5c3-io-memcached";
/// Where rules are checked.
pub const VALIDATE: &str = "/validate-memcached-c5c3-io-memcached";

/// The entry of the `MutatingWebhookConfiguration`. Who registers it adds `clientConfig`, `failurePolicy` and
/// `timeoutSeconds`.
pub fn mutating() -> Value {
    let mut webhook = webhook("default.memcached.c5c3.io");
    if let Some(fields) = webhook.as_object_mut() {
        // Another webhook may change the spec after ours.
        fields.insert("reinvocationPolicy".into(), json!("IfNeeded"));
    }
    webhook
}

/// The entry of the `ValidatingWebhookConfiguration`, in the same way.
pub fn validating() -> Value {
    webhook("validate.memcached.c5c3.io")
}

/// Deletions, and updates that leave the spec alone, are never asked about: finalizers, labels and the status do not
/// depend on a running operator.
fn webhook(name: &str) -> Value {
    json!({
        "name": name,
        "admissionReviewVersions": ["v1"],
        "sideEffects": "None",
        "matchPolicy": "Exact",
        "rules": [{
            "apiGroups": ["memcached.c5c3.io"],
            "apiVersions": ["v1alpha1", "v1beta1"],
            "resources": ["memcacheds"],
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
