//! What is wrong with an object, collected field by field.

use std::fmt::{self, Display};

use crate::rule::{FieldErrorReason, Rule};

/// A rule that an object breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The field, as a path: `spec.env[0].name`.
    pub field: String,
    /// What is wrong and what to do.
    pub message: String,
    /// What kind of mistake it is.
    pub reason: FieldErrorReason,
}

impl Violation {
    /// A field with a value that cannot work.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into(), reason: FieldErrorReason::Invalid }
    }

    /// A rule that the API server knows as well, in its words.
    pub fn of(rule: &Rule, numbers: &[i64]) -> Self {
        Self { reason: rule.reason, ..Self::new(rule.path(), rule.says(numbers)) }
    }
}

impl Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A field, and the list that its violations go to: apimachinery's `field.Path` and `field.ErrorList` in one.
pub struct FieldErrors<'a> {
    path: String,
    all: &'a mut Vec<Violation>,
}

impl<'a> FieldErrors<'a> {
    /// Of a field, by its path from the top of the object.
    pub fn at(path: &str, all: &'a mut Vec<Violation>) -> Self {
        Self { path: path.to_owned(), all }
    }

    /// Of a field below this one, or several steps below: `resourceFieldRef.divisor`.
    pub fn field(&mut self, name: impl Display) -> FieldErrors<'_> {
        FieldErrors { path: format!("{}.{name}", self.path), all: self.all }
    }

    /// Of an item of this list.
    pub fn index(&mut self, index: usize) -> FieldErrors<'_> {
        FieldErrors { path: format!("{}[{index}]", self.path), all: self.all }
    }

    /// The value cannot work.
    pub fn invalid(&mut self, message: impl Into<String>) {
        self.all.push(Violation::new(self.path.clone(), message));
    }

    /// The value cannot work unless this holds.
    pub fn require(&mut self, is_good: bool, message: impl Into<String>) {
        if !is_good {
            self.invalid(message);
        }
    }

    /// The value has to be one of some, or absent.
    pub fn require_one_of(&mut self, value: Option<&str>, allowed: &[&str]) {
        if let Some(value) = value.filter(|value| !allowed.contains(value)) {
            self.invalid(format!("{value:?} is none of {}", allowed.join(", ")));
        }
    }

    /// The number has to be within bounds, or absent.
    pub fn require_within(&mut self, value: Option<i64>, least: i64, most: i64) {
        if let Some(value) = value.filter(|value| !(least..=most).contains(value)) {
            self.invalid(format!("{value} is not within {least} and {most}"));
        }
    }
}

/// The fields that a check refuses, below a field called `at`.
#[cfg(test)]
pub(crate) fn refused(check: impl FnOnce(&mut FieldErrors<'_>)) -> Vec<String> {
    let mut all = Vec::new();
    check(&mut FieldErrors::at("at", &mut all));
    all.into_iter().map(|violation| violation.field).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn violations_name_their_field() {
        let mut all = Vec::new();
        let mut errors = FieldErrors::at("spec", &mut all);
        errors.field("env").index(1).field("name").invalid("is no name");
        errors.field("mode").require_one_of(Some("Some"), &["All", "None"]);
        errors.field("mode").require_one_of(None, &["All", "None"]);
        errors.field("weight").require_within(Some(101), 1, 100);
        errors.require(true, "never said");
        let said: Vec<String> = all.iter().map(ToString::to_string).collect();
        let expected = [
            "spec.env[1].name: is no name",
            "spec.mode: \"Some\" is none of All, None",
            "spec.weight: 101 is not within 1 and 100",
        ];
        assert_eq!(said, expected);
    }

    #[test]
    fn a_rule_is_told_in_its_own_words() {
        const RULE: Rule = Rule::invalid("spec", ".size", "self.size > 0", "%d is too small").forbidden();
        let violation = Violation::of(&RULE, &[0]);
        assert_eq!(violation.to_string(), "spec.size: 0 is too small");
        assert_eq!(violation.reason, FieldErrorReason::Forbidden);
    }
}
