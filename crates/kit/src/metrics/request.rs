//! Counts what is asked of the API server, by the verbs that RBAC uses and by the answer.
//! A layer around kube's client: no caller has to remember to count.

use std::pin::Pin;
use std::task::{Context, Poll};

use http::{Method, Request, Response, Uri};
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use tower::{Layer, Service};

use super::Labels;

/// The code of a request that got no answer.
const NO_ANSWER: &str = "error";
/// The code of a request whose caller did not wait for the answer.
const GIVEN_UP: &str = "cancelled";

/// Wraps a client's service in a [`RequestCounter`].
#[derive(Debug, Clone)]
pub struct CountRequests {
    requests: Family<Labels, Counter>,
}

impl CountRequests {
    pub(super) fn new(requests: Family<Labels, Counter>) -> Self {
        Self { requests }
    }
}

impl<S> Layer<S> for CountRequests {
    type Service = RequestCounter<S>;

    fn layer(&self, inner: S) -> RequestCounter<S> {
        RequestCounter { inner, requests: self.requests.clone() }
    }
}

/// A service that counts each request when its answer begins.
#[derive(Debug, Clone)]
pub struct RequestCounter<S> {
    inner: S,
    requests: Family<Labels, Counter>,
}

impl<S, In, Out> Service<Request<In>> for RequestCounter<S>
where
    S: Service<Request<In>, Response = Response<Out>>,
    S::Future: Send + 'static,
{
    type Response = Response<Out>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Out>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<In>) -> Self::Future {
        let verb = verb(request.method(), request.uri());
        let mut pending = Pending { requests: self.requests.clone(), verb, code: GIVEN_UP.to_owned() };
        let answer = self.inner.call(request);
        Box::pin(async move {
            let answer = answer.await;
            pending.end(&answer);
            answer
        })
    }
}

/// A request that is counted however it ends, also when nobody waits for it any longer.
struct Pending {
    requests: Family<Labels, Counter>,
    verb: &'static str,
    code: String,
}

impl Pending {
    fn end<B, E>(&mut self, answer: &Result<Response<B>, E>) {
        self.code = match answer {
            Ok(response) => response.status().as_str().to_owned(),
            Err(_) => NO_ANSWER.to_owned(),
        };
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.requests.get_or_create(&super::labels(&[("verb", self.verb), ("code", &self.code)])).inc();
    }
}

/// The verb that RBAC would ask for.
fn verb(method: &Method, uri: &Uri) -> &'static str {
    let one = names_one(uri.path());
    let query = uri.query().unwrap_or_default();
    let watches = || query.split('&').any(|pair| matches!(pair, "watch=true" | "watch=1"));
    match (method.as_str(), one) {
        ("GET", _) if watches() => "watch",
        ("GET", Some(false)) => "list",
        ("GET", _) => "get",
        ("POST", _) => "create",
        ("PUT", _) => "update",
        ("PATCH", _) => "patch",
        ("DELETE", Some(false)) => "deletecollection",
        ("DELETE", _) => "delete",
        _ => "other",
    }
}

/// Whether a path is that of one object, not of a collection; neither if it is no resource's.
fn names_one(path: &str) -> Option<bool> {
    let parts: Vec<_> = path.split('/').filter(|part| !part.is_empty()).collect();
    let (["api", _, resource @ ..] | ["apis", _, _, resource @ ..]) = parts.as_slice() else { return None };
    match resource {
        [] => None,
        ["namespaces", _, _] | [_] => Some(false),
        _ => Some(true),
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use kube::client::Body;
    use kube::{Api, Client};

    use super::*;
    use crate::metrics::Metrics;

    fn verb_of(method: &str, uri: &str) -> &'static str {
        verb(&method.parse().unwrap(), &uri.parse().unwrap())
    }

    #[test]
    fn verbs_are_those_of_rbac() {
        let pods = "/api/v1/namespaces/default/pods";
        let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
        assert_eq!(verb_of("GET", pods), "list");
        assert_eq!(verb_of("GET", "/api/v1/pods?&limit=500"), "list");
        assert_eq!(verb_of("GET", &format!("{pods}?&watch=true&timeoutSeconds=290")), "watch");
        assert_eq!(verb_of("GET", &format!("{pods}/one")), "get");
        assert_eq!(verb_of("GET", "/api/v1/namespaces/default"), "get");
        assert_eq!(verb_of("GET", "/api/v1/namespaces"), "list");
        assert_eq!(verb_of("GET", "/version"), "get");
        assert_eq!(verb_of("GET", "/apis/apps/v1"), "get");
        assert_eq!(verb_of("POST", leases), "create");
        assert_eq!(verb_of("PUT", &format!("{leases}/one")), "update");
        assert_eq!(verb_of("PATCH", "/apis/apps/v1/namespaces/default/deployments/one/scale"), "patch");
        assert_eq!(verb_of("DELETE", &format!("{leases}/one")), "delete");
        assert_eq!(verb_of("DELETE", leases), "deletecollection");
    }

    #[tokio::test]
    async fn a_clients_requests_are_counted_by_verb_and_code() {
        let metrics = Metrics::new("widget_operator", &[]);
        let not_found = tower::service_fn(async |_: Request<Body>| {
            Ok::<_, Infallible>(Response::builder().status(404).body(Body::empty()).unwrap())
        });
        let client = Client::new(metrics.request_layer().layer(not_found), "default");
        let maps: Api<k8s_openapi::api::core::v1::ConfigMap> = Api::default_namespaced(client);
        maps.get("one").await.unwrap_err();
        maps.get("two").await.unwrap_err();
        maps.list(&kube::api::ListParams::default()).await.unwrap_err();
        let text = metrics.encode().unwrap();
        assert!(text.contains(r#"widget_operator_api_requests_total{verb="get",code="404"} 2"#), "{text}");
        assert!(text.contains(r#"widget_operator_api_requests_total{verb="list",code="404"} 1"#), "{text}");
    }

    #[tokio::test]
    async fn a_request_that_nobody_waits_for_counts_too() {
        let metrics = Metrics::new("widget_operator", &[]);
        let silent = tower::service_fn(|_: Request<()>| std::future::pending::<Result<Response<()>, Infallible>>());
        let request = Request::get("/version").body(()).unwrap();
        let call = metrics.request_layer().layer(silent).call(request);
        tokio::time::timeout(std::time::Duration::from_millis(10), call).await.unwrap_err();
        let text = metrics.encode().unwrap();
        assert!(text.contains(r#"widget_operator_api_requests_total{verb="get",code="cancelled"} 1"#), "{text}");
    }
}
