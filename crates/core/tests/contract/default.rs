//! Defaults that are filled in change nothing but the text of a declaration.

use memcached_core::memcached::defaulting::fill;
use memcached_core::memcached::revision::decide;
use memcached_core::memcached::secret::mounted;
use memcached_core::memcached::{Validated, validate};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use crate::fixture::sessions;
use crate::generator::{declaration, good_part, odd_part};

fn filled(old: Option<&Value>, spec: &Value) -> Value {
    let object = |spec: &Value| json!({"metadata": {"name": "sessions"}, "spec": spec});
    fill(old.map(object).as_ref(), &object(spec))["spec"].clone()
}

/// Whether all that is given is still there. An empty text or list says nothing.
fn holds(there: &Value, given: &Value) -> bool {
    match (there, given) {
        (Value::Object(there), Value::Object(given)) => {
            given.iter().all(|(key, value)| there.get(key).is_some_and(|there| holds(there, value)))
        }
        (_, Value::Array(given)) if given.is_empty() => true,
        (_, Value::String(given)) if given.is_empty() => true,
        _ => there == given,
    }
}

/// A cache whose pods run as they were declared, after the same declaration with its defaults written down.
fn check_nothing_rolls(before: &Validated, after: &Validated) -> Result<(), TestCaseError> {
    let hash = (!mounted(before).is_empty()).then_some("hash");
    let kept = decide(before, hash, &[], None);
    let again = decide(after, hash, kept.new_revision.as_slice(), None);
    prop_assert!(again.new_revision.is_none() && again.newer_defaults.is_empty());
    prop_assert_eq!(again.template, kept.template);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn filling_twice_is_filling_once(
        old in proptest::option::of(declaration(good_part())), spec in declaration(prop_oneof![good_part(), odd_part()]),
    ) {
        let once = filled(old.as_ref(), &spec);
        prop_assert_eq!(filled(old.as_ref(), &once), once.clone());
        prop_assert_eq!(filled(Some(&once), &once), once);
    }

    #[test]
    fn what_is_given_stays(
        old in proptest::option::of(declaration(good_part())), spec in declaration(prop_oneof![good_part(), odd_part()]),
    ) {
        let mut given = spec.clone();
        // One that nobody owns makes way: these objects have no owners.
        if given["autoscaling"]["enabled"] == json!(true) {
            given.as_object_mut().unwrap().remove("replicas");
        }
        prop_assert!(holds(&filled(old.as_ref(), &spec), &given), "{} became {}", spec, filled(old.as_ref(), &spec));
    }

    #[test]
    fn a_declaration_that_works_still_works_and_rolls_nothing(spec in declaration(good_part())) {
        if let Ok(before) = validate(&sessions(&spec)) {
            let filled = filled(None, &spec);
            let after = validate(&sessions(&filled));
            prop_assert!(after.is_ok(), "{} became {}: {:?}", spec, filled, after);
            let after = after.unwrap();
            check_nothing_rolls(&before, &after)?;
            check_nothing_rolls(&after, &before)?;
        }
    }
}
