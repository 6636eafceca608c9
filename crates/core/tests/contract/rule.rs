//! The rules, as the API server evaluates them and as the operator does: the same answer, in the same words.

use std::sync::LazyLock;

use kube_cel::{CompiledSchema, Validator, compile_schema};
use memcached_api::Memcached;
use memcached_api::memcached::crd;
use memcached_api::memcached::rule;
use memcached_api::memcached::rule::server::argument;
use memcached_api::memcached::spec::MemcachedSpec;
use memcached_core::memcached::rule::{Violation, check, check_update};
use proptest::prelude::*;
use proptest::test_runner::TestCaseError;
use serde_json::{Value, json};

use crate::example::{self, By, Example, names};
use crate::generator::{declaration, good_part, odd_part, word};

/// The rules for an object that was there before, or was not: kube-cel has no optional where the API server has one.
fn compiled(was_there: bool) -> CompiledSchema {
    let crd = serde_json::to_value(crd::definition().unwrap()).unwrap();
    let schema = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].to_string();
    let schema = schema.replace("oldSelf.hasValue()", if was_there { "true" } else { "false" });
    let schema = schema.replace("oldSelf.value()", if was_there { "oldSelf" } else { "self" });
    let compiled = compile_schema(&serde_json::from_str(&schema).unwrap());
    assert!(!compiled.has_errors(), "{:?}", compiled.compilation_errors());
    compiled
}

/// What the rules of the CustomResourceDefinition say.
fn by_api_server(object: &Value, old: Option<&Value>) -> Vec<String> {
    static NEW: LazyLock<CompiledSchema> = LazyLock::new(|| compiled(false));
    static CHANGED: LazyLock<CompiledSchema> = LazyLock::new(|| compiled(true));
    let compiled = if old.is_some() { &CHANGED } else { &NEW };
    let found = Validator::new().validate_compiled(compiled, object, old);
    found.err().map(|errors| errors.iter().map(ToString::to_string).collect()).unwrap_or_default()
}

static PATTERN: LazyLock<regex::Regex> = LazyLock::new(|| regex::Regex::new(&argument::refused()).unwrap());

/// What the operator says.
fn by_operator(name: &str, spec: &Value, old: Option<&Value>) -> Vec<Violation> {
    let parse = |spec: &Value| Memcached::new(name, serde_json::from_value::<MemcachedSpec>(spec.clone()).unwrap());
    let workload = parse(spec).spec.workload.and_then(|workload| workload.type_).unwrap_or_default();
    let mut violations = check(name, &parse(spec).spec, workload);
    violations.extend(old.and_then(|old| check_update(&parse(old), &parse(spec))));
    violations
}

fn told(example: &Example, answers: &[String]) -> bool {
    answers.iter().any(|answer| example.is_told_by(answer))
}

#[test]
fn the_operator_answers_every_example() {
    for example in example::all() {
        let answers: Vec<String> =
            by_operator(&example.name, &example.spec, example.old.as_ref()).iter().map(ToString::to_string).collect();
        match &example.refusal {
            None => assert_eq!(answers, [""; 0], "{}", example.spec),
            // Bounds of numbers are the schema's alone.
            Some(refusal) if refusal.by == By::Schema && refusal.field.ends_with("threads") => {}
            Some(_) => assert!(told(&example, &answers), "{}: {answers:?}", example.spec),
        }
    }
}

#[test]
fn the_api_servers_rules_answer_every_example() {
    for example in example::all() {
        let object = example.object("v1beta1");
        let answers = by_api_server(&object, example.old_object("v1beta1").as_ref());
        match example.refusal.as_ref().map(|refusal| refusal.by) {
            None | Some(By::Operator) => assert_eq!(answers, [""; 0], "{}", example.spec),
            Some(By::Schema) => {}
            Some(By::Everybody | By::Admission) => {
                assert!(told(&example, &answers), "{}: {answers:?}", example.spec);
            }
        }
    }
}

#[test]
fn every_rule_of_the_contract_has_an_example_of_each_kind() {
    let all = example::all();
    for rule in 1..=19 {
        let of = |is_refused: bool| all.iter().any(|e| e.rule == Some(rule) && e.refusal.is_some() == is_refused);
        assert!(of(true) && of(false), "rule {rule}");
    }
}

#[test]
fn every_rule_is_broken_by_an_example() {
    let answers: Vec<String> = example::all()
        .iter()
        .flat_map(|example| by_api_server(&example.object("v1beta1"), example.old_object("v1beta1").as_ref()))
        .collect();
    for rule in rule::ALL {
        // Up to its first number.
        let words = rule.message.split("%d").find(|part| !part.trim().is_empty()).unwrap();
        assert!(
            answers.iter().any(|answer| answer.contains(words)),
            "nothing breaks {}: {}",
            rule.path(),
            rule.message
        );
    }
}

/// Where both look, they find the same.
fn check_agreement(spec: &Value) -> Result<(), TestCaseError> {
    // Longer ones do not get past the schema.
    if spec["memcached"]["maxItemSize"].as_str().is_some_and(|size| size.len() > 12) {
        return Ok(());
    }
    let object = json!({"metadata": {"name": "sessions"}, "spec": spec});
    let cel = by_api_server(&object, None);
    let operator = by_operator("sessions", spec, None);
    for answer in &cel {
        let is_known = operator.iter().any(|violation| names(answer, violation.field.split('[').next().unwrap_or("")));
        prop_assert!(is_known, "CEL alone refuses {}: {}; the operator: {:?}", spec, answer, operator);
    }
    for Violation { field, message, reason: _ } in &operator {
        // A text of digits is the schema's to stop.
        let mut rules = rule::ALL.iter().filter(|rule| rule.message != rule::BUDGET_NUMBER);
        let is_rule = rules.any(|rule| {
            let words = rule.message.split("%d").collect::<Vec<_>>();
            rule.path() == *field && words.iter().all(|words| message.contains(words))
        });
        let is_said = cel.iter().any(|answer| answer.contains(message.as_str()));
        prop_assert!(!is_rule || is_said, "the operator alone refuses {}: {}: {}", spec, field, message);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_find_the_same_in_any_declaration(spec in declaration(prop_oneof![2 => good_part(), 1 => odd_part()])) {
        check_agreement(&spec)?;
    }

    #[test]
    fn both_find_the_same_arguments(words in proptest::collection::vec(word(), 0..6)) {
        let words: Vec<String> = words.into_iter().map(|word| word.replace('\n', "")).collect();
        let by_pattern = PATTERN.is_match(&words.join("\n"));
        let operator = by_operator("sessions", &json!({"memcached": {"extraArgs": words}}), None);
        let by_operator = operator.iter().any(|violation| violation.field.starts_with("spec.memcached.extraArgs["));
        prop_assert_eq!(by_pattern, by_operator, "{:?} {:?}", words, operator);
    }
}
