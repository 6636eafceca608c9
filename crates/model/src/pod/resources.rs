//! CPU, memory and other resources of a container as Kubernetes takes them.

use k8s_openapi::api::core::v1::ResourceRequirements;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;

use crate::name::is_key;
use crate::quantity::{billionths, bytes};
use crate::violation::FieldErrors;

/// Limits and requests of a container.
pub fn check_resources(errors: &mut FieldErrors<'_>, resources: &ResourceRequirements) {
    let ResourceRequirements { claims, limits, requests } = resources;
    let message = "is not supported: the pods have no resource claims";
    errors.field("claims").require(claims.as_ref().is_none_or(Vec::is_empty), message);
    for (field, amounts) in [("limits", limits), ("requests", requests)] {
        for (name, amount) in amounts.iter().flatten() {
            let mut errors = errors.field(field);
            let mut errors = errors.field(name);
            errors.require(is_resource(name), format!("{name:?} is no resource of a container"));
            let message = format!("{:?} is no amount: give for example 250m or 1Gi", amount.0);
            errors.require(billionths(amount).is_some(), message);
            let is_whole = billionths(amount).is_none_or(|amount| amount.is_multiple_of(1_000_000_000));
            errors.require(is_ordinary(name) || is_whole, format!("{:?} is no whole number", amount.0));
            let has_pages = page(name)
                .is_none_or(|page| bytes(amount).is_some_and(|bytes| bytes > 0 && bytes.is_multiple_of(page)));
            errors.require(has_pages, format!("{:?} is no number of whole pages", amount.0));
        }
    }
    let given = || [limits, requests].into_iter().flatten().flat_map(|amounts| amounts.keys());
    let has_pages = given().any(|name| page(name).is_some());
    let has_more = given().any(|name| name == "cpu" || name == "memory");
    errors.require(!has_pages || has_more, "huge pages need cpu or memory with them");
    for (name, request) in requests.iter().flatten() {
        let limit = limits.as_ref().and_then(|limits| limits.get(name));
        let mut errors = errors.field("requests");
        let mut errors = errors.field(name);
        match limit {
            Some(limit) => {
                let (requested, limited) = (billionths(request), billionths(limit));
                let message = format!("{} is more than the limit {}", request.0, limit.0);
                errors.require(requested <= limited || limited.is_none(), message);
                errors.require(is_ordinary(name) || requested == limited, "must be the same as the limit");
            }
            None => errors.require(is_ordinary(name), "needs a limit of the same amount"),
        }
    }
}

/// Resources that can be shared out more than once.
fn is_ordinary(name: &str) -> bool {
    ["cpu", "memory", "ephemeral-storage"].contains(&name)
}

/// The size of a huge page, by the name of the resource: `hugepages-2Mi`.
fn page(name: &str) -> Option<u64> {
    let size = name.strip_prefix("hugepages-")?;
    bytes(&Quantity(size.into())).filter(|bytes| *bytes > 0)
}

fn is_resource(name: &str) -> bool {
    is_ordinary(name)
        || page(name).is_some()
        || (name.contains('/') && is_key(name) && !name.starts_with("requests.") && !name.contains("kubernetes.io/"))
}

/// Whether a container requests CPU. A request may also come from a limit: Kubernetes copies it.
pub fn requests_cpu(resources: Option<&ResourceRequirements>) -> bool {
    resources.is_some_and(|r| [&r.requests, &r.limits].into_iter().flatten().any(|map| map.contains_key("cpu")))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::violation::refused;

    fn of(value: &Value) -> ResourceRequirements {
        serde_json::from_value(value.clone()).unwrap()
    }

    fn fields(resources: &Value) -> Vec<String> {
        refused(|errors| check_resources(errors, &of(resources)))
    }

    #[test]
    fn requests_stay_below_limits() {
        for good in [
            json!({"requests": {"cpu": "100m"}, "limits": {"cpu": "0.1"}}),
            json!({"requests": {"memory": "1Gi"}, "limits": {"memory": "1024Mi", "cpu": "1"}}),
            json!({"requests": {"example.org/disk": "1"}, "limits": {"example.org/disk": "1"}}),
        ] {
            assert_eq!(fields(&good), [""; 0], "{good}");
        }
        let above = json!({"requests": {"cpu": "101m"}, "limits": {"cpu": "100m"}});
        assert_eq!(fields(&above), ["at.requests.cpu"]);
    }

    #[test]
    fn amounts_are_amounts_of_something() {
        for (bad, field) in [
            (json!({"limits": {"cpu": "-1"}}), "at.limits.cpu"),
            (json!({"limits": {"memory": "much"}}), "at.limits.memory"),
            (json!({"requests": {"storage": "1Gi"}}), "at.requests.storage"),
            (json!({"requests": {"example.org/disk": "1"}}), "at.requests.example.org/disk"),
            (json!({"claims": [{"name": "x"}]}), "at.claims"),
        ] {
            assert!(fields(&bad).iter().any(|found| found == field), "{bad}: {:?}", fields(&bad));
        }
    }

    #[test]
    fn huge_pages_come_whole_and_with_ordinary_memory() {
        let both = |amount: &str| json!({"limits": {"memory": "1Gi", "hugepages-2Mi": amount}});
        assert_eq!(fields(&both("4Mi")), [""; 0]);
        assert_eq!(fields(&both("3Mi")), ["at.limits.hugepages-2Mi"]);
        assert_eq!(fields(&json!({"limits": {"hugepages-2Mi": "4Mi"}})), ["at"]);
    }

    #[test]
    fn a_limit_is_a_request_too() {
        assert!(requests_cpu(Some(&of(&json!({"requests": {"cpu": "1"}})))));
        assert!(requests_cpu(Some(&of(&json!({"limits": {"cpu": "1"}})))));
        assert!(!requests_cpu(Some(&of(&json!({"limits": {"memory": "1Gi"}})))) && !requests_cpu(None));
    }
}
