//! Passwords and TLS.

use serde_json::{Value, json};

use super::{By, Example, accepted, refused};

fn tls(mut tls: Value) -> Value {
    tls["enabled"] = json!(true);
    json!({"security": {"tls": tls}})
}

pub fn examples() -> Vec<Example> {
    let password = "spec.security.sasl.credentialsSecretRef.name";
    let certificate = "spec.security.tls.certificateSecretRef.name";
    let named = || json!({"name": "certs"});
    vec![
        accepted(6, json!({"security": {"sasl": {"enabled": true, "credentialsSecretRef": {"name": "s"}}}})),
        accepted(6, json!({"security": {"sasl": {"enabled": false}}})),
        refused(6, json!({"security": {"sasl": {"enabled": true}}}), password, "the key password-file"),
        refused(
            6,
            json!({"security": {"sasl": {"enabled": true, "credentialsSecretRef": {"name": ""}}}}),
            password,
            "required",
        ),
        accepted(7, tls(json!({"certificateSecretRef": named()}))),
        refused(7, tls(json!({})), certificate, "or give issuerRef"),
        accepted(16, tls(json!({"certificateSecretRef": named(), "enableClientCert": true, "mode": "Required"}))),
        accepted(16, tls(json!({"certificateSecretRef": named(), "mode": "Alongside"}))),
        refused(
            16,
            tls(json!({"certificateSecretRef": named(), "enableClientCert": true, "mode": "Alongside"})),
            "spec.security.tls.mode",
            "a way around",
        ),
        accepted(17, tls(json!({"issuerRef": {"name": "ca"}}))),
        refused(
            17,
            tls(json!({"certificateSecretRef": named(), "issuerRef": {"name": "ca"}})),
            "spec.security.tls.issuerRef",
            "give one of the two",
        ),
        refused(
            6,
            json!({"security": {"sasl": {"enabled": true, "credentialsSecretRef": {"name": "A b"}}}}),
            password,
            "",
        )
        .by(By::Schema),
    ]
}
