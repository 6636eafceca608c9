//! Monitoring.

use super::Rule;

/// A scrape ends before the next begins.
pub const SCRAPE_TIMEOUT: Rule = Rule::invalid(
    "spec.monitoring.serviceMonitor",
    ".scrapeTimeout",
    // Days and longer are Prometheus' own, and not CEL's: the operator looks at them.
    "!self.interval.matches('^([0-9]{1,6}(ms|s|m|h))+$') || !self.scrapeTimeout.matches('^([0-9]{1,6}(ms|s|m|h))+$') \
     || duration(self.scrapeTimeout) <= duration(self.interval)",
    "more than interval: a scrape must end before the next begins",
);
