//! The ServiceMonitor that tells the Prometheus operator to scrape.

use serde_json::{Value, json};

use super::metadata::{labels, owner};
use crate::memcached::validate::Validated;

pub fn build_service_monitor(cache: &Validated) -> Option<Value> {
    let monitor = cache.monitoring.as_ref()?.service_monitor.as_ref()?;
    let mut all = monitor.additional_labels.clone();
    all.extend(labels(&cache.name));
    Some(json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": {
            "name": cache.name,
            "namespace": cache.namespace,
            "labels": all,
            "ownerReferences": [owner(cache)],
        },
        "spec": {
            "selector": {"matchLabels": labels(&cache.name)},
            "namespaceSelector": {"matchNames": [cache.namespace]},
            "endpoints": [{
                "port": "metrics",
                "interval": monitor.interval,
                "scrapeTimeout": monitor.scrape_timeout,
            }],
        },
    }))
}
