//! Random declarations, broad over all fields: parts that can work, and parts that cannot.

#![allow(dead_code, reason = "every test binary uses another part")]

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::edge::edge_part;
use crate::fixture::{
    merged, with_autoscaling, with_client_certificates, with_everything, with_knobs, with_monitoring, with_policy,
    with_sasl, with_tls,
};

/// A part of a declaration that can work.
pub fn good_part() -> impl Strategy<Value = Value> {
    prop_oneof![
        (0..64).prop_map(|count| json!({"replicas": count})),
        (16..65536, 60..65536, 1..6).prop_map(|(memory, connections, threads)| {
            json!({"memcached": {"maxMemoryMB": memory, "maxConnections": connections, "threads": threads}})
        }),
        good_placement(),
        good_autoscaling(),
        good_availability(),
        good_knob(),
        select(vec![
            json!({}),
            json!({"memcached": {"verbosity": 2, "extraArgs": ["-o", "modern"]}}),
            json!({"version": "1.6.45"}),
            json!({"highAvailability": {"antiAffinityPreset": "hard"}}),
            json!({"highAvailability": {"gracefulShutdown": {"enabled": true}}}),
            json!({"highAvailability": {"podDisruptionBudget": {"enabled": true, "maxUnavailable": "30%"}}}),
            json!({"highAvailability": {"topologySpreadConstraints": [
                {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
            ]}}),
            json!({"extstore": {"size": "1Gi"}}),
            json!({"extstore": {"size": "2Gi", "volumeClaim": {"storageClassName": "fast"}}}),
            json!({"security": {"podSecurityContext": {}, "containerSecurityContext": {}}}),
            json!({"security": {"sasl": {"mode": "SASL"}}}),
            json!({"security": {"tls": {"enabled": true, "issuerRef": {"name": "ca"}}}}),
            json!({"security": {"networkPolicy": {"enabled": true, "metricsSources": [{"podSelector": {}}]}}}),
            json!({"monitoring": {"enabled": true, "serviceMonitor": {}}}),
            json!({"service": {"type": "NodePort"}}),
            json!({"workload": {"rollout": {"minReadySeconds": 5}}}),
            json!({"podAnnotations": {"memcached.c5c3.io/secret-hash": "forged"}}),
            json!({"paused": true}),
            with_autoscaling(),
            with_client_certificates(),
            with_everything(),
            with_knobs(),
            with_monitoring(),
            with_policy(),
            with_sasl(),
            with_tls(),
        ]),
    ]
}

/// A number of millicores or mebibytes, in one of its spellings.
fn amount() -> impl Strategy<Value = String> {
    prop_oneof![
        (1..4000).prop_map(|n| format!("{n}m")),
        (1..64_i32).prop_map(|n| n.to_string()),
        (1..9).prop_map(|n| format!("{n}.5")),
        (1..9).prop_map(|n| format!("{n}e0")),
    ]
}

fn good_autoscaling() -> impl Strategy<Value = Value> {
    let source = prop_oneof![
        (1..200).prop_map(|percent| json!({"type": "Resource", "resource": {
            "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent},
        }})),
        amount().prop_map(|amount| json!({"type": "Resource", "resource": {
            "name": "memory", "target": {"type": "AverageValue", "averageValue": amount},
        }})),
        (1..100).prop_map(|percent| json!({"type": "ContainerResource", "containerResource": {
            "name": "cpu", "container": "memcached", "target": {"type": "Utilization", "averageUtilization": percent},
        }})),
        amount().prop_map(|amount| json!({"type": "Pods", "pods": {
            "metric": {"name": "gets"}, "target": {"type": "AverageValue", "averageValue": amount},
        }})),
        amount().prop_map(|amount| json!({"type": "External", "external": {
            "metric": {"name": "queue", "selector": {"matchLabels": {"team": "a"}}},
            "target": {"type": "Value", "value": amount},
        }})),
    ];
    let policy = (select(vec!["Pods", "Percent"]), 1..50, 1..1800)
        .prop_map(|(type_, value, period)| json!({"type": type_, "value": value, "periodSeconds": period}));
    let rules = (0..3600, proptest::collection::vec(policy, 1..3)).prop_map(
        |(window, policies)| json!({"stabilizationWindowSeconds": window, "policies": policies, "selectPolicy": "Min"}),
    );
    (1..8, 8..64, proptest::collection::vec(source, 0..3), proptest::option::of(rules)).prop_map(
        |(min, max, metrics, rules)| {
            let mut all = with_autoscaling();
            all["autoscaling"]["minReplicas"] = json!(min);
            all["autoscaling"]["maxReplicas"] = json!(max);
            all["autoscaling"]["metrics"] = json!(metrics);
            if let Some(rules) = rules {
                all["autoscaling"]["behavior"] = json!({"scaleDown": rules, "scaleUp": rules});
            }
            all
        },
    )
}

fn good_availability() -> impl Strategy<Value = Value> {
    prop_oneof![
        (1..63_i32).prop_map(|n| json!({"replicas": n + 1, "highAvailability": {"podDisruptionBudget": {
            "enabled": true, "minAvailable": n,
        }}})),
        (0..100).prop_map(|n| json!({"highAvailability": {"podDisruptionBudget": {
            "enabled": true, "minAvailable": format!("{n}%"),
        }}})),
        (1..300, 1..300).prop_map(|(delay, more)| json!({"highAvailability": {"gracefulShutdown": {
            "enabled": true, "preStopDelaySeconds": delay, "terminationGracePeriodSeconds": delay + more,
        }}})),
        (1..9, select(vec!["Honor", "Ignore"])).prop_map(|(skew, policy)| {
            json!({"highAvailability": {"topologySpreadConstraints": [
                {"maxSkew": skew, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": skew,
                 "nodeTaintsPolicy": policy, "matchLabelKeys": ["pod-template-hash"]},
                {"maxSkew": skew, "topologyKey": "kubernetes.io/hostname", "whenUnsatisfiable": "ScheduleAnyway"},
            ]}})
        }),
    ]
}

fn good_placement() -> impl Strategy<Value = Value> {
    let key = || select(vec!["team", "example.org/team", "kubernetes.io/hostname", "a.b_c-d"]);
    let term = (key(), "[a-z0-9]{1,8}").prop_map(|(key, value)| {
        json!({
            "topologyKey": key, "labelSelector": {"matchLabels": {key: value}}, "namespaces": [value],
        })
    });
    prop_oneof![
        (key(), "[a-z0-9]{0,8}").prop_map(|(key, value)| json!({"nodeSelector": {key: value}})),
        (key(), select(vec!["NoSchedule", "NoExecute", ""])).prop_map(|(key, effect)| {
            json!({"tolerations": [{"key": key, "operator": "Exists", "effect": effect}, {"operator": "Exists"}]})
        }),
        (term.clone(), 1..100).prop_map(|(term, weight)| json!({"affinity": {
            "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "podAffinityTerm": term},
            ]},
            "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]},
        }})),
        (key(), 1..100).prop_map(|(key, weight)| json!({"affinity": {"nodeAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [
                {"weight": weight, "preference": {"matchExpressions": [{"key": key, "operator": "DoesNotExist"}]}},
            ],
        }}})),
    ]
}

