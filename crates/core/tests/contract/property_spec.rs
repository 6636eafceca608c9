//! Any declaration gets an answer, the same one each time, and an accepted one settles at once.

use memcached_core::memcached::build::build_children;
use memcached_core::memcached::revision::decide;
use memcached_core::memcached::secret::mounted;
use memcached_core::memcached::{Validated, validate};
use operator_model::template::outdated;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestCaseError;
use serde_json::json;

use crate::fixture::{accepted, merged, sessions, with_knobs, with_monitoring, with_sasl, with_tls};
use crate::generator::{declaration, good_part, odd_part};

fn check_settles(cache: &Validated, hash: Option<&str>) -> Result<(), TestCaseError> {
    let first = decide(cache, hash, &[], None);
    prop_assert!(first.newer_defaults.is_empty());
    let Some(revision) = first.new_revision.clone() else {
        return Err(TestCaseError::fail("a new cache has no revision"));
    };
    let again = decide(cache, hash, std::slice::from_ref(&revision), None);
    prop_assert_eq!(&again.template, &first.template);
    prop_assert!(again.new_revision.is_none() && again.newer_defaults.is_empty());
    // A Secret that changes makes a second revision, which settles as well.
    if !mounted(cache).is_empty() {
        let changed = decide(cache, Some("other"), std::slice::from_ref(&revision), None);
        let Some(second) = changed.new_revision else { return Err(TestCaseError::fail("the change is not kept")) };
        prop_assert!(second.metadata.name != revision.metadata.name && second.revision == 2);
        let both = [second, revision];
        let settled = decide(cache, Some("other"), &both, None);
        prop_assert_eq!(settled.template, changed.template);
        prop_assert!(settled.new_revision.is_none() && settled.newer_defaults.is_empty());
        prop_assert!(outdated(&both).is_empty());
    }
    Ok(())
}

/// Whatever shapes pods is part of what their template is kept by: no change of a declaration gets lost.
fn check_taken_up(before: &Validated, after: &Validated) -> Result<(), TestCaseError> {
    let hash = |cache: &Validated| (!mounted(cache).is_empty()).then_some("hash");
    let kept = decide(before, hash(before), &[], None).new_revision;
    let in_force = decide(after, hash(after), kept.as_slice(), None);
    // The soft anti-affinity that a section brings waits to be taken. Everything else is taken up at once.
    let has_section = |cache: &Validated| cache.spec.high_availability.is_some();
    let is_waiting = has_section(before) != has_section(after) && !in_force.newer_defaults.is_empty();
    if is_waiting {
        prop_assert!(in_force.newer_defaults.iter().all(|line| line.starts_with("spec.affinity")));
        return Ok(());
    }
    prop_assert_eq!(in_force.template, decide(after, hash(after), &[], None).template);
    prop_assert!(in_force.newer_defaults.is_empty());
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_declaration_gets_an_answer(spec in declaration(prop_oneof![odd_part(), good_part()])) {
        if let Err(violations) = validate(&sessions(&spec)) {
            prop_assert!(violations.iter().all(|v| v.field.starts_with("spec.") && !v.message.is_empty()));
        }
    }

    #[test]
    fn the_same_declaration_builds_the_same_children(spec in declaration(good_part())) {
        let build_once = || validate(&sessions(&spec)).map(|cache| {
            let template = decide(&cache, Some("hash"), &[], None).template;
            build_children(&cache, &template, cache.fixed_replicas())
        });
        prop_assert_eq!(build_once(), build_once());
    }

    #[test]
    fn a_template_in_force_stays_in_force(spec in declaration(good_part()), secrets_exist: bool) {
        if let Ok(cache) = validate(&sessions(&spec)) {
            let has_hash = secrets_exist && !mounted(&cache).is_empty();
            check_settles(&cache, has_hash.then_some("hash"))?;
        }
    }

    #[test]
    fn no_change_of_a_declaration_gets_lost(
        base in declaration(good_part()), over in good_part(), is_triggered: bool,
    ) {
        let mut changed = sessions(&merged(&base, &over));
        let trigger = ("memcached.c5c3.io/restart-trigger".to_owned(), "now".to_owned());
        changed.metadata.annotations = is_triggered.then(|| [trigger].into());
        if let (Ok(before), Ok(after)) = (validate(&sessions(&base)), validate(&changed)) {
            check_taken_up(&before, &after)?;
            check_taken_up(&after, &before)?;
        }
    }
}

#[test]
fn most_declarations_of_good_parts_are_accepted() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = declaration(good_part());
    let accepted = (0..200).filter(|_| {
        let spec = strategy.new_tree(&mut runner).unwrap().current();
        validate(&sessions(&spec)).is_ok()
    });
    let count = accepted.count();
    assert!(count > 60, "only {count} of 200 are accepted: the properties above would hold for nothing");
}

#[test]
fn every_field_that_shapes_pods_is_noticed_alone() {
    let required = merged(&with_tls(), &json!({"security": {"tls": {"mode": "Required"}}}));
    let base = merged(&merged(&required, &with_monitoring()), &with_sasl());
    let base = merged(&base, &json!({"highAvailability": {}, "extstore": {"size": "1Gi"}}));
    let mut knobs = with_knobs();
    let volumes = json!({"extraVolumes": knobs["extraVolumes"].take()});
    let base = merged(&base, &json!({"extraVolumes": [{"name": "scratch", "emptyDir": {"medium": "Memory"}}]}));
    let knobs = knobs.as_object().unwrap().iter().filter(|(_, value)| !value.is_null());
    let each_knob = knobs.map(|(name, value)| json!({name: value})).chain([volumes]);
    let others = [
        json!({"image": "other:1"}),
        json!({"resources": {"requests": {"cpu": "1"}}}),
        json!({"memcached": {"threads": 5}}),
        json!({"extstore": {"size": "2Gi"}}),
        json!({"extstore": {"volumeClaim": {}}}),
        json!({"highAvailability": {"antiAffinityPreset": "hard"}}),
        json!({"highAvailability": {"gracefulShutdown": {"enabled": true}}}),
        json!({"highAvailability": {"topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
        ]}}),
        json!({"monitoring": {"enabled": false}}),
        json!({"monitoring": {"exporterImage": "other:1"}}),
        json!({"monitoring": {"exporterResources": {"requests": {"cpu": "1"}}}}),
        json!({"security": {"podSecurityContext": {}}}),
        json!({"security": {"containerSecurityContext": {}}}),
        json!({"security": {"sasl": {"mode": "SASL"}}}),
        json!({"security": {"sasl": {"credentialsSecretRef": {"name": "others"}}}}),
        json!({"security": {"sasl": {"enabled": false}}}),
        json!({"security": {"tls": {"mode": "Alongside"}}}),
        json!({"security": {"tls": {"enableClientCert": true}}}),
        json!({"security": {"tls": {"certificateSecretRef": {"name": "other-cert"}}}}),
        json!({"security": {"tls": {"enabled": false}}}),
    ];
    let before = accepted(&base);
    for over in each_knob.chain(others) {
        let after = accepted(&merged(&base, &over));
        check_taken_up(&before, &after).and_then(|()| check_taken_up(&after, &before)).unwrap_or_else(|error| {
            panic!("{over}: {error}");
        });
    }
}
