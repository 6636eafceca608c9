//! A small HTTP server: `/metrics`, `/healthz`, and no way to make it grow.

use std::convert::Infallible;
use std::io;
use std::net::TcpListener;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::family;
use super::scraper::Scraper;

/// Connections at once: many more than scrapers, so that idle ones leave room until their time is over.
const CONNECTIONS: usize = 128;
/// How long a request may take to arrive.
const HEADER: Duration = Duration::from_secs(3);
/// How long a connection may take besides the scrape: whoever is slower is not scraping.
const LIFETIME: Duration = Duration::from_secs(10);
/// How long scrapes that are under way at the end may still take.
const GRACE: Duration = Duration::from_secs(5);
/// After an accept that failed, for want of file descriptors for example.
const PAUSE: Duration = Duration::from_millis(100);

/// Serves until `stop`, then lets scrapes under way finish.
pub async fn serve(listener: TcpListener, scraper: Arc<Scraper>, stop: impl Future<Output = ()>) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let listener = tokio::net::TcpListener::from_std(listener)?;
    let places = Arc::new(Semaphore::new(CONNECTIONS));
    let mut connections = JoinSet::new();
    tokio::pin!(stop);
    loop {
        let next = async {
            // The semaphore is never closed: there is a place sooner or later.
            let place = places.clone().acquire_owned().await.ok();
            listener.accept().await.map(|(stream, _)| (stream, place))
        };
        let accepted = tokio::select! {
            () = &mut stop => break,
            accepted = next => accepted,
        };
        match accepted {
            Err(error) => {
                tracing::warn!(%error, "failed to accept a connection");
                sleep(PAUSE).await;
            }
            Ok((stream, place)) => {
                let scraper = scraper.clone();
                connections.spawn(async move {
                    converse(stream, scraper).await;
                    drop(place);
                });
            }
        }
        while connections.try_join_next().is_some() {}
    }
    drop(listener);
    timeout(GRACE, async { while connections.join_next().await.is_some() {} }).await.ok();
    Ok(())
}

/// One request, one answer.
async fn converse(stream: TcpStream, scraper: Arc<Scraper>) {
    let lifetime = LIFETIME + scraper.timeout();
    let service = service_fn(move |request| {
        let scraper = scraper.clone();
        async move { Ok::<_, Infallible>(answer(&request, &scraper).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(lifetime, connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer(request: &Request<Incoming>, scraper: &Scraper) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return response(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n");
    }
    match request.uri().path() {
        "/metrics" => {
            let mut answer = response(StatusCode::OK, scraper.scrape().await);
            answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(family::CONTENT_TYPE));
            answer
        }
        "/healthz" => response(StatusCode::OK, "ok\n"),
        "/" => response(StatusCode::OK, "memcached-agent: metrics are at /metrics, health is at /healthz\n"),
        _ => response(StatusCode::NOT_FOUND, "there are /metrics and /healthz\n"),
    }
}

fn response(status: StatusCode, body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response
}
