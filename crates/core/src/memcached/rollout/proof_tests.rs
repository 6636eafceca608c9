use memcached_api::memcached::spec::{Workload, WorkloadType};
use serde_json::{Value, json};

use super::*;
use crate::memcached::build::pod::build_template;
use crate::memcached::fixture::{validated, with_sasl, with_tls};

fn proof() -> Pod {
    let cache = validated(|spec| {
        spec.workload = Some(Workload { type_: Some(WorkloadType::StatefulSet), rollout: None });
        with_sasl(spec, "creds");
        with_tls(spec, "certs", true);
    });
    build_proof(&cache, "sessions-1", &build_template(&cache, None), "node-1")
}

#[test]
fn it_runs_what_is_declared_once_on_the_node_and_is_no_server() {
    let proof = proof();
    let labels = proof.metadata.labels.unwrap();
    assert_eq!(labels[label::NAME], "memcached-proof");
    assert_eq!(proof.metadata.owner_references.unwrap()[0].controller, Some(true));
    let spec = proof.spec.unwrap();
    assert_eq!((spec.node_name.as_deref(), spec.restart_policy.as_deref()), (Some("node-1"), Some("Never")));
    let server = &spec.containers[0];
    let command = server.command.as_ref().unwrap().join(" ");
    assert_eq!(
        command,
        "/opt/memcached-agent/memcached-agent try --memcached=127.0.0.1:11213 \
         --credentials-file=/etc/memcached/sasl/password-file -- memcached"
    );
    assert!(server.args.as_ref().unwrap().join(" ").contains("-o ssl_verify_mode=2"), "{:?}", server.args);
    assert!(server.readiness_probe.is_none() && server.liveness_probe.is_none());
    let volumes: Vec<String> = spec.volumes.unwrap().into_iter().map(|volume| volume.name).collect();
    assert!(volumes.contains(&"tls-certificates".to_owned()), "{volumes:?}");
}

#[test]
fn every_revision_and_node_has_a_proof_of_its_own() {
    let name = proof_name("sessions", "a", "b");
    assert!(name.starts_with("sessions-proof-"));
    assert!(name != proof_name("sessions", "a", "c") && name != proof_name("sessions", "b", "b"));
}

fn with_status(status: Value) -> Proof {
    let mut pod = proof();
    pod.status = Some(serde_json::from_value(status).unwrap());
    verdict(Some(&pod))
}

#[test]
fn it_says_how_it_went() {
    assert_eq!(verdict(None), Proof::Missing);
    assert_eq!(with_status(json!({"phase": "Pending"})), Proof::UnderWay);
    assert_eq!(with_status(json!({"phase": "Succeeded"})), Proof::Good);
    let container = |state: Value| {
        json!([{
            "name": "memcached", "image": "x", "imageID": "", "ready": false, "restartCount": 0, "state": state,
        }])
    };
    let ended = container(json!({"terminated": {"exitCode": 1, "message": "starting\nerror: no such option\n"}}));
    let Proof::Bad(why) = with_status(json!({"phase": "Failed", "containerStatuses": ended})) else { panic!("bad") };
    assert!(why.ends_with("node \"node-1\": error: no such option"), "{why}");
    let pulling = container(json!({"waiting": {"reason": "ErrImagePull", "message": "not found"}}));
    let Proof::Bad(why) = with_status(json!({"phase": "Pending", "containerStatuses": pulling})) else { panic!("bad") };
    assert!(why.contains("ErrImagePull"), "{why}");
}
