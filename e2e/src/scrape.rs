//! A scrape of an exporter, as Prometheus would do it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use testbed::{Error, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const PATIENCE: Duration = Duration::from_secs(10);

/// The names that dashboards ask the stock exporter for, one a line, with its type.
const STOCK: &str = include_str!("../../crates/agent/tests/stock-metrics.txt");

/// What was scraped: values by series.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    series: BTreeMap<String, f64>,
}

impl Scrape {
    /// The value of a series, with its labels in their order.
    pub fn value(&self, series: &str) -> Option<f64> {
        self.series.get(series).copied()
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// Names without which the stock exporter's users would miss something.
    pub fn missing_names(&self) -> Vec<&'static str> {
        let there: BTreeSet<&str> = self.series.keys().map(|series| series.split('{').next().unwrap_or(series)).collect();
        ALWAYS.into_iter().filter(|name| !there.contains(name)).collect()
    }
}
