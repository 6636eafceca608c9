//! Scrapes that Prometheus would refuse to do.

use memcached_api::memcached::rule;
use memcached_api::memcached::spec::MemcachedSpec;
use operator_model::duration::milliseconds;
use operator_model::metadata::check_labels;
use operator_model::violation::{FieldErrors, Violation};

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let mut violations = Vec::new();
    let monitoring = spec.monitoring.as_ref().filter(|monitoring| monitoring.enabled);
    let Some(monitor) = monitoring.and_then(|monitoring| monitoring.service_monitor.as_ref()) else {
        return violations;
    };
    let mut errors = FieldErrors::at("spec.monitoring.serviceMonitor", &mut violations);
    check_labels(&mut errors.field("additionalLabels"), &monitor.additional_labels);
    let fields = [("interval", &monitor.interval), ("scrapeTimeout", &monitor.scrape_timeout)];
    for (field, text) in fields {
        let message = format!("{text:?} is no duration: give for example 30s or 1m30s");
        errors.field(field).require(milliseconds(text).is_some(), message);
    }
    let [interval, timeout] = fields.map(|(_, text)| milliseconds(text));
    if interval.is_some() && timeout > interval {
        violations.push(Violation::of(&rule::SCRAPE_TIMEOUT, &[]));
    }
    violations
}

#[cfg(test)]
mod tests {
    use memcached_api::memcached::spec::{Monitoring, ServiceMonitor};

    use super::*;

    fn fields(interval: &str, scrape_timeout: &str) -> Vec<String> {
        let monitor = ServiceMonitor {
            interval: interval.into(),
            scrape_timeout: scrape_timeout.into(),
            ..ServiceMonitor::default()
        };
        let monitoring = Monitoring { enabled: true, service_monitor: Some(monitor), ..Monitoring::default() };
        let spec = MemcachedSpec { monitoring: Some(monitoring), ..MemcachedSpec::default() };
        check(&spec).into_iter().map(|violation| violation.field).collect()
    }

    #[test]
    fn a_scrape_ends_before_the_next_begins() {
        for (interval, timeout) in [("30s", "10s"), ("30s", "30s"), ("1m", "59s"), ("1m30s", "90000ms")] {
            assert_eq!(fields(interval, timeout), [""; 0], "{interval} {timeout}");
        }
        for (interval, timeout) in [("5s", "10s"), ("1m", "61s"), ("999ms", "1s")] {
            assert_eq!(fields(interval, timeout), ["spec.monitoring.serviceMonitor.scrapeTimeout"]);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "30", "0s", "1x"] {
            assert_eq!(fields(text, "10s"), ["spec.monitoring.serviceMonitor.interval"], "{text:?}");
        }
    }
}
