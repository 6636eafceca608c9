//! Budgets and shutdown times.

use serde_json::{Value, json};

use super::autoscaling::autoscaled;
use super::{By, Example, accepted, refused};

fn budget(replicas: Option<i32>, mut budget: Value) -> Value {
    budget["enabled"] = json!(true);
    let mut spec = json!({"highAvailability": {"podDisruptionBudget": budget}});
    if let Some(replicas) = replicas {
        spec["replicas"] = json!(replicas);
    }
    spec
}

fn shutdown(delay: i32, grace: i32) -> Value {
    json!({"highAvailability": {"gracefulShutdown": {
        "enabled": true, "preStopDelaySeconds": delay, "terminationGracePeriodSeconds": grace,
    }}})
}

pub fn examples() -> Vec<Example> {
    let path = "spec.highAvailability.podDisruptionBudget";
    let min = "spec.highAvailability.podDisruptionBudget.minAvailable";
    let max = "spec.highAvailability.podDisruptionBudget.maxUnavailable";
    let grace = "spec.highAvailability.gracefulShutdown.terminationGracePeriodSeconds";
    vec![
        accepted(2, budget(Some(3), json!({"minAvailable": 1}))),
        accepted(2, budget(Some(3), json!({"maxUnavailable": "50%"}))),
        refused(2, budget(Some(3), json!({"minAvailable": 1, "maxUnavailable": 1})), max, "give one of the two"),
        refused(3, budget(Some(3), json!({})), path, "give one of minAvailable and maxUnavailable"),
        accepted(3, json!({"highAvailability": {"podDisruptionBudget": {"enabled": false}}})),
        accepted(4, budget(Some(3), json!({"minAvailable": 2}))),
        accepted(4, budget(Some(3), json!({"minAvailable": "99%"}))),
        accepted(4, budget(Some(0), json!({"minAvailable": 1}))),
        refused(4, budget(Some(3), json!({"minAvailable": 3})), min, "none of 3 servers"),
        refused(4, budget(None, json!({"minAvailable": 1})), min, "none of 1 servers"),
        refused(4, budget(Some(3), json!({"minAvailable": "100%"})), min, "100% leaves no server"),
        refused(4, budget(Some(3), json!({"minAvailable": -1})), min, "neither a number"),
        refused(4, budget(Some(3), json!({"minAvailable": "2"})), min, "").by(By::Schema),
        refused(4, budget(Some(3), json!({"maxUnavailable": "101%"})), max, "neither a number").by(By::Schema),
        refused(
            4,
            autoscaled(json!({"minReplicas": 2, "maxReplicas": 4}), &budget(None, json!({"minAvailable": 2}))),
            min,
            "none of 2 servers",
        ),
        accepted(4, autoscaled(json!({"minReplicas": 2, "maxReplicas": 4}), &budget(None, json!({"minAvailable": 1})))),
        accepted(5, shutdown(10, 11)),
        refused(5, shutdown(10, 10), grace, "10 is not more than preStopDelaySeconds 10"),
        refused(
            5,
            json!({"highAvailability": {"gracefulShutdown": {"enabled": true, "preStopDelaySeconds": 30}}}),
            grace,
            "30 is not more",
        ),
    ]
}
