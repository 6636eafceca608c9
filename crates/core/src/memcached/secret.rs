//! The Secrets a cache refers to: which keys are mounted, and a hash over their values.

use std::collections::{BTreeMap, BTreeSet};

use memcached_api::Memcached;
use sha2::{Digest, Sha256};

use crate::memcached::validate::{Validated, issued_secret};

/// The key with names and passwords.
pub const PASSWORD_FILE: &str = "password-file";
/// The server's certificate.
pub const CERTIFICATE: &str = "tls.crt";
/// The server's key.
pub const KEY: &str = "tls.key";
/// The authority of client certificates.
pub const AUTHORITY: &str = "ca.crt";

/// All keys that are ever mounted.
pub const KEYS: [&str; 4] = [PASSWORD_FILE, CERTIFICATE, KEY, AUTHORITY];

/// The values of a Secret, as far as they could be read.
pub type Data = BTreeMap<String, Vec<u8>>;

/// The Secrets that the pods mount, with the keys that are mounted; sorted.
pub fn mounted(cache: &Validated) -> BTreeMap<String, Vec<&'static str>> {
    let mut mounted: BTreeMap<String, Vec<&'static str>> = BTreeMap::new();
    if let Some(sasl) = &cache.sasl {
        mounted.entry(sasl.secret.clone()).or_default().push(PASSWORD_FILE);
    }
    if let Some(tls) = &cache.tls {
        let keys = mounted.entry(tls.secret.clone()).or_default();
        keys.extend([CERTIFICATE, KEY]);
        keys.extend(tls.client_certificates.then_some(AUTHORITY));
    }
    for keys in mounted.values_mut() {
        keys.sort_unstable();
    }
    mounted
}

/// The names of the Secrets that a spec refers to, whether the rest of it can work or not.
pub fn referenced(cache: &Memcached) -> BTreeSet<String> {
    let Some(security) = &cache.spec.security else { return BTreeSet::new() };
    let sasl = security.sasl.as_ref().filter(|sasl| sasl.enabled);
    let tls = security.tls.as_ref().filter(|tls| tls.enabled);
    let issued = tls.filter(|tls| tls.issuer_ref.is_some());
    let issued = issued.map(|_| issued_secret(cache.metadata.name.as_deref().unwrap_or_default()));
    let named = [
        sasl.and_then(|sasl| sasl.credentials_secret_ref.as_ref()),
        tls.and_then(|tls| tls.certificate_secret_ref.as_ref()),
    ];
    let named = named.into_iter().flatten().map(|secret| secret.name.clone());
    named.chain(issued).filter(|name| !name.is_empty()).collect()
}

/// What is missing, in words: a Secret, or a key of one. Of a Secret that could not be looked at, nothing is known.
pub fn missing(cache: &Validated, secrets: &BTreeMap<String, Option<Data>>) -> Vec<String> {
    let mut words = Vec::new();
    for (name, keys) in mounted(cache) {
        match secrets.get(&name) {
            None => {}
            Some(None) => {
                let how = issuer(cache, &name).map_or_else(
                    || format!("create it with the keys {}", keys.join(", ")),
                    |issuer| {
                        let certificate = &cache.name;
                        format!("{issuer} has not issued it: see `kubectl describe certificate {certificate}`")
                    },
                );
                words.push(format!("Secret {name:?} does not exist: {how}"));
            }
            Some(Some(data)) => {
                let how = issuer(cache, &name).map_or_else(
                    || "add it".to_owned(),
                    |issuer| format!("{issuer} does not write it: use one that does"),
                );
                let absent = keys.iter().filter(|key| !data.contains_key(**key));
                words.extend(absent.map(|key| format!("Secret {name:?} has no key {key:?}: {how}")));
            }
        }
    }
    words
}

/// The issuer whose work a Secret is, as people look for it.
fn issuer(cache: &Validated, secret: &str) -> Option<String> {
    let tls = cache.tls.as_ref().filter(|tls| tls.secret == secret)?;
    let issuer = tls.issuer.as_ref()?;
    Some(format!("{} {:?}", issuer.kind.as_deref().unwrap_or("Issuer"), issuer.name))
}

