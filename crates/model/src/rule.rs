//! Rules of a custom resource, one entry each: what must hold (in CEL, for the API server), which field breaks it, and
//! what to tell people. An operator's own checks tell the same in the same words.

use serde_json::{Value, json};

/// A rule: what must hold, and what is said where it does not.
#[must_use]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// The part of the object that is looked at: `spec.service`, or nothing for all of it.
    pub at: &'static str,
    /// The field that is wrong, below that part: `.type`, or nothing for the part itself.
    pub field: &'static str,
    /// What must hold, in CEL, with that part as `self`.
    pub holds: &'static str,
    /// What is wrong and what to do; `%d` stands for a number.
    pub message: &'static str,
    /// These numbers in CEL, in their order.
    pub numbers: &'static [&'static str],
    /// What kind of mistake it is.
    pub reason: FieldErrorReason,
}

/// What kind of mistake breaks a rule, in the API server's words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldErrorReason {
    /// The value cannot work.
    Invalid,
    /// A value is missing.
    Required,
    /// The value must not be there.
    Forbidden,
}

impl FieldErrorReason {
    const fn name(self) -> &'static str {
        match self {
            Self::Invalid => "FieldValueInvalid",
            Self::Required => "FieldValueRequired",
            Self::Forbidden => "FieldValueForbidden",
        }
    }
}

impl Rule {
    /// A rule that the value of a field breaks.
    pub const fn invalid(at: &'static str, field: &'static str, holds: &'static str, message: &'static str) -> Self {
        Self { at, field, holds, message, numbers: &[], reason: FieldErrorReason::Invalid }
    }

    /// The same, broken by a value that is missing.
    pub const fn required(self) -> Self {
        Self { reason: FieldErrorReason::Required, ..self }
    }

    /// The same, broken by a value that must not be there.
    pub const fn forbidden(self) -> Self {
        Self { reason: FieldErrorReason::Forbidden, ..self }
    }

    /// The same, with the numbers of its message, each in CEL.
    pub const fn with(self, numbers: &'static [&'static str]) -> Self {
        Self { numbers, ..self }
    }

    /// The field that is wrong, as people write it: `spec.service.type`.
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

    /// The rule as an entry of `x-kubernetes-validations`.
    ///
    /// `placeholders` are texts in the CEL with what is put in their place: a computed pattern cannot be part of a
    /// constant.
    pub fn validation(&self, placeholders: &[(&str, &str)]) -> Value {
        let holds = placeholders
            .iter()
            .fold(self.holds.to_owned(), |holds, (placeholder, text)| holds.replace(placeholder, text));
        let mut validation = json!({"rule": holds, "reason": self.reason.name()});
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

    const WAIT: Rule =
        Rule::invalid("spec.stop", ".grace", "self.grace > self.wait", "%d isn't more than %d: it would be killed")
            .with(&["self.grace", "self.wait"]);

    #[test]
    fn numbers_are_filled_in_by_us_and_by_the_api_server() {
        assert_eq!(WAIT.says(&[10, 30]), "10 isn't more than 30: it would be killed");
        let expected = json!({
            "rule": "self.grace > self.wait",
            "reason": "FieldValueInvalid",
            "fieldPath": ".grace",
            "messageExpression": "'%d isn\\'t more than %d: it would be killed'.format([self.grace, self.wait])",
        });
        assert_eq!(WAIT.validation(&[]), expected);
    }

    #[test]
    fn a_rule_of_the_whole_object_names_its_field_in_the_message() {
        let name = Rule::invalid("", ".metadata.name", "self.metadata.name.matches('{name}')", "give another");
        let validation = name.required().validation(&[("{name}", "^[a-z]+$")]);
        assert_eq!(name.path(), "metadata.name");
        let expected = json!({
            "rule": "self.metadata.name.matches('^[a-z]+$')",
            "reason": "FieldValueRequired",
            "message": "metadata.name: give another",
        });
        assert_eq!(validation, expected);
    }

    #[test]
    fn a_rule_about_what_was_before_is_asked_on_creation_too() {
        let rule = Rule::invalid("spec", "", "!oldSelf.hasValue() || self == oldSelf.value()", "stays").forbidden();
        let validation = rule.validation(&[]);
        assert_eq!(validation["optionalOldSelf"], true);
        assert_eq!(validation["reason"], "FieldValueForbidden");
        assert!(validation.get("fieldPath").is_none());
    }
}
