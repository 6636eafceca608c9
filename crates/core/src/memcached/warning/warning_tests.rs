use serde_json::{Value, json};

use memcached_api::memcached::spec::STOCK_EXPORTER;

use super::*;
use crate::memcached::fixture::memcached;
use crate::memcached::validate::validate;

fn fields(spec: &Value) -> Vec<&'static str> {
    let spec = serde_json::from_value(spec.clone()).unwrap();
    let valid = validate(&memcached(|it| *it = spec));
    valid.iter().flat_map(warnings).map(|warning| warning.field).collect()
}

fn with_limit(memory: i32, limit: &str) -> Value {
    json!({"memcached": {"maxMemoryMB": memory}, "resources": {"limits": {"memory": limit}}})
}

#[test]
fn a_plain_cache_needs_no_warning() {
    assert_eq!(fields(&json!({})), [""; 0]);
    assert_eq!(fields(&with_limit(64, "96Mi")), [""; 0]);
    let three = json!({"replicas": 3, "highAvailability": {
        "antiAffinityPreset": "hard", "podDisruptionBudget": {"enabled": true, "minAvailable": 2},
    }});
    assert_eq!(fields(&three), [""; 0]);
}

#[test]
fn a_limit_that_a_full_cache_outgrows_is_told_with_the_figure() {
    // Both were measured without a limit; what is told must be more than that, but not by much.
    for (memory, measured) in [(1024, 1106), (2048, 2181)] {
        let cache = memcached(|spec| *spec = serde_json::from_value(with_limit(memory, "9Gi")).unwrap());
        let need = Need::of(&validate(&cache).unwrap()).total();
        assert!((measured..measured * 11 / 10).contains(&need), "{memory}: {need}");
        assert_eq!(fields(&with_limit(memory, &format!("{need}Mi"))), [""; 0]);
        assert_eq!(fields(&with_limit(memory, &format!("{}Mi", need - 1))), ["spec.resources.limits.memory"]);
    }
    let cache = memcached(|spec| *spec = serde_json::from_value(with_limit(1024, "1056Mi")).unwrap());
    let told = warnings(&validate(&cache).unwrap());
    assert!(told[0].message.contains("about 1142Mi"), "{}", told[0]);
}

#[test]
fn connections_with_tls_weigh_more() {
    let mut spec = with_limit(64, "128Mi");
    assert_eq!(fields(&spec), [""; 0]);
    spec["security"] = json!({"tls": {"enabled": true, "mode": "Required", "certificateSecretRef": {"name": "certs"}}});
    assert_eq!(fields(&spec), ["spec.resources.limits.memory"]);
}

#[test]
fn an_image_without_a_version_is_told() {
    for image in ["memcached", "memcached:latest", "registry:5000/memcached"] {
        assert_eq!(fields(&json!({"image": image})), ["spec.image"], "{image}");
    }
    for image in ["memcached:1.6", "memcached@sha256:abc"] {
        assert_eq!(fields(&json!({"image": image})), [""; 0], "{image}");
    }
}

#[test]
fn an_exporter_of_the_users_has_to_log_in() {
    let with = |image: &str| {
        json!({
            "security": {"sasl": {"enabled": true, "credentialsSecretRef": {"name": "s"}}},
            "monitoring": {"enabled": true, "exporterImage": image},
        })
    };
    assert_eq!(fields(&with("example.org/exporter:1")), ["spec.monitoring.exporterImage"]);
    assert_eq!(fields(&with(STOCK_EXPORTER)), [""; 0]);
}

#[test]
fn a_single_server_that_cannot_be_replaced_first_is_told() {
    let with = |replicas: i32| json!({"replicas": replicas, "highAvailability": {"antiAffinityPreset": "hard"}});
    assert_eq!(fields(&with(1)), ["spec.replicas"]);
    assert_eq!(fields(&with(2)), [""; 0]);
}

#[test]
fn a_budget_that_blocks_every_drain_or_protects_nothing_is_told() {
    let with = |replicas: i32, budget: Value| {
        let mut budget = budget;
        budget["enabled"] = json!(true);
        fields(&json!({"replicas": replicas, "highAvailability": {"podDisruptionBudget": budget}}))
    };
    let told = ["spec.highAvailability.podDisruptionBudget"];
    for budget in [json!({"maxUnavailable": 0}), json!({"maxUnavailable": "0%"}), json!({"minAvailable": "67%"})] {
        assert_eq!(with(3, budget.clone()), told, "{budget}");
    }
    assert_eq!(with(3, json!({"minAvailable": "66%"})), [""; 0]);
    assert_eq!(with(3, json!({"maxUnavailable": "1%"})), [""; 0], "rounded up to one server");
    assert_eq!(with(1, json!({"maxUnavailable": 1})), told);
}

#[test]
fn what_is_refused_is_not_warned_of() {
    assert_eq!(fields(&json!({"image": "memcached", "version": "1"})), [""; 0]);
}
