//! What a reviewer says, and how the API server is told: in the shape of its own answers.
//! A client cannot tell our refusal from one by the API server itself, but for the name of the webhook in it.

use json_patch::Patch;
use kube::core::Status;
use kube::core::admission::{AdmissionResponse, SerializePatchError};
use kube::core::response::{StatusCause, StatusDetails};
use serde_json::Value;

use super::Request;

/// From here on the API server may cut a warning.
const WARNING_LIMIT: usize = 256;
/// What the API server passes on of all warnings together.
const WARNINGS_LIMIT: usize = 4096;
/// Not the character: warnings travel in a header, and not every client reads more than ASCII there.
const ELLIPSIS: &str = "...";

/// What a reviewer says to a request.
///
/// ```
/// use operator_kit::webhook::{Answer, Cause};
///
/// let answer = Answer::invalid([Cause::invalid("spec.size", "must be even")]).warn("spec.colour is deprecated");
/// assert!(!answer.is_allowed());
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    decision: Decision,
    warnings: Vec<String>,
}

#[derive(Debug, Clone, PartialEq)]
enum Decision {
    Allow,
    Patch(Patch),
    Invalid(Vec<Cause>),
    Deny { code: u16, reason: &'static str, message: String },
}

/// A field that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause {
    /// Its path, as `kubectl explain` writes it: `spec.ports[0].name`.
    pub field: String,
    /// What is wrong with it.
    pub message: String,
    /// In what way it is wrong, for machines.
    pub reason: CauseReason,
}

/// In what way a field is wrong; the API server's own words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CauseReason {
    /// The value is malformed or out of bounds.
    Invalid,
    /// There has to be a value.
    Required,
    /// There must not be a value, or not this one, given the others.
    Forbidden,
    /// The value is none of those that there are.
    NotSupported,
    /// The value is there already.
    Duplicate,
}

impl CauseReason {
    fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
            Self::NotSupported => "FieldValueNotSupported",
            Self::Duplicate => "FieldValueDuplicate",
        }
    }
}

impl Cause {
    /// A cause of any reason.
    pub fn new(reason: CauseReason, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), reason }
    }

    /// A value that is malformed or out of bounds.
    pub fn invalid(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self::new(CauseReason::Invalid, field, message)
    }
}

impl Answer {
    /// It may pass as it is.
    pub fn allow() -> Self {
        Decision::Allow.into()
    }

    /// It may pass, changed like this.
    pub fn patch(patch: Patch) -> Self {
        if patch.0.is_empty() { Self::allow() } else { Decision::Patch(patch).into() }
    }

    /// It may pass, changed from what it is to what it should be.
    pub fn change(from: &Value, to: &Value) -> Self {
        Self::patch(json_patch::diff(from, to))
    }

    /// It may not pass because of these fields (422, `Invalid`); without any it may.
    pub fn invalid(causes: impl IntoIterator<Item = Cause>) -> Self {
        let causes: Vec<_> = causes.into_iter().collect();
        if causes.is_empty() { Self::allow() } else { Decision::Invalid(causes).into() }
    }

    /// It may not pass, and no field is to blame (403, `Forbidden`).
    pub fn deny(message: impl Into<String>) -> Self {
        Decision::Deny { code: 403, reason: "Forbidden", message: message.into() }.into()
    }

    /// The review itself failed, so nothing passes; what the API server says of a webhook that it cannot reach.
    pub(super) fn fail(message: impl Into<String>) -> Self {
        Decision::Deny { code: 500, reason: "InternalError", message: message.into() }.into()
    }

    /// With a word to whoever asked, whatever the decision; clients print it.
    #[must_use]
    pub fn warn(mut self, warning: impl Into<String>) -> Self {
        self.warnings.push(warning.into());
        self
    }

    /// Whether it may pass.
    pub fn is_allowed(&self) -> bool {
        matches!(self.decision, Decision::Allow | Decision::Patch(_))
    }

    /// The word for it in metrics.
    pub(super) fn outcome(&self) -> &'static str {
        match &self.decision {
            Decision::Allow => "allowed",
            Decision::Patch(_) => "patched",
            Decision::Invalid(_) | Decision::Deny { .. } => "denied",
        }
    }

    /// The answer in the API server's words.
    pub(super) fn respond(self, request: &Request) -> Result<AdmissionResponse, SerializePatchError> {
        let mut response = AdmissionResponse::from(request);
        let warnings = fitting(self.warnings);
        response.warnings = (!warnings.is_empty()).then_some(warnings);
        match self.decision {
            Decision::Allow => Ok(response),
            Decision::Patch(patch) => response.with_patch(patch),
            Decision::Invalid(causes) => Ok(refused(response, invalid(request, causes))),
            Decision::Deny { code, reason, message } => {
                Ok(refused(response, Status::failure(&message, reason).with_code(code)))
            }
        }
    }
}

