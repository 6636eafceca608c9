//! Connections to the API server: a request has one to itself while it lasts, watches share a few.
//!
//! kube's own client speaks HTTP/1.1, where a watch holds a connection for as long as it lives: eleven kinds in twenty
//! namespaces would hold 220. Over HTTP/2 they are streams of a handful.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use hyper_rustls::HttpsConnectorBuilder;
use hyper_timeout::TimeoutConnector;
use hyper_util::client::legacy;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use kube::client::{Body, ClientBuilder, ConfigExt};
use kube::{Client, Config};
use tower::{BoxError, ServiceBuilder};

use crate::metrics::Metrics;

/// How many watches share a connection. The API server takes at least 100 streams; a list takes one for a moment.
const MOST_WATCHES: usize = 64;

/// A connection that carries watches and has become silent is asked whether it still works.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(30);
const KEEP_ALIVE_TIMEOUT: Duration = Duration::from_secs(20);

/// The clients of an operator; clones share their connections.
#[derive(Clone)]
pub struct Clients {
    requests: Client,
    once: Client,
    watches: Arc<Mutex<Watches>>,
}

struct Watches {
    /// How to make another client; none if there is only one.
    source: Option<(Config, Metrics)>,
    latest: Client,
    /// How many watches the latest has.
    count: usize,
}

impl Clients {
    /// Clients whose requests are counted.
    pub fn new(config: Config, metrics: &Metrics) -> kube::Result<Self> {
        let requests = metrics.client(config.clone())?;
        let mut without_retries = config.clone();
        without_retries.default_retry = false;
        let once = metrics.client(without_retries)?;
        // What is special about the way there is kube's to know.
        if config.proxy_url.is_some() || config.tls_server_name.is_some() {
            return Ok(Self { once, ..Self::sharing(requests) });
        }
        let latest = watch_client(&config, metrics)?;
        let watches = Watches { source: Some((config, metrics.clone())), latest, count: 0 };
        Ok(Self { requests, once, watches: Arc::new(Mutex::new(watches)) })
    }

    /// One client for everything.
    pub fn sharing(client: Client) -> Self {
        let watches = Watches { source: None, latest: client.clone(), count: 0 };
        Self { once: client.clone(), requests: client, watches: Arc::new(Mutex::new(watches)) }
    }

    /// The client for requests.
    pub fn requests(&self) -> &Client {
        &self.requests
    }

    /// A client for requests that are not repeated by themselves: kube's own asks again where an answer is 429.
    pub fn once(&self) -> &Client {
        &self.once
    }

    /// A client for one more watch.
    pub fn watch(&self) -> Client {
        let mut watches = self.watches.lock().unwrap_or_else(PoisonError::into_inner);
        if watches.count >= MOST_WATCHES
            && let Some((config, metrics)) = &watches.source
            // What worked once fails only for want of a file that was there: the connection at hand is better than none.
            && let Ok(another) = watch_client(config, metrics)
        {
            (watches.latest, watches.count) = (another, 0);
        }
        watches.count += 1;
        watches.latest.clone()
    }
}

/// A client that prefers HTTP/2. It repeats no request: a watch that fails is begun anew by whoever follows it.
fn watch_client(config: &Config, metrics: &Metrics) -> kube::Result<Client> {
    let mut http = HttpConnector::new();
    http.enforce_http(false);
    let connector = HttpsConnectorBuilder::new()
        .with_tls_config(config.rustls_client_config()?)
        .https_or_http()
        .enable_all_versions()
        .wrap_connector(http);
    // The handshake, too: all watches would wait for it in silence.
    let mut connector = TimeoutConnector::new(connector);
    connector.set_connect_timeout(config.connect_timeout);
    let client: legacy::Client<_, Body> = legacy::Client::builder(TokioExecutor::new())
        .timer(TokioTimer::new())
        .http2_keep_alive_interval(KEEP_ALIVE_INTERVAL)
        .http2_keep_alive_timeout(KEEP_ALIVE_TIMEOUT)
        .build(connector);
    let service = ServiceBuilder::new()
        .layer(config.base_uri_layer())
        .option_layer(config.auth_layer()?)
        .layer(config.extra_headers_layer()?)
        .map_err(BoxError::from)
        .service(client);
    Ok(ClientBuilder::new(service, config.default_namespace.clone()).with_layer(&metrics.request_layer()).build())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_handshake_that_stalls_is_given_up() {
        // It takes connections and never says a word, as a load balancer without a server behind it may.
        let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("https://{}", silent.local_addr().unwrap());
        let mut config = Config::new(url.parse().unwrap());
        config.connect_timeout = Some(Duration::from_millis(100));
        let client = Clients::new(config, &Metrics::new("test", &[])).unwrap().watch();
        let request = http::Request::get("/api").body(Vec::new()).unwrap();
        let deadline = Duration::from_secs(60);
        let answer = tokio::time::timeout(deadline, client.request_text(request)).await;
        assert!(answer.expect("an answer before the deadline").is_err());
    }
}
