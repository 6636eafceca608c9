//! Authentication and TLS.

use super::Rule;

const TLS: &str = "spec.security.tls";

/// Passwords are in a Secret.
pub const PASSWORD_SECRET: Rule = Rule::invalid(
    "spec.security.sasl",
    ".credentialsSecretRef.name",
    "!self.enabled || (has(self.credentialsSecretRef) && self.credentialsSecretRef.name != '')",
    "required when authentication is enabled: name the Secret with the key password-file",
)
.required();

/// Certificates are in a Secret, or somebody issues them.
pub const CERTIFICATE_SECRET: Rule = Rule::invalid(
    TLS,
    ".certificateSecretRef.name",
    "!self.enabled || has(self.issuerRef) \
     || (has(self.certificateSecretRef) && self.certificateSecretRef.name != '')",
    "required when TLS is enabled: name the Secret with tls.crt and tls.key, or give issuerRef",
)
.required();

/// Not both.
pub const CERTIFICATE_OR_ISSUER: Rule = Rule::invalid(
    TLS,
    ".issuerRef",
    "!self.enabled || !has(self.issuerRef) || !has(self.certificateSecretRef) || self.certificateSecretRef.name == ''",
    "not together with certificateSecretRef: give one of the two",
)
.forbidden();

/// Client certificates leave no way around.
pub const WAY_AROUND_CERTIFICATES: Rule = Rule::invalid(
    TLS,
    ".mode",
    "!self.enabled || !self.enableClientCert || !has(self.mode) || self.mode != 'Alongside'",
    "Alongside would leave a way around client certificates: use Required, or leave it out",
);