impl From<Decision> for Answer {
    fn from(decision: Decision) -> Self {
        Self { decision, warnings: Vec::new() }
    }
}

fn refused(mut response: AdmissionResponse, status: Status) -> AdmissionResponse {
    response.allowed = false;
    response.result = status;
    response
}

/// What the API server says of an object that breaks its schema.
fn invalid(request: &Request, causes: Vec<Cause>) -> Status {
    let kind = &request.kind;
    let said: Vec<_> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
    let said = if let [one] = said.as_slice() { one.clone() } else { format!("[{}]", said.join(", ")) };
    let full = if kind.group.is_empty() { kind.kind.clone() } else { format!("{}.{}", kind.kind, kind.group) };
    let message = format!("{full} {:?} is invalid: {said}", request.name);
    let causes = causes.into_iter().map(|cause| StatusCause {
        reason: cause.reason.as_str().to_owned(),
        message: cause.message,
        field: cause.field,
    });
    let details = StatusDetails {
        name: request.name.clone(),
        group: kind.group.clone(),
        kind: kind.kind.clone(),
        uid: String::new(),
        causes: causes.collect(),
        retry_after_seconds: 0,
    };
    Status::failure(&message, "Invalid").with_code(422).with_details(details)
}

/// Warnings as they arrive whole: one line each, cut where the API server would cut, the last ones left out.
fn fitting(warnings: Vec<String>) -> Vec<String> {
    let mut left = WARNINGS_LIMIT;
    let lines = warnings.into_iter().map(|warning| shorten(&warning.replace(char::is_control, " ")));
    let lines = lines.filter(|line| !line.trim().is_empty());
    let take = lines.take_while(|line| {
        let fits = line.len() <= left;
        left = left.saturating_sub(line.len());
        fits
    });
    take.collect()
}

fn shorten(line: &str) -> String {
    if line.len() <= WARNING_LIMIT {
        return line.to_owned();
    }
    let ends = line.char_indices().map(|(end, _)| end).take_while(|end| *end <= WARNING_LIMIT - ELLIPSIS.len());
    line.get(..ends.last().unwrap_or_default()).unwrap_or_default().to_owned() + ELLIPSIS
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn request() -> Request {
        serde_json::from_value(json!({
            "uid": "1", "operation": "CREATE", "name": "one", "userInfo": {},
            "kind": {"group": "example.com", "version": "v1", "kind": "Widget"},
            "resource": {"group": "example.com", "version": "v1", "resource": "widgets"},
        }))
        .unwrap()
    }

    fn respond(answer: Answer) -> Value {
        serde_json::to_value(answer.respond(&request()).unwrap()).unwrap()
    }

    #[test]
    fn a_refusal_is_shaped_like_the_api_servers_own() {
        let causes = [
            Cause::invalid("spec.size", "must be even"),
            Cause::new(CauseReason::Required, "spec.colour", "must be given"),
        ];
        let said = respond(Answer::invalid(causes));
        assert_eq!(
            said["status"],
            json!({
                "status": "Failure", "code": 422, "reason": "Invalid",
                "message": "Widget.example.com \"one\" is invalid: [spec.size: must be even, spec.colour: must be given]",
                "details": {"name": "one", "group": "example.com", "kind": "Widget", "causes": [
                    {"reason": "FieldValueInvalid", "message": "must be even", "field": "spec.size"},
                    {"reason": "FieldValueRequired", "message": "must be given", "field": "spec.colour"},
                ]},
            })
        );
        assert_eq!(said["allowed"], false);
        assert_eq!(said["uid"], "1");
    }

    #[test]
    fn without_a_cause_or_a_change_it_passes() {
        assert_eq!(Answer::invalid([]), Answer::allow());
        assert_eq!(Answer::change(&json!({"a": 1}), &json!({"a": 1})), Answer::allow());
        assert!(respond(Answer::allow())["patch"].is_null());
        let changed = Answer::change(&json!({"a": 1}), &json!({"a": 2}));
        assert!(changed.is_allowed());
        assert_eq!(respond(changed)["patchType"], "JSONPatch");
    }

    #[test]
    fn warnings_are_cut_to_what_arrives() {
        let long = "é".repeat(400);
        let said = fitting(vec!["two\nlines".to_owned(), " \t".to_owned(), long]);
        assert_eq!(said[0], "two lines");
        assert_eq!(said.len(), 2, "an empty warning is none");
        assert!(said[1].len() <= WARNING_LIMIT && said[1].ends_with("é..."), "{}", said[1]);
        let many = fitting(vec!["w".repeat(200); 100]);
        assert_eq!(many.len(), WARNINGS_LIMIT / 200);
    }
}
