//! Gauges with series for each object: all series of an object can be taken away when it is deleted.
//! A plain family cannot do that, as it forgets which of its label sets belong to whom.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use prometheus_client::encoding::{EncodeMetric, MetricEncoder};
use prometheus_client::metrics::MetricType;

use super::Labels;
use crate::lease::Leadership;

/// The series of one object: their labels beyond its name, and their values. There are few of them, and many objects.
type Series = Vec<(Labels, f64)>;

type Objects = BTreeMap<(Box<str>, Box<str>), Series>;

/// A gauge with series for each object, labelled `namespace`, `name` and whatever more; clones are the same gauge.
#[derive(Debug, Clone, Default)]
pub struct GaugeFamily {
    objects: Arc<Mutex<Objects>>,
    leadership: Arc<OnceLock<Leadership>>,
}

impl GaugeFamily {
    /// A gauge that is empty while another process leads.
    pub(super) fn while_leading(leadership: Arc<OnceLock<Leadership>>) -> Self {
        Self { objects: Arc::default(), leadership }
    }

    /// Asked when scraped: a reconcile that ends after leadership was lost cannot bring its series back.
    fn is_shown(&self) -> bool {
        self.leadership.get().is_none_or(Leadership::is_leader)
    }

    /// Sets the object's series with exactly these labels; its others stay.
    pub fn set(&self, namespace: &str, name: &str, labels: &[(&str, &str)], value: f64) {
        let mut objects = self.objects();
        let series = objects.entry((namespace.into(), name.into())).or_default();
        let labels = super::labels(labels);
        if let Some((_, known)) = series.iter_mut().find(|(known, _)| *known == labels) {
            *known = value;
        } else {
            series.reserve_exact(1);
            series.push((labels, value));
        }
    }

    /// Sets the object's only series, whose labels may have changed: for gauges whose labels are the news.
    pub fn set_only(&self, namespace: &str, name: &str, labels: &[(&str, &str)], value: f64) {
        self.objects().insert((namespace.into(), name.into()), vec![(super::labels(labels), value)]);
    }

    /// Takes all series of an object away.
    pub fn remove_object(&self, namespace: &str, name: &str) {
        self.objects().remove(&(namespace.into(), name.into()));
    }

    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl EncodeMetric for GaugeFamily {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> fmt::Result {
        if !self.is_shown() {
            return Ok(());
        }
        for ((namespace, name), series) in &*self.objects() {
            let object = super::labels(&[("namespace", namespace), ("name", name)]);
            for (more, value) in series {
                encoder.encode_family(&(object.clone(), more.clone()))?.encode_gauge(value)?;
            }
        }
        Ok(())
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Gauge
    }

    fn is_empty(&self) -> bool {
        !self.is_shown() || self.objects().is_empty()
    }
}

#[cfg(test)]
mod tests {
    use prometheus_client::registry::Registry;

    use super::*;

    fn lines(family: &GaugeFamily) -> Vec<String> {
        let mut registry = Registry::default();
        registry.register("info", "Objects", family.clone());
        let mut text = String::new();
        prometheus_client::encoding::text::encode(&mut text, &registry).unwrap();
        text.lines().filter(|line| !line.starts_with('#')).map(str::to_owned).collect()
    }

    #[test]
    fn an_object_takes_all_its_series_along_and_no_others() {
        let family = GaugeFamily::default();
        family.set("default", "one", &[("state", "ready")], 1.0);
        family.set("default", "one", &[("state", "failed")], 0.0);
        family.set("other", "one", &[], 7.0);
        assert_eq!(lines(&family).len(), 3);
        family.remove_object("default", "one");
        assert_eq!(lines(&family), [r#"info{namespace="other",name="one"} 7.0"#]);
    }

    #[test]
    fn a_changed_label_replaces_the_series() {
        let family = GaugeFamily::default();
        family.set_only("default", "one", &[("version", "1")], 1.0);
        family.set_only("default", "one", &[("version", "2")], 1.0);
        assert_eq!(lines(&family), [r#"info{namespace="default",name="one",version="2"} 1.0"#]);
    }

    #[test]
    fn hostile_labels_stay_within_their_quotes() {
        let family = GaugeFamily::default();
        family.set("default", "one", &[("image", "a\"b\\c\nd")], 1.0);
        assert_eq!(lines(&family), [r#"info{namespace="default",name="one",image="a\"b\\c\nd"} 1.0"#]);
    }
}
