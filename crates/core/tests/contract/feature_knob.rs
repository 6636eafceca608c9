//! Rows of the contract's spec table that are ours: pod knobs and the disk tier.

use serde_json::{Value, json};

use crate::diff::{changes, changes_on};
use crate::fixture::{accepted, children, refused, with_knobs, with_monitoring, with_sasl};
use memcached_core::memcached::build::Child;

fn knob(name: &str) -> Value {
    json!({name: with_knobs()[name]})
}

#[test]
fn every_knob_turns_one_thing() {
    const NODE: &str = "+ template.spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution\
                        .nodeSelectorTerms[0].matchExpressions[0]";
    let affinity = [format!("{NODE}.key: arch"), format!("{NODE}.operator: In"), format!("{NODE}.values: amd64")];
    assert_eq!(changes(&knob("affinity")), affinity);
    for (name, expected) in [
        ("nodeSelector", &["+ template.spec.nodeSelector.disk: fast"][..]),
        (
            "tolerations",
            &[
                "+ template.spec.tolerations[0].effect: NoSchedule",
                "+ template.spec.tolerations[0].key: cache",
                "+ template.spec.tolerations[0].operator: Exists",
            ],
        ),
        ("priorityClassName", &["+ template.spec.priorityClassName: cache-critical"]),
        (
            "serviceAccountName",
            &["+ template.spec.serviceAccount: cache-runner", "+ template.spec.serviceAccountName: cache-runner"],
        ),
        ("imagePullSecrets", &["+ template.spec.imagePullSecrets[registry-login].name: registry-login"]),
        ("imagePullPolicy", &["server.imagePullPolicy: IfNotPresent → Always"]),
        ("podLabels", &["+ template.metadata.labels.team: checkout"]),
        ("podAnnotations", &["+ template.metadata.annotations.example.org/note: warm"]),
        ("env", &["+ server.env[TZ].name: TZ", "+ server.env[TZ].value: UTC"]),
        (
            "extraVolumes",
            &["+ template.spec.volumes[scratch].emptyDir: {}", "+ template.spec.volumes[scratch].name: scratch"],
        ),
    ] {
        assert_eq!(changes(&knob(name)), expected, "{name}");
    }
    assert_eq!(
        changes_on(&knob("extraVolumes"), &knob("extraVolumeMounts")),
        ["+ server.volumeMounts[scratch].mountPath: /scratch", "+ server.volumeMounts[scratch].name: scratch"]
    );
}

#[test]
fn a_pull_policy_is_every_containers() {
    assert_eq!(
        changes_on(&with_monitoring(), &knob("imagePullPolicy")),
        ["exporter.imagePullPolicy: IfNotPresent → Always", "server.imagePullPolicy: IfNotPresent → Always"]
    );
}

#[test]
fn an_account_brings_no_token() {
    let deployment = &children(&accepted(&knob("serviceAccountName")))[&Child::Deployment];
    assert_eq!(deployment["spec"]["template"]["spec"]["automountServiceAccountToken"], false);
}

#[test]
fn labels_and_annotations_of_ours_are_not_for_taking() {
    for label in ["name", "instance", "managed-by"] {
        let labels = json!({"podLabels": {format!("app.kubernetes.io/{label}"): "x"}});
        assert_eq!(refused(&labels), ["spec.podLabels"], "{label}");
    }
    assert_eq!(changes(&json!({"podLabels": {"app.kubernetes.io/version": "x"}})), [""; 0]);
    let annotations = json!({"podAnnotations": {
        "memcached.c5c3.io/secret-hash": "x", "memcached.c5c3.io/restart-trigger": "x",
    }});
    assert_eq!(changes(&annotations), [""; 0]);
    assert_eq!(changes_on(&with_sasl(), &annotations), [""; 0]);
}

#[test]
fn a_variable_of_ours_is_there_once() {
    let spec = json!({
        "env": [
            {"name": "MEMCACHED_SASL_PWDB", "value": "/elsewhere"},
            {"name": "SASL_CONF_PATH", "value": "/own"},
        ],
        "security": {"sasl": {"enabled": true, "mode": "SASL", "credentialsSecretRef": {"name": "passwords"}}},
    });
    let deployment = &children(&accepted(&spec))[&Child::Deployment];
    let env = &deployment["spec"]["template"]["spec"]["containers"][0]["env"];
    assert_eq!(
        env,
        &json!([
            {"name": "SASL_CONF_PATH", "value": "/own"},
            {"name": "MEMCACHED_SASL_PWDB", "value": "/etc/memcached/sasl/password-file"},
        ])
    );
}

#[test]
fn a_disk_tier_is_mounted_and_used() {
    assert_eq!(
        changes(&json!({"extstore": {"size": "1Gi"}})),
        [
            "+ server.command: memcached -o ext_path=/var/lib/memcached/extstore/store:1024m",
            "+ server.volumeMounts[extstore].mountPath: /var/lib/memcached/extstore",
            "+ server.volumeMounts[extstore].name: extstore",
            "+ template.spec.volumes[extstore].emptyDir.sizeLimit: 1088Mi",
            "+ template.spec.volumes[extstore].name: extstore",
        ]
    );
}

#[test]
fn a_disk_tier_on_a_claim_lives_with_its_pod() {
    const CLAIM: &str = "template.spec.volumes[extstore].ephemeral.volumeClaimTemplate.spec";
    let expected = [
        "- template.spec.volumes[extstore].emptyDir.sizeLimit: 1088Mi".to_owned(),
        format!("+ {CLAIM}.accessModes: ReadWriteOnce"),
        format!("+ {CLAIM}.resources.requests.storage: 1088Mi"),
        format!("+ {CLAIM}.storageClassName: nvme"),
    ];
    let claim = json!({"extstore": {"volumeClaim": {"storageClassName": "nvme"}}});
    assert_eq!(changes_on(&json!({"extstore": {"size": "1Gi"}}), &claim), expected);
}

#[test]
fn a_disk_tier_excludes_a_warm_restart() {
    let both = json!({"extstore": {"size": "1Gi"}, "warmRestart": {"enabled": true}});
    assert_eq!(refused(&both), ["spec.warmRestart.enabled"]);
}
