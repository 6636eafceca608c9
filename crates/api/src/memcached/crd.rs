//! The CustomResourceDefinition of `Memcached`: both versions with one schema, cleaned up for the API server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube_core::CustomResourceExt;

use crate::crd::EMBEDDED;
use crate::memcached::Memcached;
use crate::memcached::rule;
use crate::memcached::rule::server::argument;

/// The CustomResourceDefinition of `Memcached`.
///
/// # Errors
///
/// If what was derived is no CustomResourceDefinition any more after the clean-up: a bug that a test finds.
pub fn definition() -> serde_json::Result<CustomResourceDefinition> {
    let mut document = serde_json::to_value(Memcached::crd())?;
    operator_model::crd::clean(&mut document, &EMBEDDED.map(|(name, _)| name));
    if let Some(schema) = document.pointer_mut("/spec/versions/0/schema/openAPIV3Schema") {
        // In CEL these are escapes, as in a string of any language.
        let refused = argument::refused().replace('\n', "\\n").replace('\t', "\\t");
        operator_model::crd::add_rules(schema, rule::ALL, &[(argument::PLACEHOLDER, &refused)]);
    }
    let mut crd: CustomResourceDefinition = serde_json::from_value(document)?;
    // The older version first, as people expect to read them; both are served, the newer one is stored.
    if let Some(stored) = crd.spec.versions.first().cloned() {
        let mut older = stored;
        older.name = "v1alpha1".into();
        older.storage = false;
        crd.spec.versions.insert(0, older);
    }
    Ok(crd)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_have_one_schema_and_one_is_stored() {
        let crd = definition().unwrap();
        let [older, newer] = crd.spec.versions.as_slice() else { panic!("two versions") };
        assert_eq!((older.name.as_str(), newer.name.as_str()), ("v1alpha1", "v1beta1"));
        assert_eq!(older.schema, newer.schema);
        assert!(older.served && newer.served && !older.storage && newer.storage);
    }
}
