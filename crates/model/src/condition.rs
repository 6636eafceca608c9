//! Conditions: a changed status changes the time, anything else keeps it.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

/// What a condition says, before it is known since when.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Assessment {
    /// The type of the condition.
    pub type_: &'static str,
    /// Whether it is true.
    pub status: bool,
    /// Why, out of a closed set.
    pub reason: &'static str,
    /// Why, for people.
    pub message: String,
}

impl Assessment {
    /// The condition, since when it was `old` if its status is the same.
    pub fn into_condition(self, old: &[Condition], generation: i64, now: Timestamp) -> Condition {
        let status = if self.status { "True" } else { "False" };
        let before = old.iter().find(|condition| condition.type_ == self.type_ && condition.status == status);
        Condition {
            type_: self.type_.into(),
            status: status.into(),
            reason: self.reason.into(),
            message: self.message,
            observed_generation: Some(generation),
            last_transition_time: before.map_or(Time(now), |before| before.last_transition_time.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_changes_with_the_status_alone() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let ready = |status, message: &str| Assessment { type_: "Ready", status, reason: "R", message: message.into() };
        let old = [ready(true, "one").into_condition(&[], 1, at(1))];
        assert_eq!(ready(true, "two").into_condition(&old, 2, at(2)).last_transition_time, Time(at(1)));
        assert_eq!(ready(false, "two").into_condition(&old, 2, at(2)).last_transition_time, Time(at(2)));
    }
}
