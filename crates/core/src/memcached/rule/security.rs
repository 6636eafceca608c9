//! Authentication and TLS that could not be set up as declared.

use memcached_api::memcached::rule;
use memcached_api::memcached::spec::{MemcachedSpec, Sasl, SecretRef, Tls, TlsMode};

use operator_model::name::{NAME_RULE, is_object_name};
use operator_model::violation::Violation;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let Some(security) = &spec.security else {
        return Vec::new();
    };
    let sasl = security.sasl.as_ref().filter(|sasl| sasl.enabled).map(check_sasl);
    let tls = security.tls.as_ref().filter(|tls| tls.enabled).map(check_tls);
    sasl.into_iter().chain(tls).flatten().collect()
}

fn check_sasl(sasl: &Sasl) -> Vec<Violation> {
    let mut violations = Vec::new();
    if is_missing(sasl.credentials_secret_ref.as_ref()) {
        violations.push(Violation::of(&rule::PASSWORD_SECRET, &[]));
    }
    violations.extend(check_secret(&rule::PASSWORD_SECRET.path(), sasl.credentials_secret_ref.as_ref()));
    violations
}

fn check_tls(tls: &Tls) -> Vec<Violation> {
    let mut violations = Vec::new();
    let named = !is_missing(tls.certificate_secret_ref.as_ref());
    if !named && tls.issuer_ref.is_none() {
        violations.push(Violation::of(&rule::CERTIFICATE_SECRET, &[]));
    }
    if named && tls.issuer_ref.is_some() {
        violations.push(Violation::of(&rule::CERTIFICATE_OR_ISSUER, &[]));
    }
    if tls.enable_client_cert && tls.mode == Some(TlsMode::Alongside) {
        violations.push(Violation::of(&rule::WAY_AROUND_CERTIFICATES, &[]));
    }
    violations.extend(check_secret(&rule::CERTIFICATE_SECRET.path(), tls.certificate_secret_ref.as_ref()));
    if let Some(issuer) = tls.issuer_ref.as_ref().filter(|issuer| !is_object_name(&issuer.name)) {
        let message = format!("{:?} {NAME_RULE}", issuer.name);
        violations.push(Violation::new("spec.security.tls.issuerRef.name", message));
    }
    violations
}

fn check_secret(field: &str, secret: Option<&SecretRef>) -> Option<Violation> {
    let name = &secret?.name;
    let is_good = name.is_empty() || is_object_name(name);
    (!is_good).then(|| Violation::new(field, format!("{name:?} {NAME_RULE}")))
}

fn is_missing(secret: Option<&SecretRef>) -> bool {
    secret.is_none_or(|secret| secret.name.is_empty())
}

#[cfg(test)]
mod tests {
    use memcached_api::memcached::spec::IssuerRef;

    use super::*;
    use crate::memcached::fixture::{with_sasl, with_tls};

    fn fields(change: impl FnOnce(&mut MemcachedSpec)) -> Vec<String> {
        let mut spec = MemcachedSpec::default();
        change(&mut spec);
        check(&spec).into_iter().map(|violation| violation.field).collect()
    }

    fn tls(spec: &mut MemcachedSpec) -> &mut Tls {
        spec.security.as_mut().unwrap().tls.as_mut().unwrap()
    }

    #[test]
    fn passwords_need_a_secret() {
        assert_eq!(fields(|spec| with_sasl(spec, "creds")), [""; 0]);
        assert_eq!(fields(|spec| with_sasl(spec, "")), ["spec.security.sasl.credentialsSecretRef.name"]);
    }

    #[test]
    fn secrets_have_names_that_secrets_can_have() {
        assert_eq!(fields(|spec| with_sasl(spec, "My Secret")), ["spec.security.sasl.credentialsSecretRef.name"]);
        assert_eq!(fields(|spec| with_tls(spec, "a/b", false)), ["spec.security.tls.certificateSecretRef.name"]);
    }

    #[test]
    fn tls_needs_a_secret_or_an_issuer_but_not_both() {
        let issuer = || IssuerRef { name: "ca".into(), kind: None, group: None };
        assert_eq!(fields(|spec| with_tls(spec, "certs", false)), [""; 0]);
        assert_eq!(fields(|spec| with_tls(spec, "", false)), ["spec.security.tls.certificateSecretRef.name"]);
        let with_issuer = fields(|spec| {
            with_tls(spec, "", false);
            tls(spec).issuer_ref = Some(issuer());
        });
        assert_eq!(with_issuer, [""; 0]);
        let both = fields(|spec| {
            with_tls(spec, "certs", false);
            tls(spec).issuer_ref = Some(issuer());
        });
        assert_eq!(both, ["spec.security.tls.issuerRef"]);
    }

    #[test]
    fn client_certificates_leave_no_way_around() {
        let with_mode = |mode| {
            fields(|spec| {
                with_tls(spec, "certs", true);
                tls(spec).mode = mode;
            })
        };
        assert_eq!(with_mode(Some(TlsMode::Required)), [""; 0]);
        assert_eq!(with_mode(Some(TlsMode::Alongside)), ["spec.security.tls.mode"]);
    }
}
