use serde_json::{Value, json};

use super::*;

fn fields(spec: &Value) -> Vec<String> {
    let spec = serde_json::from_value(spec.clone()).unwrap();
    check(&spec).into_iter().map(|violation| violation.field).collect()
}

#[test]
fn what_kubernetes_takes_passes() {
    let good = json!({
        "podLabels": {"team": "a", "example.org/tier": ""},
        "podAnnotations": {"Example.org/note": "any text at all"},
        "nodeSelector": {"disk": "fast"},
        "service": {"annotations": {"example.org/x": "y"}},
        "priorityClassName": "", "serviceAccountName": "runner", "imagePullPolicy": "Never",
        "imagePullSecrets": [{"name": "login"}],
        "resources": {"requests": {"cpu": "100m"}},
        "tolerations": [{"operator": "Exists"}],
        "security": {"podSecurityContext": {"runAsUser": 1000}, "containerSecurityContext": {"privileged": false}},
        "env": [
            {"name": "A", "value": "1"},
            {"name": "B", "valueFrom": {"resourceFieldRef": {
                "resource": "limits.memory", "divisor": "1Mi", "containerName": "exporter",
            }}},
        ],
        "extraVolumes": [{"name": "scratch", "emptyDir": {}}],
        "extraVolumeMounts": [{"name": "scratch", "mountPath": "/var/lib/memcached/other"}],
    });
    assert_eq!(fields(&good), [""; 0]);
}

#[test]
fn what_kubernetes_would_refuse_is_refused_with_its_field() {
    let amounts = json!({"requests": {"storage": "1Gi"}, "limits": {"storage": "1Gi"}});
    let spread = json!([{"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}]);
    let other = json!({"resourceFieldRef": {"resource": "limits.cpu", "containerName": "other"}});
    for (bad, field) in [
        (json!({"podLabels": {"a b": "c"}}), "spec.podLabels"),
        (json!({"podAnnotations": {"a b": "c"}}), "spec.podAnnotations"),
        (json!({"podAnnotations": {"seccomp.security.alpha.kubernetes.io/pod": "x"}}), "spec.podAnnotations"),
        (json!({"nodeSelector": {"disk": "-"}}), "spec.nodeSelector"),
        (json!({"service": {"annotations": {"": "c"}}}), "spec.service.annotations"),
        (json!({"priorityClassName": "High"}), "spec.priorityClassName"),
        (json!({"serviceAccountName": "a b"}), "spec.serviceAccountName"),
        (json!({"imagePullSecrets": [{"name": "A"}]}), "spec.imagePullSecrets[0].name"),
        (json!({"imagePullPolicy": "Sometimes"}), "spec.imagePullPolicy"),
        (json!({"env": [{"name": "A"}, {"name": "A"}]}), "spec.env[1].name"),
        (json!({"env": [{"name": "A", "valueFrom": other}]}), "spec.env[0].valueFrom.resourceFieldRef.containerName"),
        (json!({"security": {"podSecurityContext": {"runAsUser": -1}}}), "spec.security.podSecurityContext.runAsUser"),
        (
            json!({"security": {"containerSecurityContext": {"procMount": "Unmasked"}}}),
            "spec.security.containerSecurityContext.procMount",
        ),
        (json!({"resources": {"claims": [{"name": "x"}]}}), "spec.resources.claims"),
        (json!({"tolerations": [{"operator": "Equal"}]}), "spec.tolerations[0].operator"),
        (
            json!({"highAvailability": {"topologySpreadConstraints": spread}}),
            "spec.highAvailability.topologySpreadConstraints[0].maxSkew",
        ),
        (
            json!({"affinity": {"nodeAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": []},
            }}}),
            "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms",
        ),
    ] {
        assert_eq!(fields(&bad), [field], "{bad}");
    }
    let of_exporter = json!({"monitoring": {"enabled": true, "exporterResources": amounts}});
    assert_eq!(fields(&of_exporter)[0], "spec.monitoring.exporterResources.limits.storage");
}

#[test]
fn the_labels_that_pods_are_found_by_are_the_operators() {
    for key in ["app.kubernetes.io/name", "app.kubernetes.io/instance", "app.kubernetes.io/managed-by"] {
        assert_eq!(fields(&json!({"podLabels": {key: "x"}})), ["spec.podLabels"]);
    }
    assert_eq!(fields(&json!({"podLabels": {"app.kubernetes.io/part-of": "shop"}})), [""; 0]);
    let spread = json!([{
        "maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway",
        "matchLabelKeys": ["app.kubernetes.io/instance"],
    }]);
    let refused = fields(&json!({"highAvailability": {"topologySpreadConstraints": spread}}));
    assert_eq!(refused, ["spec.highAvailability.topologySpreadConstraints[0].matchLabelKeys"]);
}

#[test]
fn volumes_and_mounts_keep_off_the_operators_own() {
    let refused = |name: &str, path: &str| {
        let mounts = json!([{"name": name, "mountPath": path}]);
        fields(&json!({"extraVolumes": [{"name": name, "emptyDir": {}}], "extraVolumeMounts": mounts}))
    };
    assert_eq!(refused("scratch", "/etc/memcached-extra"), [""; 0]);
    for own in ["sasl-credentials", "tls-certificates", "extstore"] {
        assert_eq!(refused(own, "/x"), ["spec.extraVolumes[0].name"]);
    }
    for own in DIRECTORIES.into_iter().chain(["/etc"]) {
        assert_eq!(refused("scratch", own), ["spec.extraVolumeMounts[0].mountPath"]);
    }
    let unknown = json!({"extraVolumeMounts": [{"name": "other", "mountPath": "/x"}]});
    let unknown = check(&serde_json::from_value(unknown).unwrap());
    let said: Vec<String> = unknown.iter().map(ToString::to_string).collect();
    assert_eq!(said, ["spec.extraVolumeMounts[0].name: \"other\" is none of spec.extraVolumes"]);
}
