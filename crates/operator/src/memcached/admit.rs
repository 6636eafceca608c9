//! Admission: what is left out is filled in, what cannot work is refused, what will hurt is told.

use kube::api::DynamicObject;
use memcached_api::Memcached;
use memcached_api::memcached::admission::{MUTATE, VALIDATE};
use memcached_api::memcached::rule::FieldErrorReason;
use memcached_core::memcached::rule::{self, Violation};
use memcached_core::memcached::{PodDefaults, defaulting, warning};
use operator_kit::webhook::{Answer, Cause, CauseReason, Operation, Request, Webhooks};
use serde_json::Value;

/// The webhooks of this kind, with what is built where a declaration is silent.
pub fn webhooks(settings: PodDefaults) -> Webhooks {
    Webhooks::default()
        .route(MUTATE, |request| {
            let is_passed = passes_unseen(&request);
            std::future::ready(if is_passed { Answer::allow() } else { mutate(&request) })
        })
        .route(VALIDATE, move |request| {
            let is_passed = passes_unseen(&request);
            std::future::ready(if is_passed { Answer::allow() } else { validate(&request, &settings) })
        })
}

/// Deletions, and updates that leave the spec alone: labels, finalizers and the status of an object that was admitted
/// once are not held up by a newer rule. Our own registrations do not ask about them, but OLM's cannot say so.
fn passes_unseen(request: &Request) -> bool {
    let (new, old) = (request.object.as_ref(), request.old_object.as_ref());
    let is_terminating = new.is_some_and(|new| new.metadata.deletion_timestamp.is_some());
    let spec = |object: &DynamicObject| object.data.get("spec").cloned();
    match request.operation {
        Operation::Delete => true,
        Operation::Update => is_terminating || new.map(spec) == old.map(spec),
        _ => is_terminating,
    }
}

fn mutate(request: &Request) -> Answer {
    let value = |object| serde_json::to_value(object).ok();
    match request.object.as_ref().and_then(value) {
        Some(new) => {
            let old = request.old_object.as_ref().and_then(value);
            Answer::change(&new, &defaulting::fill(old.as_ref(), &new))
        }
        None => Answer::allow(),
    }
}

fn validate(request: &Request, settings: &PodDefaults) -> Answer {
    let Some(object) = &request.object else {
        // Nothing comes of it: a deletion.
        return Answer::allow();
    };
    let Some(value) = serde_json::to_value(object).ok() else {
        return Answer::deny("the object cannot be read");
    };
    let mut cache = match read(value.clone()) {
        Ok(cache) => cache,
        Err(cause) => return Answer::invalid([cause]),
    };
    cache.metadata.name = Some(name(&cache));
    let (mut violations, warnings) = match memcached_core::memcached::validate_with(&cache, settings) {
        Ok(valid) => (Vec::new(), warning::warnings(&valid)),
        Err(violations) => (violations, Vec::new()),
    };
    let old = request.old_object.as_ref().and_then(|old| serde_json::to_value(old).ok()).and_then(|old| read(old).ok());
    violations.extend(old.and_then(|old| rule::check_update(&old, &cache)));
    let answer = Answer::invalid(violations.into_iter().map(|violation| cause(violation, &value)));
    warnings.iter().fold(answer, |answer, warning| answer.warn(warning.to_string()))
}

/// Its name; one that is still to be made up from a prefix is as long as it will be.
fn name(cache: &Memcached) -> String {
    let made_up = || cache.metadata.generate_name.as_ref().map(|prefix| format!("{prefix}00000"));
    cache.metadata.name.clone().or_else(made_up).unwrap_or_default()
}

/// The object as a cache, or the field that keeps it from being one.
fn read(object: Value) -> Result<Memcached, Cause> {
    serde_json::from_value(object).map_err(|error| Cause::invalid("spec", error.to_string()))
}

/// In the API server's own words: what kind of mistake, the value, the rest.
fn cause(violation: Violation, object: &Value) -> Cause {
    let Violation { field, message, reason } = violation;
    match (reason, value_at(object, &field)) {
        (FieldErrorReason::Invalid, Some(value)) => Cause::invalid(field, format!("Invalid value: {value}: {message}")),
        (FieldErrorReason::Invalid, None) => Cause::invalid(field, format!("Invalid value: {message}")),
        (FieldErrorReason::Required, _) => {
            Cause::new(CauseReason::Required, field, format!("Required value: {message}"))
        }
        (FieldErrorReason::Forbidden, _) => Cause::new(CauseReason::Forbidden, field, format!("Forbidden: {message}")),
    }
}

/// The value of a field, if it is there and short enough to be shown.
fn value_at(object: &Value, field: &str) -> Option<String> {
    let mut value = object;
    for step in field.split(['.', '[']) {
        value = match step.strip_suffix(']') {
            Some(index) => value.get(index.parse::<usize>().ok()?)?,
            None => value.get(step)?,
        };
    }
    let text = value.to_string();
    (!value.is_object() && !value.is_array() && text.len() <= 128).then_some(text)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request(operation: &str, object: &Value, old: &Value) -> Request {
        let kind = json!({"group": "memcached.c5c3.io", "version": "v1beta1", "kind": "Memcached"});
        let resource = json!({"group": "memcached.c5c3.io", "version": "v1beta1", "resource": "memcacheds"});
        serde_json::from_value(json!({
            "uid": "1", "operation": operation, "name": "a", "userInfo": {}, "kind": kind, "resource": resource,
            "object": object, "oldObject": old,
        }))
        .unwrap()
    }

    #[test]
    fn deletions_and_unchanged_specs_pass_unseen() {
        let cache = |labels: &Value, spec: &Value| json!({"metadata": {"name": "a", "labels": labels}, "spec": spec});
        let old = cache(&json!({}), &json!({"replicas": 1}));
        let passes = |operation: &str, new: &Value, old: &Value| passes_unseen(&request(operation, new, old));
        assert!(passes("UPDATE", &cache(&json!({"a": "b"}), &json!({"replicas": 1})), &old));
        assert!(passes("DELETE", &Value::Null, &old));
        assert!(!passes("UPDATE", &cache(&json!({}), &json!({"replicas": 2})), &old));
        assert!(!passes("UPDATE", &json!({"metadata": {"name": "a"}}), &old), "a spec that goes is a change");
        assert!(!passes("CREATE", &old, &Value::Null));
        let mut terminating = cache(&json!({}), &json!({"replicas": 2}));
        terminating["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        assert!(passes("UPDATE", &terminating, &old));
    }

    #[test]
    fn a_mistake_is_told_with_its_value_in_the_api_servers_words() {
        let object = json!({"spec": {"memcached": {"extraArgs": ["-v", "-p"], "threads": 500}, "replicas": null}});
        let say = |field: &str, reason| {
            cause(Violation { field: field.into(), message: "no".into(), reason }, &object).message
        };
        assert_eq!(say("spec.memcached.extraArgs[1]", FieldErrorReason::Invalid), "Invalid value: \"-p\": no");
        assert_eq!(say("spec.memcached.threads", FieldErrorReason::Invalid), "Invalid value: 500: no");
        assert_eq!(say("spec.memcached", FieldErrorReason::Invalid), "Invalid value: no");
        assert_eq!(say("spec.nowhere.to[7].be", FieldErrorReason::Invalid), "Invalid value: no");
        assert_eq!(say("spec.memcached.threads", FieldErrorReason::Required), "Required value: no");
        assert_eq!(say("spec.memcached.threads", FieldErrorReason::Forbidden), "Forbidden: no");
    }
}
