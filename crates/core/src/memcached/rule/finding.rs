//! What a declaration does wrong, collected field by field.

use std::fmt::{self, Display};

use memcached_api::memcached::rule::{Reason, Rule};

/// A rule that a declaration breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field, as a path: `spec.memcached.maxItemSize`.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
    /// What kind of mistake it is.
    pub reason: Reason,
}

impl Violation {
    pub(super) fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), reason: Reason::Invalid }
    }

    /// A rule that the API server knows as well, in its words.
    pub(super) fn of(rule: &Rule, numbers: &[i64]) -> Self {
        Self { reason: rule.reason, ..Self::new(rule.path(), rule.says(numbers)) }
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// Violations as they are found at a field and below it.
pub struct Findings<'a> {
    field: String,
    all: &'a mut Vec<Violation>,
}

impl<'a> Findings<'a> {
    pub fn at(field: &str, all: &'a mut Vec<Violation>) -> Self {
        Self { field: field.to_owned(), all }
    }

    /// A field below this one.
    pub fn below(&mut self, name: impl Display) -> Findings<'_> {
        Findings { field: format!("{}.{name}", self.field), all: self.all }
    }

    /// An item of this list.
    pub fn item(&mut self, index: usize) -> Findings<'_> {
        Findings { field: format!("{}[{index}]", self.field), all: self.all }
    }

    pub fn refuse(&mut self, message: impl Into<String>) {
        self.all.push(Violation::new(self.field.clone(), message));
    }

    pub fn require(&mut self, is_good: bool, message: impl Into<String>) {
        if !is_good {
            self.refuse(message);
        }
    }

    /// A value that has to be one of some, or absent.
    pub fn require_one_of(&mut self, value: Option<&str>, allowed: &[&str]) {
        if let Some(value) = value.filter(|value| !allowed.contains(value)) {
            self.refuse(format!("{value:?} is none of {}", allowed.join(", ")));
        }
    }

    /// A number that has to be within bounds, or absent.
    pub fn require_within(&mut self, value: Option<i64>, least: i64, most: i64) {
        if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
            self.refuse(format!("{value} is not within {least} and {most}"));
        }
    }
}
