use memcached_api::Memcached;
use memcached_api::memcached::spec::{Autoscaling, MemcachedSpec, Monitoring, Server};

use super::*;
use crate::memcached::build::{Child, build_children};
use crate::memcached::fixture::{memcached, validated, with_sasl, with_tls};
use crate::memcached::{Observed, PodDefaults, validate, validate_observed};

fn annotations(template: &PodTemplateSpec) -> std::collections::BTreeMap<String, String> {
    template.metadata.clone().unwrap_or_default().annotations.unwrap_or_default()
}

fn read(revision: &ControllerRevision) -> KeptTemplate<Inputs> {
    KeptTemplate::latest(std::slice::from_ref(revision)).unwrap()
}

/// A revision as an older operator would have left it: one argument is not what today's builder writes.
fn older_revision(cache: &Validated, secrets: Option<&str>) -> ControllerRevision {
    let in_force = decide(cache, secrets, &[], None);
    let mut kept = read(&in_force.new_revision.unwrap());
    let pod = kept.template.spec.as_mut().unwrap();
    pod.containers[0].args.get_or_insert_default().push("--older-default".into());
    build_revision(cache, &kept, &[])
}

fn is_older(template: &PodTemplateSpec) -> bool {
    let args = template.spec.as_ref().unwrap().containers[0].args.clone().unwrap_or_default();
    args.contains(&"--older-default".to_owned())
}

#[test]
fn the_first_template_is_built_and_kept() {
    let in_force = decide(&validated(|_| {}), None, &[], None);
    let revision = in_force.new_revision.unwrap();
    assert_eq!(revision.revision, 1);
    assert_eq!(read(&revision).template, in_force.template);
    assert!(in_force.newer_defaults.is_empty());
}

#[test]
fn other_defaults_of_the_operator_change_nothing_but_are_announced() {
    let cache = validated(|_| {});
    let in_force = decide(&cache, None, &[older_revision(&cache, None)], None);
    assert!(is_older(&in_force.template));
    assert!(!in_force.newer_defaults.is_empty());
    assert_eq!(in_force.new_revision, None);
}

#[test]
fn a_changed_declaration_is_built_with_todays_defaults() {
    let before = validated(|_| {});
    let after = validated(|spec| spec.memcached = Some(Server { threads: 8, ..Server::default() }));
    let in_force = decide(&after, None, &[older_revision(&before, None)], None);
    assert!(!is_older(&in_force.template) && in_force.newer_defaults.is_empty());
    assert_eq!(in_force.new_revision.unwrap().revision, 2);
}

#[test]
fn a_restart_takes_the_newer_defaults() {
    let before = validated(|_| {});
    let mut after = before.clone();
    after.restart_trigger = Some("now".into());
    let in_force = decide(&after, None, &[older_revision(&before, None)], None);
    assert!(!is_older(&in_force.template) && in_force.newer_defaults.is_empty());
    assert_eq!(annotations(&in_force.template)[label::RESTART_TRIGGER], "now");
}

#[test]
fn a_changed_secret_replaces_its_hash_alone() {
    let cache = validated(|spec| with_sasl(spec, "creds"));
    let in_force = decide(&cache, Some("new"), &[older_revision(&cache, Some("old"))], None);
    assert!(is_older(&in_force.template), "the rest of the template is as it was");
    assert_eq!(annotations(&in_force.template)[label::SECRET_HASH], "new");
    assert!(in_force.new_revision.is_some());
}

#[test]
fn a_secret_that_goes_missing_restarts_nothing() {
    let cache = validated(|spec| with_sasl(spec, "creds"));
    let in_force = decide(&cache, None, &[older_revision(&cache, Some("old"))], None);
    assert_eq!(in_force.new_revision, None);
    assert_eq!(annotations(&in_force.template)[label::SECRET_HASH], "old");
}

