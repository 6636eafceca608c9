//! What the agent tells: how memcached is, to the kubelet and to the operator, and its metrics, to Prometheus. Read-only.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::metrics;
use super::state::State;
use crate::exporter::{Scraper, Source, family};
use crate::http::{Answer, Site};

/// The kubelet waits for a second.
const QUESTION: Duration = Duration::from_millis(900);

/// `/status`, `/healthz`, `/readyz`.
#[derive(Debug)]
pub struct StatusSite {
    pub state: Arc<State>,
    pub source: Arc<Source>,
}

impl StatusSite {
    /// Whether memcached answers now, as a client sees it.
    async fn is_ready(&self) -> Result<(), String> {
        let question = async {
            let mut connection =
                self.source.connect_anyhow().await.map_err(|error| crate::Chain(&error).to_string())?;
            connection.version().await.map_err(|error| crate::Chain(&error).to_string())
        };
        timeout(QUESTION, question).await.map_err(|_| "memcached does not answer".to_owned())?.map(drop)
    }
}

impl Site for StatusSite {
    const PATHS: &'static str = "/status, /healthz and /readyz";

    fn longest(&self) -> Duration {
        QUESTION
    }

    async fn answer(&self, path: &str) -> Option<Answer> {
        match path {
            "/status" => {
                let body = serde_json::to_string(&self.state.status()).unwrap_or_default();
                Some(Answer::ok(body).of_type("application/json"))
            }
            "/healthz" => Some(Answer::of_check(self.state.check())),
            "/readyz" => Some(Answer::of_check(self.is_ready().await)),
            _ => None,
        }
    }
}

/// `/metrics`, under the stock exporter's names, and our own.
#[derive(Debug)]
pub struct MetricsSite {
    pub state: Arc<State>,
    pub scraper: Scraper,
}

impl Site for MetricsSite {
    const PATHS: &'static str = "/metrics";

    fn longest(&self) -> Duration {
        self.scraper.timeout()
    }

    async fn answer(&self, path: &str) -> Option<Answer> {
        if path != "/metrics" {
            return None;
        }
        let mut text = self.scraper.scrape().await;
        text.push_str(&metrics::families(&self.state.status()).to_string());
        Some(Answer::ok(text).of_type(family::CONTENT_TYPE))
    }
}
