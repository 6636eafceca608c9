use memcached_api::memcached::spec::{MemcachedSpec, Server, WarmRestart};

use super::*;
use crate::memcached::fixture::template;

fn effect(change: impl FnOnce(&mut MemcachedSpec)) -> Effect {
    compare(&template(|_| {}), &template(change)).effect
}

fn server(change: impl FnOnce(&mut Server)) -> Effect {
    effect(|spec| {
        let mut server = Server::default();
        change(&mut server);
        spec.memcached = Some(server);
    })
}

#[test]
fn a_version_and_most_flags_are_taken_warm() {
    assert_eq!(effect(|_| {}), Effect::None);
    assert_eq!(effect(|spec| spec.version = Some("1.6.45".into())), Effect::Warm);
    assert_eq!(server(|server| server.threads = 8), Effect::Warm);
    assert_eq!(server(|server| server.extra_args = vec!["-R".into(), "50".into()]), Effect::Warm);
}

#[test]
fn labels_and_annotations_are_taken_live() {
    assert_eq!(effect(|spec| spec.pod_labels = [("team".into(), "a".into())].into()), Effect::Live);
    assert_eq!(effect(|spec| spec.pod_annotations = [("note".into(), "a".into())].into()), Effect::Live);
}

#[test]
fn another_item_size_starts_empty_in_place() {
    assert_eq!(server(|server| server.max_item_size = "2m".into()), Effect::Cold(vec!["-I".into()]));
}

#[test]
fn more_memory_takes_another_pod() {
    let Effect::Recreate(fields) = server(|server| server.max_memory_mb = 128) else { panic!("recreated") };
    assert!(fields.iter().any(|field| field.contains("sizeLimit")), "{fields:?}");
}

#[test]
fn without_a_memory_file_every_restart_is_cold() {
    let off = |spec: &mut MemcachedSpec| spec.warm_restart = Some(WarmRestart { enabled: false });
    let newer = template(|spec| {
        off(spec);
        spec.version = Some("1.6.45".into());
    });
    assert!(matches!(compare(&template(off), &newer).effect, Effect::Cold(_)));
    assert!(matches!(effect(off), Effect::Recreate(_)), "its volume goes");
}

#[test]
fn another_agent_waits_for_the_next_pod() {
    let mut newer = template(|_| {});
    newer.spec.as_mut().unwrap().init_containers.as_mut().unwrap()[0].image = Some("agent:2".into());
    assert_eq!(compare(&template(|_| {}), &newer).effect, Effect::Live);
}

#[test]
fn a_restart_that_kubectl_asks_for_is_warm() {
    let mut restarted = template(|_| {});
    let annotations = restarted.metadata.as_mut().unwrap().annotations.get_or_insert_default();
    annotations.insert(RESTARTED_AT.into(), "now".into());
    let difference = compare(&template(|_| {}), &restarted);
    assert!(difference.is_restart && difference.effect == Effect::Warm);
}

#[test]
fn arguments_are_all_that_follows_the_name() {
    let words = server_arguments(&template(|_| {}));
    assert_eq!(words.join(" "), "-e /var/lib/memcached/memory/cache -m 64 -c 1024 -t 4 -I 1m");
}
