//! Authentication and TLS that could not be set up as declared.

use memcached_api::spec::{MemcachedSpec, Sasl, SecretRef, Tls, TlsMode};

use super::Violation;

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let Some(security) = &spec.security else {
        return Vec::new();
    };
    let sasl = security.sasl.as_ref().filter(|sasl| sasl.enabled).and_then(check_sasl);
    let tls = security.tls.as_ref().filter(|tls| tls.enabled).map(check_tls);
    sasl.into_iter().chain(tls.into_iter().flatten()).collect()
}

fn check_sasl(sasl: &Sasl) -> Option<Violation> {
    is_missing(sasl.credentials_secret_ref.as_ref()).then(|| {
        Violation::new(
            "spec.security.sasl.credentialsSecretRef.name",
            "required when authentication is enabled: name the Secret with the key password-file",
        )
    })
}

fn check_tls(tls: &Tls) -> Vec<Violation> {
    let mut violations = Vec::new();
    let named = !is_missing(tls.certificate_secret_ref.as_ref());
    if !named && tls.issuer_ref.is_none() {
        violations.push(Violation::new(
            "spec.security.tls.certificateSecretRef.name",
            "required when TLS is enabled: name the Secret with tls.crt and tls.key, or give issuerRef",
        ));
    }
    if named && tls.issuer_ref.is_some() {
        let message = "not together with certificateSecretRef: give one of the two";
        violations.push(Violation::new("spec.security.tls.issuerRef", message));
    }
    if tls.enable_client_cert && tls.mode == Some(TlsMode::Alongside) {
        violations.push(Violation::new(
            "spec.security.tls.mode",
            "Alongside would leave a way around client certificates: use Required, or leave it out",
        ));
    }
    violations
}

fn is_missing(secret: Option<&SecretRef>) -> bool {
    secret.is_none_or(|secret| secret.name.is_empty())
}

#[cfg(test)]
mod tests {
    use memcached_api::spec::IssuerRef;

    use super::*;
    use crate::fixture::{with_sasl, with_tls};

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
