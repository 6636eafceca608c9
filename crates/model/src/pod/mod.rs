//! What users may add to a pod, field by field: a spec without violations is one that the API server has no reason to
//! refuse the pod of.

pub mod affinity;
pub mod downward_api;
pub mod env;
pub mod resources;
pub mod scheduling;
pub mod security_context;
pub mod volume;
mod volume_source;

use std::collections::BTreeMap;

use crate::metadata::check_labels;
use crate::violation::FieldErrors;

/// What the operator itself puts into a pod: what users add may name its containers, and must not take the place of
/// the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout<'a> {
    /// The containers that the pod may have.
    pub containers: &'a [&'a str],
    /// The names of the operator's own volumes.
    pub volumes: &'a [&'a str],
    /// Where these are mounted.
    pub mount_paths: &'a [&'a str],
    /// The keys of the labels that the operator selects its pods by.
    pub selector_labels: &'a [&'a str],
}

/// A pod for tests.
#[cfg(test)]
pub(crate) const LAYOUT: Layout<'_> = Layout {
    containers: &["server", "exporter"],
    volumes: &["credentials"],
    mount_paths: &["/etc/server/credentials", "/etc/server/tls"],
    selector_labels: &["app.kubernetes.io/name"],
};

/// Labels that users add to the pods, beside those that the operator selects them by.
pub fn check_pod_labels(errors: &mut FieldErrors<'_>, labels: &BTreeMap<String, String>, layout: &Layout<'_>) {
    check_labels(errors, labels);
    for key in layout.selector_labels {
        let message = format!("{key:?} is how the operator finds the pods: remove it");
        errors.require(!labels.contains_key(*key), message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::violation::refused;

    #[test]
    fn the_labels_that_pods_are_selected_by_are_the_operators() {
        let check = |key: &str| {
            let labels = [(key.to_owned(), "x".to_owned())].into();
            refused(|errors| check_pod_labels(errors, &labels, &LAYOUT))
        };
        assert_eq!(check("app.kubernetes.io/name"), ["at"]);
        assert_eq!(check("app.kubernetes.io/part-of"), [""; 0]);
    }
}
