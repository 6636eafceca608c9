//! Disruption budgets and shutdown times.

use super::Rule;

const BUDGET: &str = "spec.highAvailability.podDisruptionBudget";

/// A budget has one number.
pub const BUDGET_OF_BOTH: Rule = Rule::invalid(
    BUDGET,
    ".maxUnavailable",
    "!self.enabled || !has(self.minAvailable) || !has(self.maxUnavailable)",
    "not together with minAvailable: give one of the two",
)
.forbidden();

/// A budget has a number.
pub const BUDGET_OF_NEITHER: Rule = Rule::invalid(
    BUDGET,
    "",
    "!self.enabled || has(self.minAvailable) || has(self.maxUnavailable)",
    "give one of minAvailable and maxUnavailable",
)
.required();

/// What `minAvailable` is compared with: the fewest servers there may be. None are not disrupted either.
const FEWEST: &str = "(has(self.autoscaling) && self.autoscaling.enabled \
     ? (has(self.autoscaling.minReplicas) ? self.autoscaling.minReplicas : 1) \
     : (has(self.replicas) ? self.replicas : 1))";

/// A budget leaves something to disrupt.
pub const BUDGET_LEAVES_NONE: Rule = Rule::invalid(
    "spec",
    ".highAvailability.podDisruptionBudget.minAvailable",
    "!has(self.highAvailability) || !has(self.highAvailability.podDisruptionBudget) \
     || !self.highAvailability.podDisruptionBudget.enabled \
     || !has(self.highAvailability.podDisruptionBudget.minAvailable) \
     || has(self.highAvailability.podDisruptionBudget.maxUnavailable) \
     || !string(self.highAvailability.podDisruptionBudget.minAvailable).matches('^[0-9]{1,9}$') \
     || ((has(self.autoscaling) && self.autoscaling.enabled) \
         ? int(string(self.highAvailability.podDisruptionBudget.minAvailable)) \
           < (has(self.autoscaling.minReplicas) ? self.autoscaling.minReplicas : 1) \
         : (has(self.replicas) && self.replicas == 0) \
           || int(string(self.highAvailability.podDisruptionBudget.minAvailable)) \
              < (has(self.replicas) ? self.replicas : 1))",
    "leaves none of %d servers to disrupt, so that no node could be drained: give less, or more servers",
)
.with(&[FEWEST]);

/// Nor is all of them a budget.
pub const BUDGET_LEAVES_NO_PART: Rule = Rule::invalid(
    BUDGET,
    ".minAvailable",
    "!self.enabled || !has(self.minAvailable) || string(self.minAvailable) != '100%'",
    "100% leaves no server to disrupt, so that no node could be drained: give less, or use maxUnavailable",
);

/// What a number of a budget may be. The schema sees to it that a text is a percentage: here `"2"` looks like 2.
pub const BUDGET_NUMBER: &str = "neither a number from 0 on nor a percentage from 0% to 100%";

/// The least that must stay is a number or a percentage.
pub const BUDGET_MINIMUM: Rule = Rule::invalid(
    BUDGET,
    ".minAvailable",
    "!has(self.minAvailable) || string(self.minAvailable).matches('^([0-9]+|(100|[0-9]{1,2})%)$')",
    BUDGET_NUMBER,
);

/// The most that may be gone is a number or a percentage.
pub const BUDGET_MAXIMUM: Rule = Rule::invalid(
    BUDGET,
    ".maxUnavailable",
    "!has(self.maxUnavailable) || string(self.maxUnavailable).matches('^([0-9]+|(100|[0-9]{1,2})%)$')",
    BUDGET_NUMBER,
);

/// A pod lives longer than it waits.
pub const GRACE: Rule = Rule::invalid(
    "spec.highAvailability.gracefulShutdown",
    ".terminationGracePeriodSeconds",
    "!self.enabled || self.terminationGracePeriodSeconds > self.preStopDelaySeconds",
    "%d is not more than preStopDelaySeconds %d: the server would be killed while it waits",
)
.with(&["self.terminationGracePeriodSeconds", "self.preStopDelaySeconds"]);
