//! Rules that the contract leaves to us.

use serde_json::{Value, json};

use super::{By, Example, accepted, refused};

pub fn examples() -> Vec<Example> {
    let rollout = |ready: i32, deadline: i32| {
        json!({"workload": {"rollout": {
            "minReadySeconds": ready, "progressDeadlineSeconds": deadline,
        }}})
    };
    let scrape = |interval: &str, timeout: &str| {
        json!({"monitoring": {"enabled": true, "serviceMonitor": {
            "interval": interval, "scrapeTimeout": timeout,
        }}})
    };
    let timeout = "spec.monitoring.serviceMonitor.scrapeTimeout";
    let all = vec![
        accepted(0, rollout(10, 11)),
        refused(
            0,
            rollout(10, 10),
            "spec.workload.rollout.progressDeadlineSeconds",
            "10 is not more than minReadySeconds 10",
        ),
        accepted(0, scrape("30s", "30s")),
        refused(0, scrape("30s", "31s"), timeout, "more than interval"),
        refused(0, scrape("1d", "25h"), timeout, "more than interval").by(By::Operator),
        refused(0, scrape("30", "10s"), "spec.monitoring.serviceMonitor.interval", "").by(By::Schema),
        accepted(0, json!({"extstore": {"size": "64Mi"}})),
        refused(0, json!({"extstore": {"size": "63Mi"}}), "spec.extstore.size", "give at least 64Mi"),
        refused(
            0,
            json!({"extstore": {"size": "1Gi"}, "memcached": {"maxItemSize": "5m"}}),
            "spec.memcached.maxItemSize",
            "at most 4m",
        ),
    ];
    all.into_iter()
        .chain(warm_examples())
        .chain(service_examples())
        .chain(pod_examples())
        .map(Example::beyond)
        .collect()
}

fn warm_examples() -> Vec<Example> {
    let warm = "spec.warmRestart.enabled";
    vec![
        refused(0, json!({"warmRestart": {"enabled": true}}), warm, "needs spec.workload.type StatefulSet")
            .by(By::Operator),
        refused(
            0,
            json!({"warmRestart": {"enabled": true}, "workload": {"type": "Deployment"}}),
            warm,
            "needs spec.workload.type StatefulSet",
        ),
        accepted(0, json!({"warmRestart": {"enabled": true}, "workload": {"type": "StatefulSet"}})),
        refused(
            0,
            json!({"workload": {"type": "StatefulSet", "rollout": {"maxUnavailable": 0}}}),
            "spec.workload.rollout.maxUnavailable",
            "",
        )
        .by(By::Schema),
        refused(
            0,
            json!({"warmRestart": {"enabled": true}, "extstore": {"size": "1Gi"}}),
            warm,
            "not together with spec.extstore",
        ),
    ]
}

fn service_examples() -> Vec<Example> {
    let service = |type_: &str, client: Value| json!({"service": {"type": type_, "client": client}});
    let ranges = |range: &str| json!({"loadBalancerSourceRanges": [range]});
    let class = |name: &str| service("LoadBalancer", json!({"loadBalancerClass": name}));
    let (at, stays) = ("spec.service.client.loadBalancerClass", "cannot be changed while");
    let external = json!({"externalTrafficPolicy": "Local"});
    vec![
        accepted(0, service("LoadBalancer", ranges("10.0.0.0/8"))),
        refused(
            0,
            service("NodePort", ranges("10.0.0.0/8")),
            "spec.service.client.loadBalancerSourceRanges",
            "only with",
        ),
        refused(0, service("LoadBalancer", ranges("10.0.0.0")), "spec.service.client.loadBalancerSourceRanges[0]", "")
            .by(By::Operator),
        refused(0, json!({"service": {"client": {}}}), "spec.service.client", "needs spec.service.type"),
        accepted(0, class("example.com/internal")),
        refused(
            0,
            service("ClusterIP", json!({"loadBalancerClass": "a"})),
            at,
            "only with spec.service.type LoadBalancer",
        ),
        accepted(0, class("a")).from(json!({"service": {"type": "ClusterIP"}})),
        accepted(0, json!({"service": {"type": "ClusterIP"}})).from(class("a")),
        refused(0, class("b"), at, stays).from(class("a")).by(By::Admission),
        refused(0, class("a"), at, stays).from(json!({"service": {"type": "LoadBalancer"}})).by(By::Admission),
        accepted(0, service("NodePort", external.clone())),
        accepted(0, service("ClusterIP", json!({"internalTrafficPolicy": "Local"}))),
        refused(
            0,
            service("ClusterIP", external),
            "spec.service.client.externalTrafficPolicy",
            "NodePort or LoadBalancer",
        ),
    ]
}

fn pod_examples() -> Vec<Example> {
    let volume = |name: &str| json!({"extraVolumes": [{"name": name, "emptyDir": {}}]});
    vec![
        refused(0, json!({"image": "mem cached"}), "spec.image", "").by(By::Schema),
        refused(0, json!({"version": "1:6"}), "spec.version", "").by(By::Schema),
        refused(0, json!({"podLabels": {"app.kubernetes.io/name": "x"}}), "spec.podLabels", "remove it")
            .by(By::Operator),
        accepted(0, volume("scratch")),
        refused(0, volume("tls-certificates"), "spec.extraVolumes[0].name", "the operator's own").by(By::Operator),
        refused(
            0,
            json!({"resources": {"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}}),
            "spec.resources.requests.cpu",
            "more than the limit",
        )
        .by(By::Operator),
        refused(0, json!({"memcached": {"threads": 129}}), "spec.memcached.threads", "").by(By::Schema),
    ]
}
