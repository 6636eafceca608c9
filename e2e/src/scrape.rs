//! A scrape of an exporter, as Prometheus would do it.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::time::Duration;

use testbed::{Error, Result};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

const DEADLINE: Duration = Duration::from_secs(10);

/// The stock exporter's metrics, one a line.
const STOCK: &str = include_str!("../../crates/agent/tests/exporter/stock-metrics.txt");
/// There only with a flash tier, in a proxy, with options of their own, or with another kernel's help.
const SPECIAL: [&str; 5] = [
    "memcached_extstore_",
    "memcached_proxy_",
    "memcached_round_robin_",
    "memcached_slab_temporary_",
    "memcached_unexpected_napi_",
];

/// What was scraped: values by series.
#[derive(Debug, Clone, Default)]
pub struct Scrape {
    series: BTreeMap<String, f64>,
}

/// Scrapes an exporter once.
pub async fn scrape(address: SocketAddr) -> Result<Scrape> {
    let failed = |error: std::io::Error| Error::Other(format!("failed to scrape {address}: {error}"));
    let answer = tokio::time::timeout(DEADLINE, get(address, "/metrics")).await;
    let text = answer.map_err(|_| Error::Other(format!("failed to scrape {address}: no answer")))?.map_err(failed)?;
    let lines = text.lines().filter(|line| line.starts_with("memcached_"));
    let series = lines.filter_map(|line| line.rsplit_once(' ')).filter_map(|(series, value)| {
        let value = value.parse().ok()?;
        Some((series.to_owned(), value))
    });
    Ok(Scrape { series: series.collect() })
}

/// What is answered at a path, with its headers.
pub async fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let question = format!("GET {path} HTTP/1.1\r\nHost: exporter\r\nConnection: close\r\n\r\n");
    stream.write_all(question.as_bytes()).await?;
    let mut text = String::new();
    stream.read_to_string(&mut text).await?;
    Ok(text)
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

    /// Names that the stock exporter has and this one lacks.
    pub fn missing_names(&self) -> Vec<&'static str> {
        let there: BTreeSet<&str> = self.series.keys().filter_map(|series| series.split('{').next()).collect();
        let stock = STOCK.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(' ').next());
        let usual = stock.filter(|name| !SPECIAL.iter().any(|special| name.starts_with(special)));
        usual.filter(|name| !there.contains(name)).collect()
    }
}
