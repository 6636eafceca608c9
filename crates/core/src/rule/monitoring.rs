//! Scrapes that Prometheus would refuse to do.

use memcached_api::spec::MemcachedSpec;

use super::Violation;

const PATH: &str = "spec.monitoring.serviceMonitor";

pub fn check(spec: &MemcachedSpec) -> Vec<Violation> {
    let monitoring = spec.monitoring.as_ref().filter(|monitoring| monitoring.enabled);
    let Some(monitor) = monitoring.and_then(|monitoring| monitoring.service_monitor.as_ref()) else {
        return Vec::new();
    };
    let refuse = |field: &str, message: String| Violation::new(format!("{PATH}.{field}"), message);
    let fields = [("interval", &monitor.interval), ("scrapeTimeout", &monitor.scrape_timeout)];
    let [interval, timeout] = fields.map(|(_, text)| milliseconds(text));
    if let (Some(interval), Some(timeout)) = (interval, timeout) {
        let message = format!("{} is more than interval {}", monitor.scrape_timeout, monitor.interval);
        return (timeout > interval).then(|| refuse("scrapeTimeout", message)).into_iter().collect();
    }
    let bad = fields.into_iter().filter(|(_, text)| milliseconds(text).is_none());
    bad.map(|(field, text)| refuse(field, format!("{text:?} is no duration: give for example 30s or 1m30s"))).collect()
}

/// A duration such as `1m30s`; none if it is not one, or of no length.
fn milliseconds(text: &str) -> Option<u64> {
    let mut rest = text;
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (number, behind) = rest.split_at_checked(rest.find(|c: char| !c.is_ascii_digit())?)?;
        let units = [("ms", 1), ("s", 1000), ("m", 60_000), ("h", 3_600_000)];
        let (unit, length) = units.into_iter().find(|(unit, _)| behind.starts_with(unit))?;
        total = number.parse::<u64>().ok()?.checked_mul(length)?.checked_add(total)?;
        rest = behind.strip_prefix(unit)?;
    }
    (total > 0).then_some(total)
}

#[cfg(test)]
mod tests {
    use memcached_api::spec::{Monitoring, ServiceMonitor};

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
        for (interval, timeout) in [("30s", "10s"), ("30s", "30s"), ("1m", "59s"), ("1m30s", "90000ms"), ("1h", "2m")] {
            assert_eq!(fields(interval, timeout), [""; 0], "{interval} {timeout}");
        }
        for (interval, timeout) in [("5s", "10s"), ("1m", "61s"), ("999ms", "1s")] {
            assert_eq!(fields(interval, timeout), ["spec.monitoring.serviceMonitor.scrapeTimeout"]);
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in ["", "30", "s", "0s", "1x", "-1s", "1.5s", "99999999999999999999s"] {
            assert_eq!(fields(text, "10s"), ["spec.monitoring.serviceMonitor.interval"], "{text:?}");
        }
    }
}
