//! One request: read within limits, reviewed within a budget, answered whatever happens.
//! What is no review gets a 4xx; what is one gets an answer, if need be a refusal.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::body::Bytes;
use axum::extract::{FromRequest, Request as HttpRequest, State};
use axum::response::{IntoResponse, Response};
use http::header::{ALLOW, CONTENT_TYPE};
use http::{HeaderMap, Method, StatusCode};
use kube::api::DynamicObject;
use kube::core::admission::{AdmissionReview, META_API_VERSION_V1, META_KIND};

use super::{Answer, Request};
use crate::metrics::Metrics;

/// Less than the five seconds that the API server gives a webhook: our refusal says more than its timeout.
const BUDGET: Duration = Duration::from_secs(4);

/// How many values a review may have, roughly: each takes a hundred times its length in memory once it is parsed, so
/// that a few megabytes of `[0,0,…` would end the process. Real objects have some thousands.
const VALUES_AT_MOST: usize = 100_000;

/// Says yes or no to a request.
pub(super) type Reviewer = Arc<dyn Fn(Request) -> Pin<Box<dyn Future<Output = Answer> + Send>> + Send + Sync>;

/// A path, and who reviews what comes there.
pub(super) struct Hook {
    pub(super) path: String,
    pub(super) reviewer: Reviewer,
    pub(super) metrics: Metrics,
}