#[test]
fn what_does_not_shape_pods_changes_no_template() {
    let plain = decide(&validated(|_| {}), None, &[], None).new_revision.unwrap();
    let changes: [fn(&mut MemcachedSpec); 5] = [
        |spec| spec.replicas = Some(5),
        |spec| spec.paused = Some(true),
        |spec| spec.memcached = Some(Server::default()),
        |spec| spec.image = Some("memcached:1.6".into()),
        |spec| spec.autoscaling = Some(Autoscaling::default()),
    ];
    for change in changes {
        let in_force = decide(&validated(change), None, std::slice::from_ref(&plain), None);
        assert_eq!(in_force.new_revision, None);
    }
}

#[test]
fn another_operators_template_is_taken_as_it_stands() {
    let cache = validated(|_| {});
    let template = decide(&cache, None, &[], None).template;
    let mut children = build_children(&cache, &template, Some(1));
    let mut deployed: Deployment = serde_json::from_value(children.remove(&Child::Deployment).unwrap()).unwrap();
    let pod = deployed.spec.as_mut().unwrap().template.spec.as_mut().unwrap();
    pod.security_context = None;
    let in_force = decide(&cache, None, &[], Some(&deployed));
    assert_eq!(in_force.template.spec.as_ref().unwrap().security_context, None);
    assert!(!in_force.newer_defaults.is_empty(), "and the difference is announced");
    assert!(in_force.new_revision.is_some());
}

/// What the other operator runs: TLS on 11211, and no other listener.
fn other_operators(cache: &Validated) -> Deployment {
    let mut template = decide(cache, Some("hash"), &[], None).template;
    let container = &mut template.spec.as_mut().unwrap().containers[0];
    container.command = None;
    let metadata = serde_json::json!({"ownerReferences": [crate::memcached::build::owner(cache)]});
    serde_json::from_value(serde_json::json!({"metadata": metadata, "spec": {"selector": {}, "template": template}}))
        .unwrap()
}

fn listeners(in_force: &InForce) -> String {
    in_force.template.spec.as_ref().unwrap().containers[0].command.clone().unwrap_or_default().join(" ")
}

/// What becomes of a cache in a reconcile: its template in force, and what is observed in the next one.
fn reconcile(cache: &Memcached, observed: &Observed, deployed: Option<&Deployment>) -> (InForce, Observed) {
    let cache = validate_observed(cache, &PodDefaults::default(), observed).unwrap();
    let in_force = decide(&cache, Some("hash"), &observed.revisions, deployed);
    let mut next = observed.clone();
    next.revisions.extend(in_force.new_revision.clone());
    next.deployment.as_mut().unwrap().spec.as_mut().unwrap().template = in_force.template.clone();
    (in_force, next)
}

fn with_threads(threads: i32, mode: Option<TlsMode>) -> Memcached {
    memcached(|spec| {
        with_tls(spec, "certs", false);
        spec.security.as_mut().unwrap().tls.as_mut().unwrap().mode = mode;
        spec.memcached = Some(Server { threads, ..Server::default() });
    })
}

#[test]
fn tls_that_was_found_on_11211_stays_there_whatever_changes_later() {
    const REQUIRED: &str = "memcached -l notls:127.0.0.1:11213,*:11211,*:11212";
    let cache = with_threads(4, None);
    let deployment = other_operators(&validate(&cache).unwrap());
    let observed = Observed {
        deployment: Some(deployment.clone()),
        cache: std::sync::Arc::new(with_threads(4, None)),
        ..Observed::default()
    };
    let (taken_over, observed) = reconcile(&cache, &observed, Some(&deployment));
    assert_eq!(listeners(&taken_over), "", "taken as it stands");
    let (same, observed) = reconcile(&cache, &observed, None);
    assert_eq!(same.new_revision, None);
    let (first, observed) = reconcile(&with_threads(8, None), &observed, None);
    assert_eq!(listeners(&first), REQUIRED);
    let (second, observed) = reconcile(&with_threads(2, None), &observed, None);
    assert_eq!(listeners(&second), REQUIRED, "and at every later change");
    let (said, observed) = reconcile(&with_threads(2, Some(TlsMode::Alongside)), &observed, None);
    assert_eq!(listeners(&said), "memcached -l notls:*:11211,*:11212", "unless another mode is declared");
    let (back, _) = reconcile(&with_threads(3, None), &observed, None);
    assert_eq!(listeners(&back), "memcached -l notls:*:11211,*:11212", "what is running now is our own default");
}

