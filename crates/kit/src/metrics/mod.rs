//! The operator's own metrics, under the product's prefix, in the OpenMetrics text format.
//! Series of an object go with the object: see [`GaugeFamily`].

mod memory;
mod object;
mod request;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use kube::client::ClientBuilder;
use kube::{Client, Config};
use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;

pub use memory::Memory;
pub use object::GaugeFamily;
pub use request::{CountRequests, RequestCounter};

use crate::lease::{Leadership, ScopeStatus};

/// What a scraper has to be told that it gets.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// From a comparison in memory to a write that waits for a busy API server, in seconds.
const DURATION_BUCKETS: [f64; 12] = [0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0, 30.0];

type Labels = Vec<(String, String)>;

/// All metrics of an operator; clones of it all count into the same.
///
/// ```
/// use operator_kit::metrics::Metrics;
///
/// let metrics = Metrics::new("widget_operator", &[("version", "1.2.3")]);
/// metrics.error("Widget", "QuotaExceeded");
/// let text = metrics.encode().unwrap();
/// assert!(text.contains(r#"widget_operator_errors_total{kind="Widget",reason="QuotaExceeded"} 1"#));
/// assert!(text.contains(r#"widget_operator_build_info{version="1.2.3"} 1"#));
/// ```
#[derive(Debug, Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Registry>>,
    requests: Family<Labels, Counter>,
    reconciles: Family<Labels, Counter>,
    durations: Family<Labels, Histogram, fn() -> Histogram>,
    resources: Family<Labels, Counter>,
    errors: Family<Labels, Counter>,
    queue: Family<Labels, Gauge>,
    watches: Family<Labels, Counter>,
    leadership: Arc<OnceLock<Leadership>>,
    webhooks: Family<Labels, Counter>,
    webhook_durations: Family<Labels, Histogram, fn() -> Histogram>,
}

impl Metrics {
    /// The metrics of a product whose names begin with `prefix`; `build` says which one is running.
    pub fn new(prefix: &str, build: &[(&str, &str)]) -> Self {
        let metrics = Self {
            registry: Arc::new(Mutex::new(Registry::with_prefix(prefix))),
            requests: Family::default(),
            reconciles: Family::default(),
            durations: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
            resources: Family::default(),
            errors: Family::default(),
            queue: Family::default(),
            watches: Family::default(),
            leadership: Arc::default(),
            webhooks: Family::default(),
            webhook_durations: Family::new_with_constructor(|| Histogram::new(DURATION_BUCKETS)),
        };
        let mut registry = metrics.registry();
        registry.register("build", "What is running", Info::new(labels(build)));
        registry.register("api_requests", "Requests to the Kubernetes API", metrics.requests.clone());
        registry.register("reconcile", "Reconciliations by result", metrics.reconciles.clone());
        let help = "How long reconciliations took";
        registry.register("reconcile_duration_seconds", help, metrics.durations.clone());
        let help = "What was done to the objects that belong to a kind";
        registry.register("reconcile_resource", help, metrics.resources.clone());
        registry.register("errors", "Errors by reason", metrics.errors.clone());
        registry.register("queue_depth", "Objects that wait to be reconciled", metrics.queue.clone());
        registry.register("watch_failures", "Watches that failed or were interrupted", metrics.watches.clone());
        registry.register("webhook_requests", "Admission reviews by outcome", metrics.webhooks.clone());
        let help = "How long admission reviews took";
        registry.register("webhook_duration_seconds", help, metrics.webhook_durations.clone());
        let bytes = memory::Bytes(Memory::default(), Memory::resident);
        registry.register("memory_bytes", "Resident memory of the process", bytes);
        let bytes = memory::Bytes(Memory::default(), Memory::peak);
        registry.register("memory_peak_bytes", "Resident memory of the process at most since it started", bytes);
        let bytes = memory::Bytes(Memory::default(), Memory::limit);
        registry.register("memory_limit_bytes", "Memory that the container may have", bytes);
        drop(registry);
        metrics
    }

    /// A reconciliation of a `kind` ended.
    pub fn reconciled(&self, kind: &str, result: &str, took: Duration) {
        self.reconciles.get_or_create(&labels(&[("kind", kind), ("result", result)])).inc();
        self.durations.get_or_create(&labels(&[("kind", kind)])).observe(took.as_secs_f64());
    }

    /// Something was done (`created`, `updated`, `deleted`, …) to a child of some `kind`.
    pub fn resource(&self, kind: &str, operation: &str) {
        self.resources.get_or_create(&labels(&[("kind", kind), ("operation", operation)])).inc();
    }

    /// An error happened to an object of a `kind`, for a reason out of a closed set.
    pub fn error(&self, kind: &str, reason: &str) {
        self.errors.get_or_create(&labels(&[("kind", kind), ("reason", reason)])).inc();
    }

    /// So many objects of a `kind` wait.
    pub fn queue_depth(&self, kind: &str, depth: usize) {
        self.queue.get_or_create(&labels(&[("kind", kind)])).set(i64::try_from(depth).unwrap_or(i64::MAX));
    }

    /// A watch on a `kind` failed.
    pub fn watch_failed(&self, kind: &str) {
        self.watches.get_or_create(&labels(&[("kind", kind)])).inc();
    }

    /// Metrics that nobody sees.
    pub(crate) fn unregistered() -> Self {
        Self::new("", &[])
    }

    /// A request to the webhook at `path` was answered (`allowed`, `patched`, `denied`, `malformed`, …).
    pub fn webhook(&self, path: &str, outcome: &str, took: Duration) {
        self.webhooks.get_or_create(&labels(&[("path", path), ("outcome", outcome)])).inc();
        self.webhook_durations.get_or_create(&labels(&[("path", path)])).observe(took.as_secs_f64());
    }

