//! Rows of the contract's spec table: contexts, passwords, TLS, network policy.

use memcached_core::memcached::build::Child;
use serde_json::{Value, json};

use crate::diff::{changes, changes_on, without_insides_of};
use crate::fixture::{merged, refused, with_client_certificates, with_monitoring, with_policy, with_sasl, with_tls};

const NOTHING: [&str; 0] = [];

fn security(declared: &Value) -> Vec<String> {
    changes(&json!({"security": declared}))
}

#[test]
fn a_pods_security_context_replaces_ours_whole() {
    assert_eq!(
        security(&json!({"podSecurityContext": {"runAsUser": 1000}})),
        [
            "- template.spec.securityContext.fsGroup: 11211",
            "- template.spec.securityContext.runAsGroup: 11211",
            "- template.spec.securityContext.runAsNonRoot: true",
            "template.spec.securityContext.runAsUser: 11211 → 1000",
            "- template.spec.securityContext.seccompProfile.type: RuntimeDefault",
        ]
    );
}

#[test]
fn a_containers_security_context_replaces_ours_whole_in_every_container() {
    let own = json!({"security": {"containerSecurityContext": {"privileged": false}}});
    let lines = |name: &str| {
        [
            format!("- {name}.securityContext.allowPrivilegeEscalation: false"),
            format!("- {name}.securityContext.capabilities.drop: ALL"),
            format!("+ {name}.securityContext.privileged: false"),
            format!("- {name}.securityContext.readOnlyRootFilesystem: true"),
        ]
    };
    assert_eq!(changes_on(&with_monitoring(), &own), [lines("exporter"), lines("server")].concat());
}

#[test]
fn passwords_are_mounted_and_named() {
    assert_eq!(
        changes(&with_sasl()),
        [
            "server.args: -m 64 -c 1024 -t 4 -I 1m → -m 64 -c 1024 -t 4 -I 1m -Y /etc/memcached/sasl/password-file",
            "+ server.volumeMounts[sasl-credentials].mountPath: /etc/memcached/sasl",
            "+ server.volumeMounts[sasl-credentials].name: sasl-credentials",
            "+ server.volumeMounts[sasl-credentials].readOnly: true",
            "+ template.metadata.annotations.memcached.c5c3.io/secret-hash: 5ec7e7",
            "+ template.spec.volumes[sasl-credentials].name: sasl-credentials",
            "+ template.spec.volumes[sasl-credentials].secret.items[0].key: password-file",
            "+ template.spec.volumes[sasl-credentials].secret.items[0].path: password-file",
            "+ template.spec.volumes[sasl-credentials].secret.secretName: passwords",
        ]
    );
    assert_eq!(security(&json!({"sasl": {"enabled": false, "credentialsSecretRef": {"name": "x"}}})), NOTHING);
    assert_eq!(
        refused(&json!({"security": {"sasl": {"enabled": true}}})),
        ["spec.security.sasl.credentialsSecretRef.name"]
    );
}

#[test]
fn binary_authentication_goes_into_command_and_environment() {
    let binary = json!({"security": {"sasl": {"mode": "SASL"}}});
    assert_eq!(
        changes_on(&with_sasl(), &binary),
        [
            "server.args: -m 64 -c 1024 -t 4 -I 1m -Y /etc/memcached/sasl/password-file → -m 64 -c 1024 -t 4 -I 1m",
            "+ server.command: memcached -S",
            "+ server.env[MEMCACHED_SASL_PWDB].name: MEMCACHED_SASL_PWDB",
            "+ server.env[MEMCACHED_SASL_PWDB].value: /etc/memcached/sasl/password-file",
            "+ server.env[SASL_CONF_PATH].name: SASL_CONF_PATH",
            "+ server.env[SASL_CONF_PATH].value: /etc/memcached/sasl",
        ]
    );
    assert_eq!(changes_on(&with_sasl(), &json!({"security": {"sasl": {"mode": "ASCII"}}})), NOTHING);
}

#[test]
fn tls_adds_a_port_that_answers() {
    assert_eq!(
        changes(&with_tls()),
        [
            "+ Service.spec.ports[memcached-tls].name: memcached-tls",
            "+ Service.spec.ports[memcached-tls].port: 11212",
            "+ Service.spec.ports[memcached-tls].protocol: TCP",
            "+ Service.spec.ports[memcached-tls].targetPort: memcached-tls",
            "server.args: -m 64 -c 1024 -t 4 -I 1m → -m 64 -c 1024 -t 4 -I 1m -Z \
             -o ssl_chain_cert=/etc/memcached/tls/tls.crt -o ssl_key=/etc/memcached/tls/tls.key",
            "+ server.command: memcached -l notls:*:11211,*:11212",
            "+ server.ports[memcached-tls].containerPort: 11212",
            "+ server.ports[memcached-tls].name: memcached-tls",
            "+ server.ports[memcached-tls].protocol: TCP",
            "+ server.volumeMounts[tls-certificates].mountPath: /etc/memcached/tls",
            "+ server.volumeMounts[tls-certificates].name: tls-certificates",
            "+ server.volumeMounts[tls-certificates].readOnly: true",
            "+ template.metadata.annotations.memcached.c5c3.io/secret-hash: 5ec7e7",
            "+ template.spec.volumes[tls-certificates].name: tls-certificates",
            "+ template.spec.volumes[tls-certificates].secret.items[0].key: tls.crt",
            "+ template.spec.volumes[tls-certificates].secret.items[0].path: tls.crt",
            "+ template.spec.volumes[tls-certificates].secret.items[1].key: tls.key",
            "+ template.spec.volumes[tls-certificates].secret.items[1].path: tls.key",
            "+ template.spec.volumes[tls-certificates].secret.secretName: server-cert",
        ]
    );
    assert_eq!(security(&json!({"tls": {"enabled": false, "enableClientCert": true}})), NOTHING);
    assert_eq!(
        refused(&json!({"security": {"tls": {"enabled": true}}})),
        ["spec.security.tls.certificateSecretRef.name"]
    );
}

