//! Scrapes that Prometheus would refuse to do.

use memcached_api::memcached::rule;
use memcached_api::memcached::spec::MemcachedSpec;

use super::syntax::check_labels;
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

/// A duration such as `1m30s`, the longest unit first; none if it is not one, or of no length.
fn milliseconds(text: &str) -> Option<u64> {
    const DAY: u64 = 86_400_000;
    let units = [("y", 365 * DAY), ("w", 7 * DAY), ("d", DAY), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];
    let mut rest = text;
    let mut total: u64 = 0;
    for (unit, length) in units {
        let Some(end) = rest.find(|c: char| !c.is_ascii_digit()) else { break };
        let (number, behind) = rest.split_at_checked(end)?;
        let Some(behind) = behind.strip_prefix(unit).filter(|behind| unit != "m" || !behind.starts_with('s')) else {
            continue;
        };
        total = number.parse::<u64>().ok()?.checked_mul(length)?.checked_add(total)?;
        rest = behind;
    }
    (total > 0 && rest.is_empty()).then_some(total)
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
        for (interval, timeout) in
            [("30s", "10s"), ("30s", "30s"), ("1m", "59s"), ("1m30s", "90000ms"), ("1h", "2m"), ("1d12h", "1h")]
        {
            assert_eq!(fields(interval, timeout), [""; 0], "{interval} {timeout}");
        }
        for (interval, timeout) in [("5s", "10s"), ("1m", "61s"), ("999ms", "1s")] {
            assert_eq!(fields(interval, timeout), ["spec.monitoring.serviceMonitor.scrapeTimeout"]);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "30", "s", "0s", "30s1m", "1s1s", "1x", "-1s", "1.5s", "99999999999999999999s"] {
            assert_eq!(fields(text, "10s"), ["spec.monitoring.serviceMonitor.interval"], "{text:?}");
        }
    }
}