    /// Shows whether this replica leads, and whom it waits for; once.
    pub fn show_leadership(&self, leadership: Leadership) {
        self.leadership.set(leadership.clone()).ok();
        let mut registry = self.registry();
        registry.register("leader", "Whether this replica leads", Leads(leadership.clone()));
        let help = "Leases of other releases that this one waits for";
        registry.register("scope_waiting", help, Waits(leadership.clone()));
        let help = "Namespaces whose Lease this release does not have, and where it does not work";
        registry.register("scope_unavailable", help, Unavailable(leadership));
    }

    /// A gauge with series for each object of a kind, shown while this replica leads: who does not lead knows nothing
    /// of the objects any more.
    pub fn gauge_family(&self, name: &str, help: &str) -> GaugeFamily {
        let family = GaugeFamily::while_leading(Arc::clone(&self.leadership));
        self.registry().register(name, help, family.clone());
        family
    }

    /// Counts the requests of a client that is built with [`ClientBuilder::with_layer`].
    pub fn request_layer(&self) -> CountRequests {
        CountRequests::new(self.requests.clone())
    }

    /// A client whose requests are counted.
    ///
    /// A request that kube itself repeats (`default_retry`) counts once, with its last answer.
    pub fn client(&self, config: Config) -> kube::Result<Client> {
        Ok(ClientBuilder::try_from(config)?.with_layer(&self.request_layer()).build())
    }

    /// All metrics as text, of the type [`CONTENT_TYPE`].
    pub fn encode(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &self.registry())?;
        Ok(text)
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
}

/// Asked when scraped: leadership may lapse without anybody there to write it down.
#[derive(Debug)]
struct Leads(Leadership);

impl EncodeMetric for Leads {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        encoder.encode_gauge(&i64::from(self.0.is_leader()))
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

/// One series a Lease that somebody else holds.
#[derive(Debug)]
struct Waits(Leadership);

impl EncodeMetric for Waits {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        let ScopeStatus::Waiting(rivals) = self.0.status() else { return Ok(()) };
        for rival in rivals {
            let labels = labels(&[
                ("lease_namespace", &rival.namespace),
                ("release", &rival.release),
                ("holder", &rival.holder),
            ]);
            encoder.encode_family(&labels)?.encode_gauge(&1_i64)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

/// One series a namespace that is done without.
#[derive(Debug)]
struct Unavailable(Leadership);

impl EncodeMetric for Unavailable {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        for namespace in self.0.without().keys() {
            encoder.encode_family(&labels(&[("lease_namespace", namespace)]))?.encode_gauge(&1_i64)?;
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metrics() -> Metrics {
        Metrics::new("widget_operator", &[("version", "1.2.3"), ("commit", "abc")])
    }

    #[track_caller]
    fn assert_line(metrics: &Metrics, line: &str) {
        let text = metrics.encode().unwrap();
        assert!(text.lines().any(|each| each == line), "no {line} in\n{text}");
    }

    #[test]
    fn everything_carries_the_prefix_and_its_labels() {
        let metrics = metrics();
        metrics.reconciled("Widget", "success", Duration::from_millis(20));
        metrics.reconciled("Widget", "error", Duration::from_secs(100));
        metrics.resource("Deployment", "created");
        metrics.error("Widget", "QuotaExceeded");
        metrics.queue_depth("Widget", 3);
        metrics.show_leadership(Leadership::always());
        for line in [
            r#"widget_operator_build_info{version="1.2.3",commit="abc"} 1"#,
            r#"widget_operator_reconcile_total{kind="Widget",result="success"} 1"#,
            r#"widget_operator_reconcile_total{kind="Widget",result="error"} 1"#,
            r#"widget_operator_reconcile_duration_seconds_bucket{le="0.025",kind="Widget"} 1"#,
            r#"widget_operator_reconcile_duration_seconds_count{kind="Widget"} 2"#,
            r#"widget_operator_reconcile_resource_total{kind="Deployment",operation="created"} 1"#,
            r#"widget_operator_errors_total{kind="Widget",reason="QuotaExceeded"} 1"#,
            r#"widget_operator_queue_depth{kind="Widget"} 3"#,
            "widget_operator_leader 1",
            "# EOF",
        ] {
            assert_line(&metrics, line);
        }
    }

    #[test]
    fn clones_count_into_the_same() {
        let metrics = metrics();
        metrics.clone().error("Widget", "Conflict");
        metrics.error("Widget", "Conflict");
        assert_line(&metrics, r#"widget_operator_errors_total{kind="Widget",reason="Conflict"} 2"#);
    }

    #[test]
    fn namespaces_that_are_done_without_are_shown() {
        let metrics = metrics();
        metrics.show_leadership(Leadership::always_but_in("shop"));
        assert_line(&metrics, "widget_operator_leader 1");
        assert_line(&metrics, "widget_operator_scope_unavailable{lease_namespace=\"shop\"} 1");
    }

    #[test]
    fn series_of_an_object_are_shown_until_it_goes() {
        let metrics = metrics();
        let ready = metrics.gauge_family("replicas_ready", "Ready replicas");
        ready.set("default", "one", &[], 3.0);
        assert_line(&metrics, r#"widget_operator_replicas_ready{namespace="default",name="one"} 3.0"#);
        ready.remove_object("default", "one");
        assert!(!metrics.encode().unwrap().contains("replicas_ready{"));
    }
}
