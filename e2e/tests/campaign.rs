//! A sample of random declarations that are let in: memcached starts with every one of them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

#[path = "../../crates/core/tests/contract/edge.rs"]
mod edge;
#[path = "../../crates/core/tests/contract/fixture.rs"]
mod fixture;
#[path = "../../crates/core/tests/contract/generator.rs"]
mod generator;

use std::collections::BTreeSet;

use e2e::stage::Stage;
use memcached_api::Memcached;
use memcached_core::memcached::validate;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::{Config, RngSeed, TestRunner};
use serde_json::{Map, Value, json};
use testbed::Node;

/// How many run at once on a small node.
const SAMPLE: usize = 10;

/// What any machine allows.
const MOST_CONNECTIONS: i64 = 4000;

/// What memcached itself gets to see of a declaration.
fn server_part(spec: &Value) -> Option<Value> {
    let mut part = Map::new();
    let mut server = spec.get("memcached")?.clone();
    // How many files a container may open is the node's affair, and this one inherits its machine's limit.
    if let Some(connections) = server.get("maxConnections").and_then(Value::as_i64) {
        server["maxConnections"] = json!(connections.min(MOST_CONNECTIONS));
    }
    part.insert("memcached".into(), server);
    if let Some(size) = spec.pointer("/extstore/size") {
        part.insert("extstore".into(), json!({"size": size}));
    }
    part.insert("replicas".into(), json!(1));
    Some(Value::Object(part))
}

fn is_valid(spec: &Value) -> bool {
    let document = json!({
        "apiVersion": "memcached.c5c3.io/v1beta1", "kind": "Memcached", "metadata": {"name": "a"}, "spec": spec,
    });
    serde_json::from_value::<Memcached>(document).is_ok_and(|cache| validate(&cache).is_ok())
}

/// Different ones, the same each time; `CAMPAIGN_SEED` asks for others.
fn sample() -> Vec<Value> {
    let seed = std::env::var("CAMPAIGN_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(11211);
    let config = Config { rng_seed: RngSeed::Fixed(seed), failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new(config);
    let strategy = prop_oneof![
        generator::declaration(generator::good_part()),
        (generator::declaration(generator::good_part()), generator::odd_part())
            .prop_map(|(good, odd)| fixture::merged(&good, &odd)),
    ];
    let mut known = BTreeSet::new();
    let mut sample = Vec::new();
    while sample.len() < SAMPLE {
        let spec = strategy.new_tree(&mut runner).unwrap().current();
        let Some(part) = server_part(&spec).filter(is_valid) else { continue };
        if known.insert(part.to_string()) {
            sample.push(part);
        }
    }
    sample
}

#[tokio::test]
async fn memcached_starts_with_what_is_let_in() {
    let node = Node::shared().await.unwrap();
    let stage = Stage::set(&node, "campaign", env!("CARGO_TARGET_TMPDIR"), &[]).await.unwrap();
    let sample = sample();
    for (number, spec) in sample.iter().enumerate() {
        stage.declare(&format!("cache-{number}"), spec).unwrap();
    }
    for (number, spec) in sample.iter().enumerate() {
        stage.ready(&format!("cache-{number}")).await.unwrap_or_else(|error| panic!("{spec}: {error}"));
    }
}