/// The hash that makes pods roll when a mounted value changes; none without Secrets, or while one is missing.
pub fn hash(cache: &Validated, secrets: &BTreeMap<String, Option<Data>>) -> Option<String> {
    let mounted = mounted(cache);
    if mounted.is_empty() || !missing(cache, secrets).is_empty() {
        return None;
    }
    let mut hash = Sha256::new();
    for (name, keys) in mounted {
        let data = secrets.get(&name)?.as_ref()?;
        for key in keys {
            for part in [name.as_bytes(), b"\0", key.as_bytes(), b"\0", data.get(key)?] {
                hash.update(part);
            }
        }
    }
    Some(hex(&hash.finalize()))
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use memcached_api::memcached::spec::IssuerRef;

    use crate::memcached::fixture;

    fn secrets(entries: &[(&str, &[(&str, &str)])]) -> BTreeMap<String, Option<Data>> {
        let data = |keys: &[(&str, &str)]| keys.iter().map(|(k, v)| ((*k).to_owned(), v.as_bytes().to_vec())).collect();
        entries.iter().map(|(name, keys)| ((*name).to_owned(), Some(data(keys)))).collect()
    }

    #[test]
    fn only_mounted_keys_count() {
        let cache = fixture::validated(|spec| fixture::with_tls(spec, "certs", false));
        let before = secrets(&[("certs", &[("tls.crt", "c"), ("tls.key", "k")])]);
        let other_key = secrets(&[("certs", &[("tls.crt", "c"), ("tls.key", "k"), ("ca.crt", "new")])]);
        let changed = secrets(&[("certs", &[("tls.crt", "d"), ("tls.key", "k")])]);
        assert_eq!(hash(&cache, &before), hash(&cache, &other_key));
        assert_ne!(hash(&cache, &before), hash(&cache, &changed));
    }

    #[test]
    fn the_hash_is_the_contracts() {
        let cache = fixture::validated(|spec| fixture::with_sasl(spec, "creds"));
        let secrets = secrets(&[("creds", &[("password-file", "u:p")])]);
        let expected = hex(&Sha256::digest(b"creds\0password-file\0u:p"));
        assert_eq!(hash(&cache, &secrets), Some(expected));
    }

    #[test]
    fn a_secret_that_an_issuer_owes_names_the_issuer() {
        let cache = fixture::validated(|spec| {
            fixture::with_tls(spec, "", true);
            let tls = spec.security.as_mut().and_then(|security| security.tls.as_mut()).unwrap();
            tls.certificate_secret_ref = None;
            tls.issuer_ref =
                Some(IssuerRef { name: "company".into(), kind: Some("ClusterIssuer".into()), group: None });
        });
        let secret = cache.tls.as_ref().unwrap().secret.clone();
        let without = missing(&cache, &[(secret.clone(), None)].into());
        let certificate = &cache.name;
        let how =
            format!("ClusterIssuer \"company\" has not issued it: see `kubectl describe certificate {certificate}`");
        assert_eq!(without, [format!("Secret {secret:?} does not exist: {how}")]);
        let partly = missing(&cache, &secrets(&[(&secret, &[("tls.crt", "c"), ("tls.key", "k")])]));
        let how = "ClusterIssuer \"company\" does not write it: use one that does";
        assert_eq!(partly, [format!("Secret {secret:?} has no key \"ca.crt\": {how}")]);
    }

    #[test]
    fn a_missing_key_is_named_and_stops_the_hash() {
        let cache = fixture::validated(|spec| fixture::with_tls(spec, "certs", true));
        let secrets = secrets(&[("certs", &[("tls.crt", "c"), ("tls.key", "k")])]);
        assert_eq!(missing(&cache, &secrets), ["Secret \"certs\" has no key \"ca.crt\": add it"]);
        assert_eq!(hash(&cache, &secrets), None);
    }
}
