//! Values at the edge of what Kubernetes takes.

use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Value, json};

use crate::fixture::merged;

/// Values at the edge of what Kubernetes takes, on either side of it.
pub fn edge_part() -> impl Strategy<Value = Value> {
    select([volumes(), claims(), mounts(), contexts(), terms(), resources(), others()].concat())
}

fn volume(source: &Value) -> Value {
    let volume = merged(&json!({"name": "edge"}), source);
    json!({"extraVolumes": [volume], "extraVolumeMounts": [{"name": "edge", "mountPath": "/edge"}]})
}

fn volumes() -> Vec<Value> {
    vec![
        volume(&json!({"emptyDir": {"medium": "HugePages"}})),
        volume(&json!({"emptyDir": {"medium": "HugePages-2Mi"}})),
        volume(&json!({"emptyDir": {"medium": "Disk"}})),
        volume(&json!({"hostPath": {"path": "relative", "type": "Directory"}})),
        volume(&json!({"hostPath": {"path": "/x", "type": "Nothing"}})),
        volume(&json!({"csi": {"driver": "Disk.Example.org"}})),
        volume(&json!({"csi": {"driver": "a b"}})),
        volume(&json!({"csi": {"driver": "disk.example.org", "nodePublishSecretRef": {"name": ""}}})),
        volume(&json!({"nfs": {"server": "", "path": "/x"}})),
        volume(&json!({"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}})),
        volume(&json!({"downwardAPI": {"items": [{"path": "labels"}]}})),
        volume(&json!({"downwardAPI": {"items": [{"path": "../x", "fieldRef": {"fieldPath": "metadata.name"}}]}})),
    ]
}

fn claims() -> Vec<Value> {
    vec![
        volume(&json!({"projected": {}})),
        volume(&json!({"projected": {"sources": [{}]}})),
        volume(
            &json!({"projected": {"sources": [{"serviceAccountToken": {"path": "token", "expirationSeconds": 60}}]}}),
        ),
        volume(
            &json!({"projected": {"sources": [{"serviceAccountToken": {"path": "token"}}, {"secret": {"name": "s"}}]}}),
        ),
        volume(&json!({"projected": {"sources": [
            {"secret": {"name": "a", "items": [{"key": "k", "path": "p"}]}},
            {"secret": {"name": "b", "items": [{"key": "k", "path": "p"}]}},
        ]}})),
        volume(&json!({"ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}},
        }}}})),
        volume(&json!({"ephemeral": {"volumeClaimTemplate": {"spec": {
            "accessModes": ["WriteNever"], "resources": {"requests": {"storage": "1Gi"}},
        }}}})),
        volume(&json!({"ephemeral": {}})),
        volume(&json!({"image": {"reference": "example.org/data:1", "pullPolicy": "Sometimes"}})),
        volume(&json!({"image": {}})),
        volume(&json!({"iscsi": {"targetPortal": "x", "iqn": "x", "lun": 0}})),
        volume(&json!({"gitRepo": {"repository": "x"}})),
        volume(&json!({"glusterfs": {"endpoints": "", "path": ""}})),
        volume(&json!({"azureDisk": {"diskName": "x", "diskURI": "x"}})),
        volume(&json!({"rbd": {"monitors": [], "image": "x"}})),
        volume(&json!({"configMap": {"name": "c", "items": [{"key": "k", "path": "..x"}]}})),
        volume(&json!({"configMap": {"name": "c", "defaultMode": 512}})),
    ]
}

fn mounts() -> Vec<Value> {
    let mount = |mount: Value| {
        let mount = merged(&json!({"name": "edge", "mountPath": "/edge"}), &mount);
        json!({"extraVolumes": [{"name": "edge", "emptyDir": {}}], "extraVolumeMounts": [mount]})
    };
    vec![
        mount(json!({"mountPropagation": "Bidirectional"})),
        mount(json!({"subPathExpr": "$(HOSTNAME)"})),
        mount(json!({"readOnly": true, "recursiveReadOnly": "Enabled"})),
        mount(json!({"recursiveReadOnly": "Enabled"})),
        mount(json!({"mountPath": "/proc"})),
        mount(json!({"mountPath": "edge"})),
    ]
}

