//! Caches for tests, as builder functions on their spec. The name differs from the product's on purpose.

use k8s_openapi::api::core::v1::PodTemplateSpec;
use memcached_api::Memcached;
use memcached_api::memcached::spec::{MemcachedSpec, Sasl, SecretRef, Security, Tls, Workload, WorkloadType};

use crate::memcached::build::pod::build_template;
use crate::memcached::validate::{Validated, validate};

pub fn memcached(change: impl FnOnce(&mut MemcachedSpec)) -> Memcached {
    let mut spec = MemcachedSpec::default();
    change(&mut spec);
    let mut cache = Memcached::new("sessions", spec);
    cache.metadata.namespace = Some("shop".into());
    cache.metadata.uid = Some("7f0c0b7e-0000-4000-8000-000000000001".into());
    cache.metadata.generation = Some(1);
    cache
}

pub fn validated(change: impl FnOnce(&mut MemcachedSpec)) -> Validated {
    validate(&memcached(change)).unwrap()
}

/// The pods of a StatefulSet with memcached 1.6.38.
pub fn template(change: impl FnOnce(&mut MemcachedSpec)) -> PodTemplateSpec {
    let cache = validated(|spec| {
        spec.workload = Some(Workload { type_: Some(WorkloadType::StatefulSet), rollout: None });
        spec.version = Some("1.6.38".into());
        change(spec);
    });
    build_template(&cache, None)
}

pub fn with_tls(spec: &mut MemcachedSpec, secret: &str, client_certificates: bool) {
    let security = spec.security.get_or_insert_with(Security::default);
    security.tls = Some(Tls {
        enabled: true,
        certificate_secret_ref: Some(SecretRef { name: secret.into() }),
        enable_client_cert: client_certificates,
        ..Tls::default()
    });
}

pub fn with_sasl(spec: &mut MemcachedSpec, secret: &str) {
    let security = spec.security.get_or_insert_with(Security::default);
    security.sasl = Some(Sasl {
        enabled: true,
        credentials_secret_ref: Some(SecretRef { name: secret.into() }),
        ..Sasl::default()
    });
}