/// Why something is no review.
#[derive(Debug, thiserror::Error)]
enum Malformed {
    #[error("reviews are posted")]
    Method,
    #[error("a review is application/json")]
    MediaType,
    #[error("{1}")]
    Body(StatusCode, String),
    #[error("the body did not arrive in time")]
    Slow,
    #[error("{0} values are more than any object has that the API server stores")]
    Large(usize),
    #[error("this is no AdmissionReview: {0}")]
    Json(#[from] serde_json::Error),
    #[error("this is {1} of {0}, not {META_KIND} of {META_API_VERSION_V1}")]
    Kind(String, String),
    #[error("the AdmissionReview has no request")]
    NoRequest,
}

impl Malformed {
    fn status(&self) -> StatusCode {
        match self {
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::MediaType => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::Body(status, _) => *status,
            Self::Large(_) => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Slow => StatusCode::REQUEST_TIMEOUT,
            Self::Json(_) | Self::Kind(..) | Self::NoRequest => StatusCode::BAD_REQUEST,
        }
    }
}

impl IntoResponse for Malformed {
    fn into_response(self) -> Response {
        let answer = (self.status(), format!("{self}\n"));
        if matches!(self, Self::Method) { ([(ALLOW, "POST")], answer).into_response() } else { answer.into_response() }
    }
}

/// Answers a request at a path.
pub(super) async fn review(State(hook): State<Arc<Hook>>, request: HttpRequest) -> Response {
    let start = Instant::now();
    let (outcome, response) = match read(request).await {
        Ok(request) => {
            let (outcome, answer) = hook.ask(request.clone(), BUDGET.saturating_sub(start.elapsed())).await;
            (outcome, respond(answer, &request))
        }
        Err(malformed) => {
            tracing::debug!(path = hook.path, error = %malformed, "turned away what is no review");
            ("malformed", malformed.into_response())
        }
    };
    hook.metrics.webhook(&hook.path, outcome, start.elapsed());
    response
}

async fn read(request: HttpRequest) -> Result<Request, Malformed> {
    if request.method() != Method::POST {
        return Err(Malformed::Method);
    }
    if !is_json(request.headers()) {
        return Err(Malformed::MediaType);
    }
    let body = tokio::time::timeout(BUDGET, Bytes::from_request(request, &())).await.map_err(|_| Malformed::Slow)?;
    parse(&body.map_err(|refusal| Malformed::Body(refusal.status(), refusal.body_text()))?)
}

fn is_json(headers: &HeaderMap) -> bool {
    let media = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    media.split(';').next().is_some_and(|media| media.trim().eq_ignore_ascii_case("application/json"))
}

fn parse(body: &[u8]) -> Result<Request, Malformed> {
    let values = body.iter().filter(|byte| matches!(byte, b',' | b'[' | b'{')).count();
    if values > VALUES_AT_MOST {
        return Err(Malformed::Large(values));
    }
    let review: AdmissionReview<DynamicObject> = serde_json::from_slice(body)?;
    if review.types.kind != META_KIND || review.types.api_version != META_API_VERSION_V1 {
        return Err(Malformed::Kind(review.types.api_version, review.types.kind));
    }
    review.try_into().map_err(|_| Malformed::NoRequest)
}

impl Hook {
    /// The reviewer's answer, or the refusal that stands for it, and the word for that in metrics.
    async fn ask(&self, request: Request, budget: Duration) -> (&'static str, Answer) {
        let reviewer = Arc::clone(&self.reviewer);
        // A task of its own: its panic ends nothing else, and time runs out also for one that never yields.
        let mut task = tokio::spawn(async move { reviewer(request).await });
        match tokio::time::timeout(budget, &mut task).await {
            Ok(Ok(answer)) => (answer.outcome(), answer),
            Ok(Err(failed)) => {
                tracing::error!(path = self.path, error = %failed, "a reviewer failed");
                ("failed", Answer::fail("the review failed; this is a mistake in the webhook, not in the object"))
            }
            Err(_) => {
                task.abort();
                tracing::warn!(path = self.path, ?budget, "a reviewer took too long");
                ("late", Answer::fail("the review took too long; try again"))
            }
        }
    }
}

fn respond(answer: Answer, request: &Request) -> Response {
    // What is written was just made from JSON or of strings: it can be written, or it is refused.
    let response = answer.respond(request).map_err(|error| error.to_string());
    let body = response.and_then(|it| serde_json::to_vec(&it.into_review()).map_err(|error| error.to_string()));
    match body {
        Ok(body) => ([(CONTENT_TYPE, "application/json")], body).into_response(),
        Err(error) => (StatusCode::UNPROCESSABLE_ENTITY, error).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn body() -> Value {
        json!({
            "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
            "request": {
                "uid": "1", "operation": "CREATE", "userInfo": {"username": "somebody"},
                "kind": {"group": "", "version": "v1", "kind": "ConfigMap"},
                "resource": {"group": "", "version": "v1", "resource": "configmaps"},
                "object": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one"}, "spec": null},
                "oldObject": null,
            },
        })
    }

    #[test]
    fn a_review_of_endlessly_many_values_is_not_even_parsed() {
        let mut large = body();
        large["request"]["object"]["spec"] = json!(vec![0; VALUES_AT_MOST]);
        assert!(matches!(parse(large.to_string().as_bytes()), Err(Malformed::Large(_))));
        large["request"]["object"]["spec"] = json!(vec![0; VALUES_AT_MOST / 2]);
        assert!(parse(large.to_string().as_bytes()).is_ok());
    }

    fn hook<A: Future<Output = Answer> + Send + 'static>(reviewer: fn(Request) -> A) -> (Arc<Hook>, Metrics) {
        let metrics = Metrics::new("widget_operator", &[]);
        let reviewer: Reviewer = Arc::new(move |request| Box::pin(reviewer(request)));
        (Arc::new(Hook { path: "/review".to_owned(), reviewer, metrics: metrics.clone() }), metrics)
    }

    async fn post(hook: &Arc<Hook>, body: &Value) -> Value {
        let request = HttpRequest::post("/review").header(CONTENT_TYPE, "application/json; charset=utf-8");
        let answer = review(State(Arc::clone(hook)), request.body(body.to_string().into()).unwrap()).await;
        assert_eq!(answer.status(), StatusCode::OK);
        let body = axum::body::to_bytes(answer.into_body(), 1 << 20).await.unwrap();
        serde_json::from_slice(&body).unwrap()
    }

    #[test]
    fn only_a_review_is_one() {
        assert_eq!(parse(body().to_string().as_bytes()).unwrap().user_info.username.as_deref(), Some("somebody"));
        let without = |pointer: &str, value: Value| {
            let mut body = body();
            *body.pointer_mut(pointer).unwrap() = value;
            parse(body.to_string().as_bytes()).unwrap_err().status()
        };
        let old = json!("admission.k8s.io/v1beta1");
        let wrong = [
            without("/apiVersion", old),
            without("/kind", json!("Pod")),
            without("/kind", json!(3)),
            without("/request", json!(null)),
            without("/request", json!({})),
            without("/request/uid", json!(null)),
            without("/request/operation", json!("EAT")),
            without("/request/object", json!("text")),
            without("/request/object/metadata", json!([])),
        ];
        assert!(wrong.iter().all(|status| *status == StatusCode::BAD_REQUEST), "{wrong:?}");
        let deep = "[".repeat(100_000);
        for text in ["", "null", "[]", "{}", "{\"kind\":", "\u{0}", &deep] {
            assert_eq!(parse(text.as_bytes()).unwrap_err().status(), StatusCode::BAD_REQUEST, "{text:.20}");
        }
    }

    #[tokio::test]
    async fn a_panic_is_a_refusal_and_the_next_request_is_answered() {
        let (hook, metrics) = hook(|request| async move {
            assert!(request.dry_run, "on purpose");
            Answer::allow()
        });
        let refused = post(&hook, &body()).await;
        assert_eq!((&refused["response"]["allowed"], &refused["response"]["uid"]), (&json!(false), &json!("1")));
        assert_eq!(refused["response"]["status"]["code"], 500);
        let mut dry = body();
        dry["request"]["dryRun"] = json!(true);
        assert_eq!(post(&hook, &dry).await["response"]["allowed"], true);
        let text = metrics.encode().unwrap();
        for line in [
            r#"widget_operator_webhook_requests_total{path="/review",outcome="failed"} 1"#,
            r#"widget_operator_webhook_requests_total{path="/review",outcome="allowed"} 1"#,
            r#"widget_operator_webhook_duration_seconds_count{path="/review"} 2"#,
        ] {
            assert!(text.contains(line), "no {line} in\n{text}");
        }
    }

    #[tokio::test]
    async fn who_takes_too_long_refuses() {
        let (hook, _) = hook(|_| std::future::pending());
        let request = parse(body().to_string().as_bytes()).unwrap();
        let (outcome, answer) = hook.ask(request, Duration::from_millis(10)).await;
        assert_eq!(outcome, "late");
        assert!(!answer.is_allowed());
    }
}
