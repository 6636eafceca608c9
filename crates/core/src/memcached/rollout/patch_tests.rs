use memcached_api::memcached::spec::{MemcachedSpec, Server};

use super::*;
use crate::memcached::fixture::template;

fn pod(template: &PodTemplateSpec) -> Pod {
    let mut pod: Pod = serde_json::from_value(json!({
        "metadata": {"name": "sessions-0", "uid": "7", "resourceVersion": "9", "labels": {REVISION: "old"}},
        "status": {"containerStatuses": [
            {"name": "memcached", "image": "", "imageID": "", "ready": true, "restartCount": 4},
        ]},
    }))
    .unwrap();
    pod.spec = template.spec.clone();
    pod
}

fn patched(pod: &Pod, from: &PodTemplateSpec, to: &PodTemplateSpec) -> Value {
    change(pod, &Target { from, revision: "new", to, image: None }, None, Timestamp::UNIX_EPOCH)
}

fn note(patch: &Value) -> ChangeNote {
    let text = patch["metadata"]["annotations"][label::CHANGE].as_str().unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn another_version_is_another_image_and_label_in_one_patch() {
    let (from, to) = (template(|_| {}), template(|spec| spec.version = Some("1.6.45".into())));
    let patch = patched(&pod(&from), &from, &to);
    assert_eq!(patch["spec"]["containers"], json!([{"name": "memcached", "image": "memcached:1.6.45"}]));
    assert_eq!(patch["metadata"]["labels"], json!({label::VERSION: "1.6.45"}), "not yet the revision");
    assert_eq!((&patch["metadata"]["uid"], &patch["metadata"]["resourceVersion"]), (&json!("7"), &json!("9")));
    assert!(patch["metadata"]["annotations"][label::ARGS].is_null(), "the container has them");
    assert_eq!(
        note(&patch),
        ChangeNote {
            to: "new".into(),
            since: Timestamp::UNIX_EPOCH.to_string(),
            restarts: 4,
            previous: Some("memcached:1.6.38".into()),
            restart: None,
        }
    );
}

#[test]
fn other_flags_are_an_order_to_the_agent() {
    let threads = |spec: &mut MemcachedSpec| spec.memcached = Some(Server { threads: 8, ..Server::default() });
    let (from, to) = (template(|_| {}), template(threads));
    let patch = patched(&pod(&from), &from, &to);
    assert!(patch.get("spec").is_none());
    let args: Vec<String> =
        serde_json::from_str(patch["metadata"]["annotations"][label::ARGS].as_str().unwrap()).unwrap();
    assert!(args.join(" ").ends_with("-m 64 -c 1024 -t 8 -I 1m"), "{args:?}");
    assert_eq!(note(&patch).previous, None, "the same image");
    // And back: what the container says is in force again.
    let back = patched(&pod(&from), &to, &from);
    assert_eq!(back["metadata"]["annotations"][label::ARGS], Value::Null);
}

#[test]
fn labels_are_taken_at_once_and_need_no_confirmation() {
    let labelled = |spec: &mut MemcachedSpec| spec.pod_labels = [("team".to_owned(), "a".to_owned())].into();
    let (from, to) = (
        template(labelled),
        template(|spec| {
            spec.pod_labels = [("owner".to_owned(), "b".to_owned())].into();
        }),
    );
    let patch = patched(&pod(&from), &from, &to);
    assert_eq!(patch["metadata"]["labels"], json!({"team": null, "owner": "b", REVISION: "new"}));
    assert!(patch["metadata"]["annotations"].get(label::CHANGE).is_none());
}

#[test]
fn a_restart_is_ordered_once_for_every_time_it_is_asked_for() {
    let (from, mut to) = (template(|_| {}), template(|_| {}));
    let annotations = to.metadata.as_mut().unwrap().annotations.get_or_insert_default();
    annotations.insert("kubectl.kubernetes.io/restartedAt".into(), "now".into());
    let patch = patched(&pod(&from), &from, &to);
    let restart = patch["metadata"]["annotations"][label::RESTART].as_str().unwrap();
    assert!(restart.starts_with("new@"), "{restart}");
    assert_eq!(note(&patch).restart.as_deref(), Some(restart));
}

#[test]
fn a_confirmed_change_counts_as_updated() {
    let patch = confirm(&pod(&template(|_| {})), "new", Timestamp::UNIX_EPOCH);
    assert_eq!(patch["metadata"]["labels"], json!({REVISION: "new"}));
    assert_eq!(patch["metadata"]["annotations"][label::CHANGE], Value::Null);
}

#[test]
fn an_image_goes_by_the_name_that_the_cluster_gave_it() {
    let (from, to) = (template(|_| {}), template(|spec| spec.version = Some("1.6.45".into())));
    let target = Target { from: &from, revision: "new", to: &to, image: Some("mirror.example.org/memcached:1.6.45") };
    let patch = change(&pod(&from), &target, None, Timestamp::UNIX_EPOCH);
    assert_eq!(patch["spec"]["containers"][0]["image"], "mirror.example.org/memcached:1.6.45");
}
