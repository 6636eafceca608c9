//! Security contexts, authentication, TLS, network policy.

use k8s_openapi::api::core::v1::{PodSecurityContext, SecurityContext};
use k8s_openapi::api::networking::v1::NetworkPolicyPeer;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Security contexts, authentication, TLS, network policy.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Security {
    /// Replaces the pod's security context whole. The default satisfies the restricted Pod Security Standard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pod_security_context: Option<PodSecurityContext>,
    /// Replaces the containers' security context whole. The default satisfies the restricted Pod Security Standard.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub container_security_context: Option<SecurityContext>,
    /// Asks clients for a name and a password.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sasl: Option<Sasl>,
    /// Encrypts connections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<Tls>,
    /// Creates a NetworkPolicy for the servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub network_policy: Option<NetworkPolicy>,
}

/// Asks clients for a name and a password.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Sasl {
    /// Turns authentication on.
    pub enabled: bool,
    /// `ASCII`: the first `set` of a connection carries name and password (`-Y`). `SASL`: the binary
    /// protocol's authentication (`-S`), which the image must have been built with.
    pub mode: SaslMode,
    /// The Secret whose key `password-file` holds lines of `name:password`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credentials_secret_ref: Option<SecretRef>,
}

/// How clients authenticate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, clippy::upper_case_acronyms, reason = "the names of the API")]
pub enum SaslMode {
    #[default]
    ASCII,
    SASL,
}

/// Encrypts connections.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Tls {
    /// Turns TLS on, on the port `memcached-tls` (11212).
    pub enabled: bool,
    /// `Alongside` (the default): 11211 stays plaintext. `Required`: both ports speak TLS only; always so with
    /// `enableClientCert`, and the default of a cache that was taken over with TLS on 11211.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mode: Option<TlsMode>,
    /// The Secret with `tls.crt`, `tls.key` and, for client certificates, `ca.crt`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate_secret_ref: Option<SecretRef>,
    /// Lets cert-manager make the certificate. Instead of `certificateSecretRef`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub issuer_ref: Option<IssuerRef>,
    /// Refuses clients without a certificate signed by `ca.crt`.
    pub enable_client_cert: bool,
}

/// Whether plaintext stays possible.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[allow(missing_docs, reason = "a described variant would turn the enum into a list of alternatives")]
pub enum TlsMode {
    Alongside,
    Required,
}

/// A Secret in the same namespace.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct SecretRef {
    /// The Secret's name.
    #[schemars(regex(pattern = super::OPTIONAL_NAME), length(max = 253))]
    pub name: String,
}

/// An issuer of cert-manager.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct IssuerRef {
    /// The issuer's name.
    #[schemars(regex(pattern = super::OBJECT_NAME), length(max = 253))]
    pub name: String,
    /// `Issuer` (the default) or `ClusterIssuer`, or the kind of an external issuer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = "^[A-Z][A-Za-z0-9]*$"), length(max = 63))]
    pub kind: Option<String>,
    /// The issuer's API group. Default `cert-manager.io`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = super::OBJECT_NAME), length(max = 253))]
    pub group: Option<String>,
}

/// Who may connect.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkPolicy {
    /// Creates the NetworkPolicy.
    pub enabled: bool,
    /// Who may connect to the servers; everybody if empty.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub allowed_sources: Vec<NetworkPolicyPeer>,
    /// Who may scrape metrics, if not the same as `allowedSources`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub metrics_sources: Vec<NetworkPolicyPeer>,
}
