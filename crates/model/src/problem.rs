//! What stands in the way of a desired state, and what to do about it.

use std::fmt;

/// What an error asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// It may pass by itself: try again, ever more slowly.
    Retry,
    /// Something is missing that others bring: check again now and then.
    Wait,
    /// We are wrong: keep quiet, but do not give up.
    Bug,
    /// The spec has to change: a watch will tell, a slow check is for what no watch tells.
    Invalid,
}

/// Something that is not as desired, for the status, an Event and a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// Why, out of a closed set.
    pub reason: &'static str,
    /// What is wrong and what to do, for people.
    pub message: String,
    /// What it asks for; none if a watch will tell when it is over.
    pub class: Option<Class>,
    /// It passes by itself as a rule (a conflict, an overloaded API server): worth telling only once it has come
    /// back several times.
    pub is_transient: bool,
}

impl Problem {
    /// A problem that is told at once.
    pub fn new(reason: &'static str, message: impl Into<String>, class: impl Into<Option<Class>>) -> Self {
        Self { reason, message: message.into(), class: class.into(), is_transient: false }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// What several problems ask for together: the most hopeful decides when to try again.
pub fn class_of<'a>(problems: impl IntoIterator<Item = &'a Problem>) -> Option<Class> {
    problems.into_iter().filter_map(|problem| problem.class).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_hopeful_class_decides() {
        let problem = |class| Problem::new("Reason", "words", class);
        assert_eq!(
            class_of(&[problem(Class::Invalid), problem(Class::Retry), problem(Class::Wait)]),
            Some(Class::Retry)
        );
        assert_eq!(class_of(&[Problem::new("SecretNotFound", "its watch tells", None)]), None);
    }
}
