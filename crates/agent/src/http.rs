//! A small HTTP server: a few paths that can be read, and no way to make it grow.

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

/// Connections at once: many more than scrapers, so that idle ones leave room until their time is over.
const CONNECTIONS: usize = 128;
/// How long a request may take to arrive.
const HEADER: Duration = Duration::from_secs(3);
/// How long a request may be: all connections together must not take the container's memory, which is the cache's.
const BUFFER: usize = 16 << 10;
/// How long a connection may take besides the answer: whoever is slower does not want one.
const LIFETIME: Duration = Duration::from_secs(10);
/// How long answers that are under way at the end may still take.
const GRACE: Duration = Duration::from_secs(5);
/// After an accept that failed, for want of file descriptors for example.
const PAUSE: Duration = Duration::from_millis(100);

/// What is served.
pub trait Site: Send + Sync + 'static {
    /// The paths there are, for people.
    const PATHS: &'static str;

    /// The most that an answer takes.
    fn longest(&self) -> Duration;

    /// What is at a path; none where there is nothing.
    fn answer(&self, path: &str) -> impl Future<Output = Option<Answer>> + Send;
}

/// What is said about a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    is_well: bool,
    content_type: &'static str,
    body: String,
}

impl Answer {
    /// All is well.
    pub fn ok(body: impl Into<String>) -> Self {
        Self { is_well: true, content_type: "text/plain; charset=utf-8", body: body.into() }
    }

    /// Whether something is as it should be.
    pub fn of_check(check: Result<(), String>) -> Self {
        match check {
            Ok(()) => Self::ok("ok\n"),
            Err(why) => Self { is_well: false, ..Self::ok(why + "\n") },
        }
    }

    /// The same in another format.
    #[must_use]
    pub fn of_type(self, content_type: &'static str) -> Self {
        Self { content_type, ..self }
    }
}

/// Serves until `stop`, then lets answers under way finish.
pub async fn serve<S: Site>(listener: TcpListener, site: Arc<S>, stop: impl Future<Output = ()>) -> io::Result<()> {
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
                let site = site.clone();
                connections.spawn(async move {
                    converse(stream, site).await;
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
async fn converse<S: Site>(stream: TcpStream, site: Arc<S>) {
    let lifetime = LIFETIME + site.longest();
    let service = service_fn(move |request| {
        let site = site.clone();
        async move { Ok::<_, Infallible>(answer(&request, &*site).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER)
        .max_buf_size(BUFFER)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service);
    if let Ok(Err(error)) = timeout(lifetime, connection).await {
        tracing::debug!(%error, "a connection ended early");
    }
}

async fn answer<S: Site>(request: &Request<Incoming>, site: &S) -> Response<Full<Bytes>> {
    if ![Method::GET, Method::HEAD].contains(request.method()) {
        return response(StatusCode::METHOD_NOT_ALLOWED, Answer::ok("only GET and HEAD\n"));
    }
    let path = request.uri().path();
    match site.answer(path).await {
        Some(answer) if answer.is_well => response(StatusCode::OK, answer),
        Some(answer) => response(StatusCode::SERVICE_UNAVAILABLE, answer),
        None => {
            let status = if path == "/" { StatusCode::OK } else { StatusCode::NOT_FOUND };
            response(status, Answer::ok(format!("memcached-agent: there are {}\n", S::PATHS)))
        }
    }
}

fn response(status: StatusCode, answer: Answer) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(answer.body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(answer.content_type));
    response
}
