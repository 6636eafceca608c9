//! Converged caches cost nothing: no write while idle, after a relist, a restart, a change of leaders.

use std::time::Duration;

use serde_json::{Value, json};

use crate::drift::everything;
use crate::harness::{Arena, OPERATOR, is_about};

pub fn shapes() -> Vec<Value> {
    let plain = json!({"replicas": 1});
    let silent = json!({});
    let threads = json!({"replicas": 1, "memcached": {"threads": 2}});
    let quantities = json!({
        "replicas": 1,
        "resources": {"requests": {"cpu": "0.1", "memory": "1024Mi"}, "limits": {"memory": "1024Mi"}},
    });
    let autoscaled = json!({
        "resources": {"requests": {"cpu": "100m"}},
        "autoscaling": {"enabled": true, "minReplicas": 2, "maxReplicas": 4},
    });
    let spread = json!({
        "replicas": 2,
        "highAvailability": {
            "antiAffinityPreset": "hard",
            "topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
            ],
            "gracefulShutdown": {"enabled": true, "preStopDelaySeconds": 5, "terminationGracePeriodSeconds": 20},
            "podDisruptionBudget": {"enabled": true, "maxUnavailable": "50%"},
        },
    });
    let knobs = json!({
        "replicas": 1,
        "tolerations": [{"operator": "Exists"}],
        "env": [{"name": "A", "value": ""}],
        "podLabels": {"team": "x"},
        "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "extstore": {"size": "1Gi"},
        "monitoring": {"enabled": true},
    });
    let policy = json!({
        "replicas": 1,
        "monitoring": {"enabled": true},
        "security": {"networkPolicy": {
            "enabled": true,
            "allowedSources": [{"podSelector": {"matchLabels": {"a": "b"}}}],
            "metricsSources": [{"namespaceSelector": {}}],
        }},
    });
    vec![plain, silent, threads, quantities, autoscaled, spread, knobs, policy, everything()]
}

#[tokio::test]
async fn nothing_is_written_without_need() {
    // Everything is reconciled every five seconds, whether or not anything happened.
    let arena = Arena::start(&["--leader-elect=true", "--resync-interval=5s"]).await;
    let place = arena.namespace("idle").await;
    let mut names = Vec::new();
    for (number, spec) in shapes().into_iter().cycle().take(20).enumerate() {
        let name = format!("cache-{number}");
        place.declare(&name, spec).await;
        names.push(name);
    }
    for (name, spec) in names.iter().zip(shapes().into_iter().cycle()) {
        place.ready(name).await;
        if let Some(least) = spec["autoscaling"]["minReplicas"].as_i64() {
            // The autoscaler takes its time to raise the count.
            let has_least = |cache: &Value| cache["status"]["readyReplicas"].as_i64() >= Some(least);
            place.eventually("memcached", name, "raised to its minimum", has_least).await;
        }
    }
    // A quiet minute, then a restart (which is also a change of leaders), then another relist.
    tokio::time::sleep(Duration::from_secs(3)).await;
    let mark = arena.cluster.audit().mark().unwrap();
    tokio::time::sleep(Duration::from_secs(60)).await;
    assert_eq!(arena.writes_since(mark, place.name()), [""; 0], "while idle");
    // Only where an autoscaler decides about the count is a fresh one needed.
    let autoscaled = |name: &str| {
        names.iter().zip(shapes().into_iter().cycle()).any(|(n, spec)| n == name && spec["autoscaling"].is_object())
    };
    let requests = arena.cluster.audit().requests_since(mark).unwrap();
    let reads = requests.iter().filter(|r| r.user == OPERATOR && r.verb == "get" && r.resource == "deployments");
    let reads: Vec<_> = reads.filter(|r| !autoscaled(&r.name)).collect();
    assert!(reads.is_empty(), "while idle: {reads:?}");
    let log = arena.operator.lock().unwrap().as_ref().unwrap().log();
    let resyncs = log.matches("reconciling everything").count();
    assert!(resyncs >= 5, "a resync every five seconds, but only {resyncs}:\n{log}");

    arena.stop_operator();
    arena.start_operator(&["--leader-elect=true"]);
    let marker = place.declare("after", json!({"replicas": 1})).await;
    assert!(marker.metadata.uid.is_some());
    place.ready("after").await;
    tokio::time::sleep(Duration::from_secs(5)).await;
    let writes = arena.writes_since(mark, place.name());
    assert!(writes.iter().filter(|write| write.starts_with("create")).count() <= 3, "{writes:?}");
    let others: Vec<_> = writes.iter().filter(|write| !is_about(write, "after")).collect();
    assert!(others.is_empty(), "after a restart and a change of leaders: {others:?}");
}