#[test]
fn tls_that_was_found_is_left_at_once_where_another_mode_is_declared() {
    let deployment = other_operators(&validate(&with_threads(4, None)).unwrap());
    let observed = Observed {
        deployment: Some(deployment.clone()),
        cache: std::sync::Arc::new(with_threads(4, None)),
        ..Observed::default()
    };
    let (_, observed) = reconcile(&with_threads(4, None), &observed, Some(&deployment));
    let (said, _) = reconcile(&with_threads(4, Some(TlsMode::Alongside)), &observed, None);
    assert_eq!(listeners(&said), "memcached -l notls:*:11211,*:11212");
}

#[test]
fn tls_is_found_in_a_deployment_that_is_not_up_to_date() {
    let deployment = other_operators(&validate(&with_threads(4, None)).unwrap());
    let observed = Observed {
        deployment: Some(deployment),
        cache: std::sync::Arc::new(with_threads(4, None)),
        ..Observed::default()
    };
    let (built, _) = reconcile(&with_threads(8, None), &observed, None);
    assert_eq!(listeners(&built), "memcached -l notls:127.0.0.1:11213,*:11211,*:11212");
}

#[test]
fn a_takeover_by_an_earlier_version_keeps_its_template_and_its_tls() {
    let cache = with_threads(4, None);
    let silent = validate(&cache).unwrap();
    let deployment = other_operators(&silent);
    // That version knew nothing of modes that were found.
    let by_earlier = decide(&silent, Some("hash"), &[], Some(&deployment)).new_revision.unwrap();
    let observed = Observed {
        deployment: Some(deployment),
        revisions: vec![by_earlier],
        cache: std::sync::Arc::new(with_threads(4, None)),
        ..Observed::default()
    };
    let (same, observed) = reconcile(&cache, &observed, None);
    assert_eq!((listeners(&same).as_str(), same.new_revision), ("", None), "nothing restarts");
    let (changed, _) = reconcile(&with_threads(8, None), &observed, None);
    assert_eq!(listeners(&changed), "memcached -l notls:127.0.0.1:11213,*:11211,*:11212");
}

fn pull_policies(template: &PodTemplateSpec) -> Vec<String> {
    template.spec.iter().flat_map(|pod| &pod.containers).filter_map(|c| c.image_pull_policy.clone()).collect()
}

#[test]
fn a_changed_image_brings_its_own_pull_policy() {
    let template = |image: &str| {
        let cache = validated(|spec| {
            spec.image = Some(image.into());
            spec.monitoring = Some(Monitoring { enabled: true, ..Monitoring::default() });
        });
        decide(&cache, None, &[], None).template
    };
    assert_eq!(pull_policies(&template("memcached:1.6")), ["IfNotPresent", "IfNotPresent"]);
    assert_eq!(pull_policies(&template("memcached:latest")), ["Always", "IfNotPresent"]);
    let cache = validated(|spec| spec.image_pull_policy = Some("Never".into()));
    assert_eq!(pull_policies(&decide(&cache, None, &[], None).template), ["Never"], "what people say wins");
}

#[test]
fn a_kept_template_without_a_pull_policy_stays_and_nobody_is_told() {
    let cache = validated(|_| {});
    let mut kept = read(&decide(&cache, None, &[], None).new_revision.unwrap());
    kept.template.spec.as_mut().unwrap().containers[0].image_pull_policy = None;
    let in_force = decide(&cache, None, &[build_revision(&cache, &kept, &[])], None);
    assert_eq!(in_force.template, kept.template);
    assert_eq!((in_force.new_revision, in_force.newer_defaults), (None, Vec::new()));
}
