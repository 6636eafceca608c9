//! The admission webhooks of `Memcached`: their names and paths.

use serde_json::{Value, json};

use crate::admission::{Webhook, entry};

/// Where defaults are filled in.
pub const MUTATE: &str = "/mutate-memcached-c5c3-io-memcached";
/// Where rules are checked.
pub const VALIDATE: &str = "/validate-memcached-c5c3-io-memcached";

/// Fills in defaults.
pub fn mutating() -> Webhook {
    let mut entry = of("default.memcached.c5c3.io");
    if let Some(fields) = entry.as_object_mut() {
        // Another webhook may change the spec after ours.
        fields.insert("reinvocationPolicy".into(), json!("IfNeeded"));
    }
    Webhook { path: MUTATE, entry }
}

/// Checks rules.
pub fn validating() -> Webhook {
    Webhook { path: VALIDATE, entry: of("validate.memcached.c5c3.io") }
}

fn of(name: &str) -> Value {
    entry(name, "memcacheds", &["v1alpha1", "v1beta1"])
}
