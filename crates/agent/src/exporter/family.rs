//! Prometheus' text format: families of samples, sorted, each told once.

use std::collections::BTreeMap;
use std::fmt;

/// What a scraper is told about the format.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// How a figure moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MetricKind {
    /// Up, until the server starts anew.
    Counter,
    /// Up and down.
    Gauge,
}

/// A family's name, type and purpose.
#[derive(Debug, PartialEq, Eq)]
pub struct Metric {
    name: &'static str,
    kind: MetricKind,
    help: &'static str,
}

/// A counter.
pub const fn counter(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Counter, help }
}

/// A gauge.
pub const fn gauge(name: &'static str, help: &'static str) -> Metric {
    Metric { name, kind: MetricKind::Gauge, help }
}

/// All samples of a scrape.
#[derive(Debug, Default)]
pub struct Families {
    by_name: BTreeMap<&'static str, (&'static Metric, BTreeMap<String, f64>)>,
}

impl Families {
    /// Adds a sample; a second one with the same labels takes the place of the first, for two would be no valid text.
    pub fn add(&mut self, metric: &'static Metric, labels: &[(&str, &str)], value: f64) {
        let (_, samples) = self.by_name.entry(metric.name).or_insert_with(|| (metric, BTreeMap::new()));
        samples.insert(labels_text(labels), value);
    }
}

impl fmt::Display for Families {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, (metric, samples)) in &self.by_name {
            let kind = match metric.kind {
                MetricKind::Counter => "counter",
                MetricKind::Gauge => "gauge",
            };
            writeln!(f, "# HELP {name} {}\n# TYPE {name} {kind}", metric.help)?;
            for (labels, value) in samples {
                writeln!(f, "{name}{labels} {value}")?;
            }
        }
        Ok(())
    }
}

fn labels_text(labels: &[(&str, &str)]) -> String {
    if labels.is_empty() {
        return String::new();
    }
    let mut pairs: Vec<String> = labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
    pairs.sort();
    format!("{{{}}}", pairs.join(","))
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    static ITEMS: Metric = gauge("items", "How many.");
    static HITS: Metric = counter("hits_total", "How often.");

    #[test]
    fn families_are_sorted_and_told_once() {
        let mut families = Families::default();
        families.add(&ITEMS, &[], 3.0);
        families.add(&HITS, &[("slab", "1"), ("lru", "hot")], 0.5);
        families.add(&HITS, &[("slab", "2"), ("lru", "hot")], 12_345_678_901.0);
        let text = "# HELP hits_total How often.\n# TYPE hits_total counter\n\
                    hits_total{lru=\"hot\",slab=\"1\"} 0.5\nhits_total{lru=\"hot\",slab=\"2\"} 12345678901\n\
                    # HELP items How many.\n# TYPE items gauge\nitems 3\n";
        assert_eq!(families.to_string(), text);
    }

    #[test]
    fn no_label_breaks_out_of_its_quotes() {
        let mut families = Families::default();
        families.add(&ITEMS, &[("version", "1\"} 1\nup 1 \\")], 1.0);
        let line = families.to_string().lines().nth(2).unwrap().to_owned();
        assert_eq!(line, r#"items{version="1\"} 1\nup 1 \\"} 1"#);
    }

    #[test]
    fn the_same_sample_twice_is_one() {
        let mut families = Families::default();
        families.add(&ITEMS, &[], 1.0);
        families.add(&ITEMS, &[], 2.0);
        assert_eq!(families.to_string().lines().count(), 3);
    }
}
