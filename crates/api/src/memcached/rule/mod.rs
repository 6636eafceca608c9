//! The rules of a declaration, one entry each: what must hold (in CEL, for the API server), which field breaks it,
//! and what to tell people. The operator's own checks tell the same in the same words.

mod autoscaling;
mod availability;
mod monitoring;
mod security;
pub mod server;
mod service;
mod workload;

pub use operator_model::rule::{FieldErrorReason, Rule};

pub use autoscaling::*;
pub use availability::*;
pub use monitoring::*;
pub use security::*;
pub use server::*;
pub use service::*;
pub use workload::*;

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
