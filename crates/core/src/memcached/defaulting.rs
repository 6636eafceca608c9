//! Defaults, written into the object as it is admitted: people see what they get, and get the same tomorrow.
//!
//! Nothing that was given changes, and filling twice is filling once. Whether a value was given or filled in before
//! is told by its owner: what a webhook wrote has none in `metadata.managedFields`.

use memcached_api::memcached::spec::{STOCK_EXPORTER, Server, ServiceMonitor};
use serde_json::{Map, Value, json};

use crate::memcached::pod_defaults::DEFAULT_IMAGE;

type Object = Map<String, Value>;

/// The object with its defaults. `old` is what it was, if this is an update.
///
/// Not what runs the pods: whoever does not say that gets what there is, or what the operator is told for new ones.
pub fn fill(old: Option<&Value>, new: &Value) -> Value {
    let mut filled = new.clone();
    let before = old.and_then(|old| old.get("spec")).and_then(Value::as_object);
    if let Some(spec) = filled.get_mut("spec").and_then(Value::as_object_mut) {
        fill_image(spec, old, new);
        fill_server(spec, before);
        fill_monitoring(spec, before);
        fill_availability(spec);
        fill_autoscaling(spec);
        fill_replicas(spec, before, new);
    }
    filled
}

/// A value, unless it is null.
fn given<'a>(map: &'a Object, name: &str) -> Option<&'a Value> {
    map.get(name).filter(|value| !value.is_null())
}

fn section<'a>(map: &'a mut Object, name: &str) -> Option<&'a mut Object> {
    map.get_mut(name).and_then(Value::as_object_mut)
}

fn set_default(map: &mut Object, name: &str, default: impl Into<Value>) {
    let is_silent = given(map, name).is_none_or(|value| value.as_str() == Some(""));
    if is_silent {
        map.insert(name.to_owned(), default.into());
    }
}

fn is_enabled(map: &Object, name: &str) -> bool {
    map.get(name).and_then(|section| section.get("enabled")).and_then(Value::as_bool).unwrap_or(false)
}

/// A version is an image of its own; one that was filled in before gives way.
fn fill_image(spec: &mut Object, old: Option<&Value>, object: &Value) {
    if given(spec, "version").is_some() {
        let is_default = given(spec, "image").and_then(Value::as_str) == Some(DEFAULT_IMAGE);
        if is_default && !is_owned(object, "image") {
            spec.remove("image");
        }
        return;
    }
    let Some(old) = old else {
        return set_default(spec, "image", DEFAULT_IMAGE);
    };
    let said = |field: &str| old.pointer(&format!("/spec/{field}")).filter(|value| !value.is_null());
    match (said("image"), said("version")) {
        // Silent then and now: whatever it became then goes on.
        (None, None) => {}
        // Filled in then, maybe by a version with another default: a manifest that is silent keeps it.
        (Some(image), _) if !is_owned(old, "image") => set_default(spec, "image", image.clone()),
        _ => set_default(spec, "image", DEFAULT_IMAGE),
    }
}

fn fill_server(spec: &mut Object, before: Option<&Object>) {
    if is_old_silence(spec, before, "memcached") {
        return;
    }
    if given(spec, "memcached").is_none() {
        spec.insert("memcached".into(), json!({}));
    }
    let Some(server) = section(spec, "memcached") else { return };
    let Server { max_memory_mb, max_connections, threads, max_item_size, verbosity, extra_args: _ } = Server::default();
    set_default(server, "maxMemoryMB", max_memory_mb);
    set_default(server, "maxConnections", max_connections);
    set_default(server, "threads", threads);
    set_default(server, "maxItemSize", max_item_size);
    set_default(server, "verbosity", verbosity);
}

/// Whether nothing was said of a part, then and now. What was built of that silence, maybe by a version with other
/// defaults, is not to change because somebody changes something else.
fn is_old_silence(spec: &Object, before: Option<&Object>, name: &str) -> bool {
    before.is_some_and(|before| given(before, name).is_none()) && given(spec, name).is_none()
}

fn fill_monitoring(spec: &mut Object, before: Option<&Object>) {
    if !is_enabled(spec, "monitoring") {
        return;
    }
    let was_monitored = before.is_some_and(|before| is_enabled(before, "monitoring"));
    let earlier =
        before.and_then(|before| before.get("monitoring")).and_then(|part| part.get("exporterImage")).cloned();
    let Some(monitoring) = section(spec, "monitoring") else { return };
    match earlier {
        Some(image) if was_monitored => set_default(monitoring, "exporterImage", image),
        None if was_monitored => {}
        _ => set_default(monitoring, "exporterImage", STOCK_EXPORTER),
    }
    let Some(monitor) = section(monitoring, "serviceMonitor") else { return };
    let ServiceMonitor { interval, scrape_timeout, additional_labels: _ } = ServiceMonitor::default();
    set_default(monitor, "interval", interval);
    set_default(monitor, "scrapeTimeout", scrape_timeout);
}

fn fill_availability(spec: &mut Object) {
    let Some(availability) = section(spec, "highAvailability") else { return };
    // Not antiAffinityPreset: written down it would say what nobody said, and restart every pod of a running cache.
    let Some(shutdown) = section(availability, "gracefulShutdown") else { return };
    set_default(shutdown, "preStopDelaySeconds", 10);
    set_default(shutdown, "terminationGracePeriodSeconds", 30);
}

fn fill_autoscaling(spec: &mut Object) {
    if !is_enabled(spec, "autoscaling") {
        return;
    }
    let Some(autoscaling) = section(spec, "autoscaling") else { return };
    let is_silent = given(autoscaling, "metrics").is_none_or(|metrics| metrics.as_array().is_some_and(Vec::is_empty));
    if is_silent {
        let target = json!({"type": "Utilization", "averageUtilization": 80});
        let metric = json!({"type": "Resource", "resource": {"name": "cpu", "target": target}});
        autoscaling.insert("metrics".into(), json!([metric]));
    }
    set_default(autoscaling, "behavior", json!({"scaleDown": {"stabilizationWindowSeconds": 300}}));
}

/// How many servers there are is settled when a cache is made, and later only changed by who says so: a default on
/// the way would take servers, and what they hold, away.
fn fill_replicas(spec: &mut Object, before: Option<&Object>, object: &Value) {
    if is_enabled(spec, "autoscaling") {
        // One that nobody gave must not keep an autoscaler from being turned on.
        if !is_owned(object, "replicas") {
            spec.remove("replicas");
        }
        return;
    }
    match before {
        None => set_default(spec, "replicas", 1),
        // The autoscaler's count goes on, whatever it is: the reconciler keeps it.
        Some(before) if is_enabled(before, "autoscaling") => {}
        Some(before) => {
            if let Some(count) = given(before, "replicas") {
                set_default(spec, "replicas", count.clone());
            }
        }
    }
}

/// Whether anybody owns a field of the spec. A count that was set through the scale subresource is an act and no
/// declaration.
fn is_owned(object: &Value, field: &str) -> bool {
    let managers = object.pointer("/metadata/managedFields").and_then(Value::as_array);
    let pointer = format!("/fieldsV1/f:spec/f:{field}");
    managers.into_iter().flatten().any(|manager| {
        let is_act = manager.get("subresource").and_then(Value::as_str) == Some("scale");
        !is_act && manager.pointer(&pointer).is_some()
    })
}

#[cfg(test)]
#[path = "defaulting_tests.rs"]
mod tests;
