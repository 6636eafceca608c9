//! Names, images, and what runs the pods.

use serde_json::json;

use super::{By, Example, accepted, refused};

pub fn examples() -> Vec<Example> {
    let name = "metadata.name";
    let type_ = "spec.workload.type";
    let with = |type_: &str| json!({"workload": {"type": type_}});
    let stays = "cannot be changed";
    vec![
        accepted(13, json!({})).named("a".repeat(63)),
        accepted(13, json!({"service": {"type": "ClusterIP"}})).named("b".repeat(56)),
        refused(13, json!({}), name, "up to 63").named("a".repeat(64)),
        refused(13, json!({"service": {"type": "ClusterIP"}}), name, "up to 56").named("b".repeat(57)),
        refused(13, with("StatefulSet"), name, "up to 52").named("c".repeat(53)),
        refused(13, json!({}), name, "cannot be the name of a Service").named("2nd"),
        refused(13, json!({}), name, "cannot be the name of a Service").named("a.b"),
        accepted(14, json!({"version": "1.6.45"})),
        accepted(14, json!({"version": "1.6.45", "image": "memcached:1.6"})),
        refused(
            14,
            json!({"version": "1.6.45", "image": "example.org/cache:1"}),
            "spec.version",
            "give one of version and image",
        ),
        accepted(15, with("Deployment")).from(with("Deployment")),
        accepted(15, with("Deployment")).from(json!({})),
        refused(15, with("StatefulSet"), type_, stays).from(with("Deployment")).by(By::Admission),
        refused(15, with("StatefulSet"), type_, stays).from(json!({})).by(By::Admission),
        refused(15, with("Deployment"), type_, stays).from(with("StatefulSet")).by(By::Admission),
        accepted(15, json!({})).from(with("Deployment")),
        accepted(15, with("StatefulSet")),
    ]
}
