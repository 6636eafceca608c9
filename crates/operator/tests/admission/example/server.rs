//! What memcached starts with, and what it is killed in.

use serde_json::{Value, json};

use super::{By, Example, accepted, refused};

fn with_limit(memory: i32, limit: &str) -> Value {
    json!({"memcached": {"maxMemoryMB": memory}, "resources": {"limits": {"memory": limit}}})
}

fn item(size: &str) -> Value {
    json!({"memcached": {"maxItemSize": size}})
}

fn arguments(words: &[&str]) -> Value {
    json!({"memcached": {"extraArgs": words}})
}

pub fn examples() -> Vec<Example> {
    let limit = "spec.resources.limits.memory";
    let size = "spec.memcached.maxItemSize";
    let mut all = vec![
        accepted(1, with_limit(64, "96Mi")),
        accepted(1, json!({"resources": {"limits": {"memory": "96Mi"}}})),
        accepted(1, json!({"resources": {"limits": {"memory": 100_663_296}}})),
        refused(1, with_limit(64, "95Mi"), limit, "give at least 96Mi"),
        refused(1, with_limit(1024, "1Gi"), limit, "give at least 1056Mi"),
        refused(1, json!({"resources": {"limits": {"memory": "95Mi"}}}), limit, "maxMemoryMB 64"),
        accepted(11, item("512k")),
        accepted(11, item("32m")),
        refused(11, item("0k"), size, "a multiple of 512k"),
        refused(11, item("700k"), size, "a multiple of 512k"),
        refused(11, item("33m"), size, "at most 32768k"),
        refused(11, json!({"memcached": {"maxMemoryMB": 4096, "maxItemSize": "1025m"}}), size, "at most 1024m"),
        refused(11, item("1g"), size, "").by(By::Schema),
        accepted(11, json!({"memcached": {"maxItemSize": "32k", "extraArgs": ["-o", "slab_chunk_max=16"]}})),
        refused(
            11,
            json!({"memcached": {"maxItemSize": "17k", "extraArgs": ["-o", "slab_chunk_max=16"]}}),
            size,
            "16k",
        )
        .by(By::Operator),
        accepted(18, json!({"memcached": {"maxConnections": 52, "threads": 4}})),
        refused(
            18,
            json!({"memcached": {"maxConnections": 51, "threads": 4}}),
            "spec.memcached.maxConnections",
            "give at least 52",
        ),
    ];
    all.extend(argument_examples());
    all
}

fn argument_examples() -> Vec<Example> {
    let mut all = Vec::new();
    for good in [&["-o", "modern"][..], &["-D", "-p"], &["--slab-growth-factor", "1.5", "-M"], &["-vvv", "-f1.25"]] {
        all.push(accepted(12, arguments(good)));
    }
    for bad in [
        &["-m", "128"][..],
        &["-vm128"],
        &["--memory-l=128"],
        &["-M", "--port", "1"],
        &["-f", "1.25", "-l0.0.0.0"],
        &["-o", "modern,ssl_ca_cert=/x"],
        &["-oproxy_config=/x"],
        &["--ext=ssl_verify_mode=0"],
        &["-o", "ext_path=/x:1g"],
        &["--"],
    ] {
        all.push(refused(12, arguments(bad), "spec.memcached.extraArgs", "decided by the operator"));
    }
    all.push(refused(12, arguments(&["-v\n"]), "spec.memcached.extraArgs", "no line break"));
    all
}
