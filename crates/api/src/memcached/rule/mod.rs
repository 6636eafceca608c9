//! The rules of a declaration, one entry each: what must hold (in CEL, for the API server), which field breaks it,
//! and what to tell people. The operator's own checks tell the same in the same words.

pub mod argument;
mod availability;
mod scale;
mod security;
mod server;
mod service;
mod workload;

use serde_json::{Value, json};

pub use availability::*;
pub use scale::*;
pub use security::*;
pub use server::*;
pub use service::*;
pub use workload::*;

/// A rule: what must hold, and what is said where it does not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The part of the object that is looked at: `spec.memcached`, or nothing for all of it.
    pub at: &'static str,
    /// The field that is wrong, below that part: `.maxConnections`, or nothing for the part itself.
    pub field: &'static str,
    /// What must hold, in CEL, with that part as `self`.
    pub holds: &'static str,
    /// What is wrong and what to do; `%d` stands for a number.
    pub message: &'static str,
    /// These numbers in CEL, in their order.
    pub numbers: &'static [&'static str],
    /// What kind of mistake it is.
    pub reason: Reason,
}

/// What kind of mistake breaks a rule, in the API server's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The value cannot work.
    Invalid,
    /// A value is missing.
    Required,
    /// The value must not be there.
    Forbidden,
}

impl Reason {
    const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
        }
    }
}

/// Every rule that the API server checks.
pub const ALL: &[&Rule] = &[
    &NAME,
    &IMAGE_AND_VERSION,
    &MEMORY_LIMIT,
    &CONNECTIONS,
    &ITEM_SIZE,
    &ITEM_IN_MEMORY,
    &ITEM_AT_MOST,
    &ITEM_ON_DISK,
    &ARGUMENTS,
    &ARGUMENT_LINES,
    &DISK,
    &BUDGET_OF_BOTH,
    &BUDGET_OF_NEITHER,
    &BUDGET_LEAVES_NONE,
    &BUDGET_LEAVES_NO_PART,
    &BUDGET_MINIMUM,
    &BUDGET_MAXIMUM,
    &GRACE,
    &SCRAPE_TIMEOUT,
    &PASSWORD_SECRET,
    &CERTIFICATE_SECRET,
    &CERTIFICATE_OR_ISSUER,
    &WAY_AROUND_CERTIFICATES,
    &REPLICAS_OR_AUTOSCALING,
    &MAX_REPLICAS,
    &MIN_ABOVE_MAX,
    &CPU_REQUEST,
    &CPU_REQUEST_OF_EXPORTER,
    &WARM_MEMORY,
    &CLIENT_WITHOUT_TYPE,
    &SOURCE_RANGES,
    &LOAD_BALANCER_CLASS,
    &EXTERNAL_TRAFFIC,
    &CLASS_STAYS,
    &WORKLOAD_TYPE,
    &DEADLINE,
    &WARM_AND_DISK,
    &WARM_DEPLOYMENT,
];

impl Rule {
    /// A rule that the value of a field breaks.
    const fn invalid(at: &'static str, field: &'static str, holds: &'static str, message: &'static str) -> Self {
        Self { at, field, holds, message, numbers: &[], reason: Reason::Invalid }
    }

    const fn required(self) -> Self {
        Self { reason: Reason::Required, ..self }
    }

    const fn forbidden(self) -> Self {
        Self { reason: Reason::Forbidden, ..self }
    }

    const fn with(self, numbers: &'static [&'static str]) -> Self {
        Self { numbers, ..self }
    }

    /// The field that is wrong, as people write it: `spec.memcached.maxConnections`.
    pub fn path(&self) -> String {
        format!("{}{}", self.at, self.field).trim_start_matches('.').to_owned()
    }

    /// What is wrong, with its numbers filled in.
    pub fn says(&self, numbers: &[i64]) -> String {
        let mut words = self.message.split("%d");
        let first = words.next().unwrap_or_default().to_owned();
        let mut numbers = numbers.iter();
        words.fold(first, |text, rest| {
            let number = numbers.next().map(ToString::to_string).unwrap_or_default();
            text + &number + rest
        })
    }

    /// The rule as a CustomResourceDefinition has it.
    pub fn validation(&self) -> Value {
        let pattern = argument::refused().replace('\n', "\\n").replace('\t', "\\t");
        let mut validation = json!({
            "rule": self.holds.replace(argument::PLACEHOLDER, &pattern),
            "reason": self.reason.name(),
        });
        // The API server knows no field of metadata: there the message has to name it.
        let message =
            if self.at.is_empty() { format!("{}: {}", self.path(), self.message) } else { self.message.into() };
        let expression = format!("'{}'.format([{}])", message.replace('\'', "\\'"), self.numbers.join(", "));
        if let Value::Object(map) = &mut validation {
            match self.numbers {
                [] => map.insert("message".into(), json!(message)),
                _ => map.insert("messageExpression".into(), json!(expression)),
            };
            if !self.at.is_empty() && !self.field.is_empty() {
                map.insert("fieldPath".into(), json!(self.field));
            }
            // A rule that asks whether there was an object before is also asked when there was none.
            if self.holds.contains("oldSelf.hasValue()") {
                map.insert("optionalOldSelf".into(), json!(true));
            }
        }
        validation
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_filled_in_where_they_belong() {
        assert_eq!(GRACE.says(&[10, 30]).matches("%d").count(), 0);
        for rule in ALL {
            assert_eq!(rule.message.matches("%d").count(), rule.numbers.len(), "{}", rule.message);
        }
    }

    #[test]
    fn every_message_is_a_sentence_without_a_path_of_its_own() {
        for rule in ALL {
            assert!(!rule.message.is_empty() && !rule.message.ends_with('.'), "{}", rule.message);
            assert!(rule.path().starts_with("spec") || rule.path() == "metadata.name", "{}", rule.path());
        }
    }
}
