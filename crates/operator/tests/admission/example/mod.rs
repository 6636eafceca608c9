//! Declarations at the edge of each rule: the last that works, and the first that does not.
//!
//! One table for everybody who checks declarations: the API server's own rules, the operator, an admission webhook.

#![allow(dead_code, reason = "every test binary uses another part")]

mod autoscaling;
mod availability;
mod beyond;
mod security;
mod server;
mod workload;

use serde_json::{Value, json};

/// A declaration and what is to become of it.
#[derive(Debug, Clone)]
pub struct Example {
    /// The rule's number in the contract; none for rules beyond it.
    pub rule: Option<u8>,
    /// The cache's name.
    pub name: String,
    /// What the declaration was before, if this is a change of one.
    pub old: Option<Value>,
    pub spec: Value,
    /// Why it is refused; none if it is accepted.
    pub refusal: Option<Refusal>,
}

/// A refusal: the field that it names, and words that it has.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub field: &'static str,
    pub words: &'static str,
    pub by: By,
}

/// Who refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// Whoever looks at the declaration: the API server in CEL, and the operator in the same words.
    Everybody,
    /// The API server by its schema, and the operator in other words.
    Schema,
    /// The operator alone: CEL cannot say it, or it is a matter of this version.
    Operator,
    /// Whoever sees what the declaration was before; the reconciler does not.
    Admission,
}

impl Example {
    /// The object, in one of the kind's versions.
    pub fn object(&self, version: &str) -> Value {
        object(version, &self.name, &self.spec)
    }

    /// The object as it was before, if it was there.
    pub fn old_object(&self, version: &str) -> Option<Value> {
        self.old.as_ref().map(|old| object(version, &self.name, old))
    }

    /// Whether an answer names the field and has the words, where it should.
    pub fn is_told_by(&self, answer: &str) -> bool {
        self.refusal.as_ref().is_none_or(|refusal| names(answer, refusal.field) && answer.contains(refusal.words))
    }
}

/// Whether a text names a field. The API server writes keys of maps in brackets: `limits[memory]`.
pub fn names(text: &str, field: &str) -> bool {
    let bracketed = field.rsplit_once('.').map(|(map, key)| format!("{map}[{key}]"));
    text.contains(field) || bracketed.is_some_and(|field| text.contains(&field))
}

fn object(version: &str, name: &str, spec: &Value) -> Value {
    json!({
        "apiVersion": format!("memcached.c5c3.io/{version}"), "kind": "Memcached",
        "metadata": {"name": name}, "spec": spec,
    })
}

fn accepted(rule: u8, spec: Value) -> Example {
    Example { rule: Some(rule), name: "sessions".into(), old: None, spec, refusal: None }
}

fn refused(rule: u8, spec: Value, field: &'static str, words: &'static str) -> Example {
    Example { refusal: Some(Refusal { field, words, by: By::Everybody }), ..accepted(rule, spec) }
}

impl Example {
    fn beyond(self) -> Self {
        Self { rule: None, ..self }
    }

    fn by(self, by: By) -> Self {
        let refusal = self.refusal.map(|refusal| Refusal { by, ..refusal });
        Self { refusal, ..self }
    }

    fn named(self, name: impl Into<String>) -> Self {
        Self { name: name.into(), ..self }
    }

    fn from(self, old: Value) -> Self {
        Self { old: Some(old), ..self }
    }
}

/// Every example.
pub fn all() -> Vec<Example> {
    let mut all = server::examples();
    all.extend(availability::examples());
    all.extend(security::examples());
    all.extend(autoscaling::examples());
    all.extend(workload::examples());
    all.extend(beyond::examples());
    all
}
