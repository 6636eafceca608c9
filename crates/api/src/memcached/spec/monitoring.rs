//! Prometheus metrics of the servers.

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::ResourceRequirements;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The exporter that is used unless another is named.
pub const STOCK_EXPORTER: &str = "prom/memcached-exporter:v0.15.4";

/// Prometheus' durations: the longest unit first, each at most once.
const DURATION: &str = "^([0-9]+y)?([0-9]+w)?([0-9]+d)?([0-9]+h)?([0-9]+m)?([0-9]+s)?([0-9]+ms)?$";

/// Prometheus metrics of the servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct Monitoring {
    /// Adds an exporter beside each server, and the port `metrics` (9150) to the Service.
    pub enabled: bool,
    /// The exporter's image. Default `prom/memcached-exporter:v0.15.4`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(regex(pattern = r"^\S*$"), length(max = 1024))]
    pub exporter_image: Option<String>,
    /// CPU and memory of the exporter.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub exporter_resources: Option<ResourceRequirements>,
    /// Creates a ServiceMonitor for the Prometheus operator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub service_monitor: Option<ServiceMonitor>,
}

/// How Prometheus is told to scrape.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub struct ServiceMonitor {
    /// More labels for the ServiceMonitor, for a Prometheus that selects by label.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub additional_labels: BTreeMap<String, String>,
    /// How often, for example `30s`.
    #[schemars(regex(pattern = DURATION), length(min = 1, max = 32))]
    pub interval: String,
    /// How long a scrape may take; not more than the interval.
    #[schemars(regex(pattern = DURATION), length(min = 1, max = 32))]
    pub scrape_timeout: String,
}

impl Default for ServiceMonitor {
    fn default() -> Self {
        Self { additional_labels: BTreeMap::new(), interval: "30s".into(), scrape_timeout: "10s".into() }
    }
}