fn good_knob() -> impl Strategy<Value = Value> {
    prop_oneof![
        "[a-z]([-a-z0-9]{0,20}[a-z0-9])?".prop_map(|name| json!({
            "priorityClassName": name, "serviceAccountName": name, "imagePullSecrets": [{"name": name}],
        })),
        ("[A-Za-z_][A-Za-z0-9_]{0,9}", "\\PC{0,20}").prop_map(|(name, value)| json!({"env": [
            {"name": name, "value": value},
            {"name": format!("{name}_IP"), "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
            {"name": format!("{name}_KEY"), "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        ]})),
        ("[a-z]{1,9}", "[a-z]{1,9}").prop_map(|(name, path)| json!({
            "extraVolumes": [{"name": name, "projected": {"sources": [{"configMap": {"name": path}}]}}],
            "extraVolumeMounts": [{"name": name, "mountPath": format!("/mnt/{path}"), "readOnly": true}],
        })),
        ("[a-z.]{1,9}/[a-z]{1,9}", "\\PC{0,20}").prop_map(|(key, value)| {
            let key = key.trim_start_matches('.').replace("..", ".").replace("./", "/");
            let key = if key.starts_with('/') { key.trim_start_matches('/').to_owned() } else { key };
            json!({"podAnnotations": {&key: value}, "service": {"annotations": {key: value}}})
        }),
        (amount(), 97..4000).prop_map(|(cpu, memory)| json!({"resources": {
            "requests": {"cpu": cpu}, "limits": {"cpu": cpu, "memory": format!("{memory}Mi")},
        }})),
        (0..32_u8, 0..32_u8).prop_map(|(length, extra)| json!({"security": {"networkPolicy": {
            "enabled": true,
            "allowedSources": [
                {"ipBlock": {"cidr": format!("10.0.0.0/{length}"), "except": [format!("10.0.0.0/{}", (length + extra + 1).min(32))]}},
                {"ipBlock": {"cidr": format!("2001:db8::/{length}")}},
                {"namespaceSelector": {}, "podSelector": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}},
            ],
        }}})),
        (0..70000_i64).prop_map(|id| json!({"security": {
            "podSecurityContext": {"runAsUser": id, "fsGroup": id, "supplementalGroups": [id]},
            "containerSecurityContext": {"runAsUser": id, "capabilities": {"add": ["NET_BIND_SERVICE"]}},
        }})),
    ]
}

/// A part that the schema would stop, or that contradicts itself.
pub fn odd_part() -> impl Strategy<Value = Value> {
    prop_oneof![
        any::<i32>().prop_map(|n| json!({"replicas": n})),
        edge_part(),
        edge_part(),
        edge_part(),
        odd_knob(),
        odd_placement(),
        odd_autoscaling(),
        any::<[i32; 4]>().prop_map(|[memory, connections, threads, verbosity]| json!({"memcached": {
            "maxMemoryMB": memory, "maxConnections": connections, "threads": threads, "verbosity": verbosity,
        }})),
        "\\PC{0,8}".prop_map(|text| json!({"memcached": {"maxItemSize": text}})),
        "[0-9]{0,22}[kmg]?".prop_map(|text| json!({"memcached": {"maxItemSize": text}})),
        "\\PC{0,12}".prop_map(|text| json!({"image": text, "version": text})),
        "\\PC{0,12}".prop_map(|text| json!({"resources": {"limits": {"memory": text, "cpu": text}}})),
        "\\PC{0,12}".prop_map(|text| json!({"extstore": {"size": text}})),
        any::<[i64; 2]>().prop_map(|[delay, grace]| json!({"highAvailability": {"gracefulShutdown": {
            "enabled": true, "preStopDelaySeconds": delay, "terminationGracePeriodSeconds": grace,
        }}})),
        (any::<i32>(), "\\PC{0,5}").prop_map(|(min, max)| json!({"highAvailability": {"podDisruptionBudget": {
            "enabled": true, "minAvailable": min, "maxUnavailable": max,
        }}})),
        any::<[i32; 2]>().prop_map(|[min, max]| json!({"autoscaling": {
            "enabled": true, "minReplicas": min, "maxReplicas": max,
        }})),
        "\\PC{0,12}".prop_map(|text| json!({"monitoring": {"enabled": true, "serviceMonitor": {
            "interval": text, "scrapeTimeout": text,
        }}})),
        any::<[i32; 2]>().prop_map(|[ready, deadline]| json!({"workload": {"rollout": {
            "minReadySeconds": ready, "progressDeadlineSeconds": deadline,
        }}})),
    ]
}

/// Texts that are nearly right.
fn near() -> impl Strategy<Value = String> {
    prop_oneof!["[a-zA-Z0-9./_-]{0,12}", "[a-z ]{0,6}", "\\PC{0,6}"]
}

fn odd_knob() -> impl Strategy<Value = Value> {
    prop_oneof![
        (near(), near()).prop_map(|(key, value)| json!({"podLabels": {&key: &value}, "nodeSelector": {key: value}})),
        (near(), near()).prop_map(|(key, value)| json!({
            "podAnnotations": {&key: &value}, "service": {"annotations": {key: value}},
        })),
        near().prop_map(|name| json!({
            "priorityClassName": name, "serviceAccountName": name, "imagePullSecrets": [{"name": name}],
        })),
        (near(), near()).prop_map(|(name, field)| json!({"env": [
            {"name": name, "valueFrom": {"fieldRef": {"fieldPath": format!("metadata.{field}")}}},
        ]})),
        (near(), near()).prop_map(|(name, path)| json!({
            "extraVolumes": [{"name": name, "emptyDir": {"sizeLimit": path}}],
            "extraVolumeMounts": [{"name": name, "mountPath": path, "subPath": path}],
        })),
        (near(), near()).prop_map(|(cidr, except)| json!({"security": {"networkPolicy": {
            "enabled": true, "allowedSources": [{"ipBlock": {"cidr": cidr, "except": [except]}}, {}],
        }}})),
        (near(), near()).prop_map(|(request, limit)| json!({"resources": {
            "requests": {"cpu": request, "memory": limit}, "limits": {"cpu": limit},
        }})),
        (any::<i64>(), near()).prop_map(|(id, text)| json!({"security": {
            "podSecurityContext": {"runAsUser": id, "seccompProfile": {"type": text}},
        }})),
        near().prop_map(|name| json!({"security": {
            "sasl": {"enabled": true, "credentialsSecretRef": {"name": name}},
            "tls": {"enabled": true, "issuerRef": {"name": name}},
        }})),
        near().prop_map(|class| json!({"extstore": {"size": "1Gi", "volumeClaim": {"storageClassName": class}}})),
    ]
}

fn odd_placement() -> impl Strategy<Value = Value> {
    prop_oneof![
        (near(), near(), any::<i8>()).prop_map(|(key, operator, seconds)| json!({"tolerations": [
            {"key": key, "operator": operator, "tolerationSeconds": seconds},
        ]})),
        (-2..3, near(), near()).prop_map(|(skew, key, when)| json!({"highAvailability": {
            "topologySpreadConstraints": [{"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": when}],
        }})),
        (-2..102, near(), near()).prop_map(|(weight, key, value)| json!({"affinity": {"podAntiAffinity": {
            "preferredDuringSchedulingIgnoredDuringExecution": [{"weight": weight, "podAffinityTerm": {
                "topologyKey": key, "labelSelector": {"matchLabels": {key: value}},
            }}],
        }}})),
    ]
}

fn odd_autoscaling() -> impl Strategy<Value = Value> {
    (near(), near(), -2..4, -2..4000).prop_map(|(type_, name, number, seconds)| {
        let odd = json!({
            "metrics": [{"type": "Resource", "resource": {
                "name": name, "target": {"type": type_, "averageUtilization": number},
            }}],
            "behavior": {"scaleDown": {"stabilizationWindowSeconds": seconds, "policies": [
                {"type": "Pods", "value": number, "periodSeconds": seconds},
            ]}},
        });
        merged(&with_autoscaling(), &json!({"autoscaling": odd}))
    })
}

/// Words that look like arguments.
pub fn word() -> impl Strategy<Value = String> {
    prop_oneof![
        "-{0,3}[a-zA-Z]{0,4}[=0-9,:]{0,3}",
        "--[a-z-]{0,12}(=[a-z_,=]{0,12})?",
        "(ssl|proxy|ext|slab)_[a-z]{1,8}(,[a-z_=]{1,8})?",
        any::<String>(),
    ]
}

/// Some parts, laid over each other.
pub fn declaration(part: impl Strategy<Value = Value>) -> impl Strategy<Value = Value> {
    proptest::collection::vec(part, 0..6).prop_map(|parts| parts.iter().fold(json!({}), |all, part| merged(&all, part)))
}