fn contexts() -> Vec<Value> {
    let pod = |context: Value| json!({"security": {"podSecurityContext": context}});
    let container = |context: Value| json!({"security": {"containerSecurityContext": context}});
    vec![
        pod(json!({"sysctls": [{"name": "net.ipv4.ip_local_port_range", "value": "1 2"}]})),
        pod(
            json!({"sysctls": [{"name": "kernel.shm_rmid_forced", "value": "0"}, {"name": "kernel.shm_rmid_forced", "value": "1"}]}),
        ),
        pod(json!({"sysctls": [{"name": "Net", "value": ""}]})),
        pod(json!({"appArmorProfile": {"type": "Localhost", "localhostProfile": " x "}})),
        pod(json!({"appArmorProfile": {"type": "RuntimeDefault"}, "seccompProfile": {"type": "Unconfined"}})),
        pod(json!({"supplementalGroupsPolicy": "Strict", "seLinuxChangePolicy": "Recursive"})),
        pod(json!({"seLinuxChangePolicy": "Sometimes"})),
        container(json!({"procMount": "Unmasked"})),
        container(json!({"privileged": true})),
        container(json!({"capabilities": {"add": ["CAP_SYS_ADMIN"]}, "allowPrivilegeEscalation": false})),
        container(json!({"capabilities": {"add": ["SYS_ADMIN"]}, "allowPrivilegeEscalation": false})),
        container(json!({"windowsOptions": {"hostProcess": true}})),
    ]
}

fn terms() -> Vec<Value> {
    let term = |term: Value| {
        let term = merged(&json!({"topologyKey": "zone"}), &term);
        json!({"affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}})
    };
    vec![
        term(json!({"labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}})),
        term(json!({"namespaces": ["a.b"]})),
        term(json!({"matchLabelKeys": ["pod-template-hash"]})),
        term(json!({"labelSelector": {}, "matchLabelKeys": ["pod-template-hash"], "mismatchLabelKeys": ["x"]})),
        term(json!({"topologyKey": "kubernetes.io/hostname/x"})),
    ]
}

fn resources() -> Vec<Value> {
    vec![
        json!({"resources": {"limits": {"hugepages-2Mi": "2Mi"}, "requests": {"hugepages-2Mi": "2Mi"}}}),
        json!({"resources": {"limits": {"hugepages-2Mi": "2Mi", "cpu": "1"}}}),
        json!({"resources": {"limits": {"hugepages-2Mi": "3Mi", "cpu": "1"}}}),
        json!({"resources": {"limits": {"hugepages-": "2Mi", "cpu": "1"}}}),
        json!({"resources": {"limits": {"example.org/gpu": "1"}}}),
        json!({"resources": {"limits": {"example.org/gpu": "500m"}}}),
        json!({"resources": {"requests": {"ephemeral-storage": "1Gi", "pods": "1"}}}),
        json!({"resources": {"limits": {"kubernetes.io/x": "1"}}}),
        json!({"resources": {"limits": {"cpu": "1n"}}}),
        json!({"resources": {"limits": {"cpu": "0"}}}),
        json!({"resources": {"requests": {"memory": "128.5"}}}),
        json!({"env": [{"name": "A.b-c", "value": "$(B)"}]}),
        json!({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1m"}}}]}),
        json!({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}]}),
        json!({"env": [{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.hugepages-2Mi"}}}]}),
        json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels"}}}]}),
        json!({"env": [{"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "metadata.annotations['A/b']"}}}]}),
        json!({"env": [{"name": "A", "valueFrom": {"configMapKeyRef": {"name": "c", "key": "..k"}}}]}),
    ]
}

fn others() -> Vec<Value> {
    vec![
        json!({"tolerations": [{"key": "a", "operator": "Gt", "value": "1"}]}),
        json!({"tolerations": [{"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": -1}]}),
        json!({"highAvailability": {"topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "matchLabelKeys": ["a", "a"]},
        ]}}),
        json!({"highAvailability": {"topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 0},
        ]}}),
        json!({"podLabels": {"a": &"x".repeat(64)}}),
        json!({"podLabels": {"pod-template-hash": "x"}}),
        json!({"podAnnotations": {"container.apparmor.security.beta.kubernetes.io/memcached": "x"}}),
        json!({"podAnnotations": {"seccomp.security.alpha.kubernetes.io/pod": "x"}}),
        json!({"podAnnotations": {"kubernetes.io/config.mirror": "x"}}),
        json!({"service": {"annotations": {"service.kubernetes.io/topology-mode": "x"}, "type": "LoadBalancer"}}),
        json!({"nodeSelector": {"a/b/c": "x"}}),
        json!({"image": "Memcached:1.6"}),
        json!({"image": &"x".repeat(300)}),
        json!({"priorityClassName": "system-node-critical"}),
        json!({"memcached": {"extraArgs": ["$(HOME)", "", "\u{0}"]}}),
        json!({"workload": {"rollout": {"minReadySeconds": 3600}}}),
    ]
}