#[test]
fn client_certificates_are_enforced_and_their_authority_mounted() {
    const BEFORE: &str = "-m 64 -c 1024 -t 4 -I 1m -Z -o ssl_chain_cert=/etc/memcached/tls/tls.crt \
                          -o ssl_key=/etc/memcached/tls/tls.key";
    let expected = [
        format!("server.args: {BEFORE} → {BEFORE} -o ssl_ca_cert=/etc/memcached/tls/ca.crt"),
        "server.command: memcached -l notls:*:11211,*:11212 → \
         memcached -o ssl_verify_mode=2 -l notls:127.0.0.1:11213,*:11211,*:11212"
            .to_owned(),
        "+ template.spec.volumes[tls-certificates].secret.items[2].key: ca.crt".to_owned(),
        "+ template.spec.volumes[tls-certificates].secret.items[2].path: ca.crt".to_owned(),
    ];
    assert_eq!(changes_on(&with_tls(), &with_client_certificates()), expected);
    let required = json!({"security": {"tls": {"mode": "Required"}}});
    assert_eq!(changes_on(&with_client_certificates(), &required), NOTHING, "it is the only mode");
    let around = merged(&with_client_certificates(), &json!({"security": {"tls": {"mode": "Alongside"}}}));
    assert_eq!(refused(&around), ["spec.security.tls.mode"]);
}

#[test]
fn a_required_mode_closes_plaintext_but_for_the_exporter() {
    let required = json!({"security": {"tls": {"mode": "Required"}}});
    let listeners = "server.command: memcached -l notls:*:11211,*:11212 → \
                     memcached -l notls:127.0.0.1:11213,*:11211,*:11212";
    assert_eq!(changes_on(&with_tls(), &required), [listeners]);
    assert_eq!(
        changes_on(&merged(&with_tls(), &with_monitoring()), &required),
        ["+ exporter.args: --memcached.address=127.0.0.1:11213", listeners]
    );
    assert_eq!(changes_on(&with_tls(), &json!({"security": {"tls": {"mode": "Alongside"}}})), NOTHING);
}

#[test]
fn an_issuer_adds_a_certificate_whose_secret_is_used() {
    let issued = json!({"security": {"tls": {
        "enabled": true, "issuerRef": {"name": "ca"}, "certificateSecretRef": {"name": ""},
    }}});
    let lines = without_insides_of(Child::Certificate, changes_on(&with_tls(), &issued));
    assert_eq!(
        lines,
        ["+ Certificate", "template.spec.volumes[tls-certificates].secret.secretName: server-cert → sessions-tls",]
    );
    let both = merged(&with_tls(), &json!({"security": {"tls": {"issuerRef": {"name": "ca"}}}}));
    assert_eq!(refused(&both), ["spec.security.tls.issuerRef"]);
}

#[test]
fn a_network_policy_is_one_more_object() {
    let lines = changes(&with_policy());
    assert_eq!(without_insides_of(Child::NetworkPolicy, lines), ["+ NetworkPolicy"]);
    let off = json!({"networkPolicy": {"enabled": false, "allowedSources": [{"podSelector": {}}]}});
    assert_eq!(security(&off), NOTHING);
}

#[test]
fn sources_limit_who_may_connect() {
    let sources = json!([{"podSelector": {"matchLabels": {"app": "web"}}}]);
    let declared = json!({"security": {"networkPolicy": {"allowedSources": sources}}});
    assert_eq!(
        changes_on(&with_policy(), &declared),
        ["+ NetworkPolicy.spec.ingress[0].from[0].podSelector.matchLabels.app: web"]
    );
    let nobody = json!({"security": {"networkPolicy": {"allowedSources": []}}});
    assert_eq!(changes_on(&with_policy(), &nobody), NOTHING, "an empty list is no list");
}

#[test]
fn scrapers_get_a_rule_of_their_own() {
    let monitored = merged(&with_policy(), &with_monitoring());
    let scrapers = json!([{"podSelector": {"matchLabels": {"app": "prometheus"}}}]);
    let declared = json!({"security": {"networkPolicy": {"metricsSources": scrapers}}});
    assert_eq!(
        changes_on(&monitored, &declared),
        [
            "- NetworkPolicy.spec.ingress[0].ports[1].port: 9150",
            "- NetworkPolicy.spec.ingress[0].ports[1].protocol: TCP",
            "+ NetworkPolicy.spec.ingress[1].from[0].podSelector.matchLabels.app: prometheus",
            "+ NetworkPolicy.spec.ingress[1].ports[0].port: 9150",
            "+ NetworkPolicy.spec.ingress[1].ports[0].protocol: TCP",
        ]
    );
    assert_eq!(changes_on(&with_policy(), &declared), NOTHING, "nothing to scrape, no rule");
}
